#include "tools/bench/bare_loop.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "key/sha256.hpp"
#include "sql_statements.hpp"
#include "store/session_state.hpp"

namespace hapax::store {
namespace {

constexpr const char* kRetention = "604800";
constexpr const char* kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;";

// The values need no escaping: hapax bench makes them.
std::string quoted(const std::string& value) { return "'" + value + "'"; }

struct Payment {
  std::string id, account, amount;
};

Payment parse(const std::string& payload) {
  const auto json = nlohmann::json::parse(payload);
  return {json.at("id"), json.at("account"), json.at("amount_minor").dump()};
}

std::string digest(const std::string& payload) { return "\\x" + key::hex(key::sha256(payload)); }

// {a,b,c}
class Array {
 public:
  void add(const std::string& value) { text_ += (text_.empty() ? "'{\"" : ",\"") + value + '"'; }
  std::string text() const { return text_ + "}'"; }

 private:
  std::string text_;
};

}  // namespace

// One connection of the loop.
class BareLane {
 public:
  BareLane(const BareLoop& loop, Session::State& state)
      : loop_(loop), state_(state), work_(state.connection) {
    const auto prepare = [&](const char* name, const std::string& text) {
      state_.prepare(name, text);
    };
    prepare("arm", sql::kArm.text);
    prepare("seal",
            loop.durability == Durability::checkpoint ? sql::kSealUnflushed.text : sql::kSeal.text);
    prepare("claim", loop.batch > 1 ? sql::kClaimBatch.text : sql::kClaim.text);
    prepare("read", loop.batch > 1 ? sql::kReadBatchKeys.text : sql::kReadKey.text);
    const std::string insert = "INSERT INTO " + loop.table + " (id, account, amount_minor) ";
    prepare("insert",
            insert + (loop.batch > 1 ? "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])"
                                     : "VALUES ($1, $2, $3)"));
  }

  // Commits with the claim of the next one, or with finish(), as a lane does while there are more.
  void one(std::size_t n) {
    const BareMessage message = loop_.message(n);
    const std::string read =
        "EXECUTE read(" + quoted(message.key) + ',' + quoted(loop_.scope) + ",'')";
    if (duplicates_in_a_row_ >= 2 && !work_.exec(read).empty()) return;
    const std::string nonce = next_nonce();
    const auto claimed =
        work_.exec(std::exchange(open_, {}) + kBegin + "EXECUTE claim(" + quoted(message.key) +
                   ',' + quoted(loop_.scope) + ",''," + quoted(digest(message.payload)) +
                   ",'payload'," + quoted(loop_.group) + ',' + quoted(loop_.topic) + ",1," +
                   std::to_string(message.partition) + ',' + std::to_string(n) + ',' + kRetention +
                   ',' + quoted(nonce) + ",'50','3000')");
    if (claimed.empty()) {
      work_.exec("ROLLBACK;" + read);
      ++duplicates_in_a_row_;
      return;
    }
    duplicates_in_a_row_ = 0;
    const Payment payment = parse(message.payload);
    open_ = "EXECUTE insert(" + quoted(payment.id) + ',' + quoted(payment.account) + ',' +
            payment.amount + ");" + seal(nonce) + ';';
  }

  void finish() {
    if (!open_.empty()) work_.exec(std::exchange(open_, {}));
  }

  void many(std::size_t from, std::size_t end) {
    std::vector<std::size_t> order(end - from);
    std::iota(order.begin(), order.end(), from);
    std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
      return loop_.message(left).key < loop_.message(right).key;
    });
    Array keys, tenants, digests, generations, partitions, offsets, epochs;
    for (const std::size_t n : order) {
      const BareMessage message = loop_.message(n);
      keys.add(message.key);
      tenants.add("");
      digests.add("\\" + digest(message.payload));
      generations.add("1");
      partitions.add(std::to_string(message.partition));
      offsets.add(std::to_string(n));
      epochs.add("0");
    }
    const std::string nonce = next_nonce();
    const auto claimed = work_.exec(
        kBegin + arm(nonce) + "EXECUTE claim(" + keys.text() + ',' + quoted(loop_.scope) + ',' +
        tenants.text() + ',' + digests.text() + ",'payload'," + quoted(loop_.group) + ',' +
        quoted(loop_.topic) + ',' + generations.text() + ',' + partitions.text() + ',' +
        offsets.text() + ',' + kRetention + ',' + epochs.text() + ')');
    if (claimed.size() < static_cast<pqxx::result::size_type>(order.size())) {
      work_.exec("ROLLBACK;EXECUTE read(" + keys.text() + ',' + quoted(loop_.scope) + ',' +
                 tenants.text() + ')');
      return;
    }
    Array ids, accounts, amounts;
    for (std::size_t n = from; n < end; ++n) {
      const Payment payment = parse(loop_.message(n).payload);
      ids.add(payment.id);
      accounts.add(payment.account);
      amounts.add(payment.amount);
    }
    work_.exec("EXECUTE insert(" + ids.text() + ',' + accounts.text() + ',' + amounts.text() +
               ");" + seal(nonce));
  }

  static Session::State& state_of(Session& session) { return *session.state_; }

 private:
  std::string next_nonce() { return state_.nonce_prefix + std::to_string(++state_.nonce_count); }
  static std::string arm(const std::string& nonce) { return "EXECUTE arm(" + quoted(nonce) + ");"; }
  static std::string seal(const std::string& nonce) {
    return "EXECUTE seal(" + quoted(nonce) + ");COMMIT";
  }

  const BareLoop& loop_;
  Session::State& state_;
  pqxx::nontransaction work_;
  int duplicates_in_a_row_ = 0;
  std::string open_;  // what completes and commits the message before
};

void BareLoop::run() const {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto lane = [&] {
    Session session(connect);
    session.serve_handlers();
    try {
      BareLane bare(*this, BareLane::state_of(session));
      for (;;) {
        const std::size_t from = next.fetch_add(batch);
        if (from >= messages) break;
        const std::size_t end = std::min(from + batch, messages);
        batch > 1 ? bare.many(from, end) : bare.one(from);
        if (!committed(end - from)) break;
      }
      bare.finish();
    } catch (...) {
      rethrow(BareLane::state_of(session).connection, "the bare loop");
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < connections; ++i)
    threads.emplace_back([&] {
      try {
        lane();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = messages;
      }
    });
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hapax::store
