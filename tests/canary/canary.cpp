// Does on purpose what a sanitizer must see: a build whose sanitizer is silent here proves nothing
// elsewhere. Run as `canary <crime>`.
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

namespace {

int use_after_free(int argument) {
  auto owned = std::make_unique<int>(argument);
  int* const dangling = owned.get();
  owned.reset();
  return *dangling;
}

int signed_overflow(int argument) { return INT_MAX - 1 + argument; }

int leak(int argument) {
  auto* volatile lost = new int(argument);
  lost = nullptr;
  return lost == nullptr ? 0 : 1;
}

int data_race(int argument) {
  int shared = argument;
  std::thread other([&shared] { ++shared; });
  ++shared;
  other.join();
  return shared;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  if (std::strcmp(argv[1], "address") == 0) return use_after_free(argc);
  if (std::strcmp(argv[1], "undefined") == 0) return signed_overflow(argc) == 0 ? 1 : 0;
  if (std::strcmp(argv[1], "leak") == 0) return leak(argc);
  if (std::strcmp(argv[1], "thread") == 0) return data_race(argc) == 0 ? 1 : 0;
  return EXIT_FAILURE;
}
