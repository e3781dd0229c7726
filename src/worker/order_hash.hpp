// A keyed hash of record keys. If the hash were known, a producer could choose record keys that
// share one order key. All of its messages would then wait for each other.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hapax::worker {

// SipHash-2-4, by Aumasson and Bernstein. Thread safety: pure.
class OrderHash {
 public:
  constexpr OrderHash(std::uint64_t first, std::uint64_t second) : first_(first), second_(second) {}

  std::uint64_t operator()(std::string_view bytes) const {
    State state{first_ ^ 0x736f6d6570736575ULL, second_ ^ 0x646f72616e646f6dULL,
                first_ ^ 0x6c7967656e657261ULL, second_ ^ 0x7465646279746573ULL};
    std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56U;
    for (; bytes.size() >= sizeof last; bytes.remove_prefix(sizeof last)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      state.absorb(word, 2);
    }
    std::uint64_t rest = 0;
    std::memcpy(&rest, bytes.data(), bytes.size());
    state.absorb(last | rest, 2);
    state.c ^= 0xff;
    for (int i = 0; i < 4; ++i) state.mix();
    return state.a ^ state.b ^ state.c ^ state.d;
  }

 private:
  struct State {
    std::uint64_t a, b, c, d;

    void mix() {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
    void absorb(std::uint64_t word, int rounds) {
      d ^= word;
      for (int i = 0; i < rounds; ++i) mix();
      a ^= word;
    }
  };

  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace hapax::worker
