// hapax bench: how fast, on this machine, and how much of it hapax costs.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <fstream>

#include "cli/command.hpp"
#include "observe/log.hpp"
#include "tools/bench/bare_loop.hpp"
#include "tools/bench/ground.hpp"
#include "tools/bench/messages.hpp"
#include "tools/bench/meter.hpp"
#include "tools/bench/options.hpp"
#include "tools/bench/report.hpp"
#include "tools/bench/sizing.hpp"
#include "tools/bench/worker.hpp"
#include "tools/screen.hpp"
#include "worker/connect_options.hpp"

namespace hapax::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLook{200};
constexpr seconds kStallTimeout{60};  // so long nothing may move
constexpr seconds kCatchUp{30};       // for what is late when the last message was sent
constexpr seconds kDelivery{120};
constexpr std::size_t kFillBatch = 500;
constexpr std::size_t kFillStep = 500'000;
constexpr std::size_t kLatencyWarmUp = 500;

std::atomic<int> interrupted{0};
extern "C" void on_interrupt(int) { interrupted = 1; }

// More than one changes nothing: removing what was made has its own time limits.
void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN)       // nohup
    sigaction(SIGHUP, &action, nullptr);  // the terminal is gone, and what was made must not stay
  sigaction(SIGTERM, &action, nullptr);
}

void expect_uninterrupted() {
  if (interrupted != 0) throw Stop(kFailed, "interrupted; what was made is removed");
}

BenchPlace place_of(const BenchOptions& options) {
  BenchPlace place{.owner_url = options.url,
                   .delay = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::duration<double, std::milli>(options.postgres_delay_ms))};
  if (!options.config.empty()) place.config = load({options.config, {}});
  return place;
}

// The bench in order: run() is the story.
class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options),
        ground_(place_of(options)),
        properties_(ground_.worker().kafka.properties),
        lanes_(options.lanes > 0 ? options.lanes : ground_.worker().worker.lanes) {}

  ExitCode run() {
    report_.ground = ground_.facts();
    report_.options = {{"messages", options_.messages},
                       {"lanes", lanes_},
                       {"payload_bytes", options_.payload_bytes},
                       {"partitions", options_.partitions},
                       {"rounds", options_.rounds},
                       {"keys", options_.keys},
                       {"postgres_delay_ms", options_.postgres_delay_ms},
                       {"durability", options_.durability}};
    fill();
    send();
    for (const char* mode : kBenchModes)
      if (wanted(mode)) measure(mode);
    if (options_.seconds > 0)
      for (const BenchThroughput& mode : report_.throughput)
        if (mode.mode != "duplicates") measure_latency(mode);
    size();
    say("");
    show();
    return report_.wrong.empty() ? kDone : kFailed;
  }

 private:
  bool wanted(const std::string& mode) const {
    return options_.modes.empty() || std::ranges::count(options_.modes, mode) > 0;
  }
  std::size_t batch_of(const std::string& mode) const {
    return mode == "batch" || mode == kPositionsMode ? options_.batch : 1;
  }

  void say(const std::string& what) const;
  void fill();
  void send();
  config::Config worker_config();
  void measure(const std::string& mode);
  double bare(const std::string& scope, std::size_t batch);
  double hapax(const std::string& scope, const std::string& mode);
  void await(RateMeter& meter, const BenchWorker& worker) const;
  void expect_booked(const std::string& what, std::size_t messages);
  void measure_latency(const BenchThroughput& mode);
  void pace(const std::string& topic, LatencyMeter& meter, std::size_t messages,
            const BenchWorker& worker) const;
  BenchWorker worker(const std::string& topic, const std::string& scope, const std::string& mode,
                     std::function<void(const Message&)> settled);
  void size();
  void show() const;
  std::string beside() const;

  const BenchOptions options_;
  BenchGround ground_;
  const kafka::Properties properties_;
  const std::size_t lanes_;
  std::vector<BenchPayment> payments_;
  std::string topic_;
  BenchReport report_;
};

// One line that is overwritten, on a terminal only.
void Bench::say(const std::string& what) const {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K%s", what.c_str());
}

// Keys of others, as a table has them that has been in use for a while.
void Bench::fill() {
  for (std::size_t from = 0; from < options_.keys; from += kFillStep) {
    say("filling the table: " + grouped(static_cast<std::int64_t>(from)) + " of " +
        grouped(static_cast<std::int64_t>(options_.keys)) + " keys");
    ground_.tables().fill_keys(ground_.name() + "-old", from,
                               std::min(from + kFillStep, options_.keys));
    expect_uninterrupted();
  }
}

config::Config Bench::worker_config() {
  config::Config config = ground_.worker();
  config.worker.lanes = lanes_;
  if (options_.durability == "checkpoint")
    config.worker.durability = config::Durability::checkpoint;
  return config;
}

void Bench::send() {
  say("sending " + grouped(static_cast<std::int64_t>(options_.messages)) + " messages");
  payments_ = bench_payments(options_.messages, options_.partitions, options_.payload_bytes);
  topic_ = ground_.make_topic("throughput", options_.partitions);
  kafka::Producer producer(properties_);
  for (const BenchPayment& payment : payments_) producer.produce(payment.to(topic_));
  producer.flush(kDelivery);
  ground_.expect_all_kept(topic_, options_.partitions, options_.messages);
}

// A B A B …: what slows the machine for a while slows both.
void Bench::measure(const std::string& mode) {
  BenchThroughput result{mode, batch_of(mode)};
  const bool duplicates = mode == "duplicates";
  const std::string known = ground_.name() + "-known";
  if (duplicates) {
    say("duplicates: making all keys known");
    bare(known, kFillBatch);
    ground_.tables().clear();
  }
  for (std::size_t round = 1; round <= options_.rounds; ++round) {
    const std::string scope = ground_.name() + "-" + mode + "-" + std::to_string(round);
    const std::string text =
        mode + ", round " + std::to_string(round) + " of " + std::to_string(options_.rounds) + ": ";
    BenchRound figures;
    say(text + "the bare loop");
    figures.bare_per_second = bare(duplicates ? known : scope + "-bare", result.batch);
    ground_.tables().clear();
    say(text + "hapax");
    MemoryMeter memory;
    figures.per_second = hapax(duplicates ? known : scope, mode);
    figures.memory_bytes = memory.peak();
    expect_booked(text, duplicates ? 0 : options_.messages);
    result.rounds.push_back(figures);
  }
  report_.throughput.push_back(std::move(result));
}

double Bench::bare(const std::string& scope, std::size_t batch) {
  RateMeter meter(options_.messages, std::min(options_.messages / 2,
                                              std::max(options_.messages / 20, lanes_ * batch)));
  const config::Config config = worker_config();
  store::BareLoop{worker::connect_options(config),
                  lanes_,
                  batch,
                  ground_.tables().payments(),
                  scope,
                  config.kafka.properties.at("group.id"),
                  topic_,
                  options_.messages,
                  [this](std::size_t n) {
                    const BenchPayment& payment = payments_[n];
                    return store::BareMessage{payment.key, payment.payload, payment.partition};
                  },
                  [&](std::size_t count) {
                    meter.settled(count);
                    return interrupted == 0;
                  },
                  config.worker.durability == config::Durability::checkpoint
                      ? store::Durability::checkpoint
                      : store::Durability::synchronous}
      .run();
  expect_uninterrupted();
  return meter.per_second();
}

BenchWorker Bench::worker(const std::string& topic, const std::string& scope,
                          const std::string& mode, std::function<void(const Message&)> settled) {
  return BenchWorker({worker_config(), topic, scope, batch_of(mode), mode == kPositionsMode,
                      bench_handler(ground_.tables().payments())},
                     std::move(settled));
}

double Bench::hapax(const std::string& scope, const std::string& mode) {
  const std::size_t batch = batch_of(mode);
  RateMeter meter(options_.messages, std::min(options_.messages / 2,
                                              std::max(options_.messages / 20, lanes_ * batch)));
  const BenchWorker running =
      worker(topic_, scope, mode, [&](const Message&) { meter.settled(1); });
  await(meter, running);
  return meter.per_second();
}

void Bench::await(RateMeter& meter, const BenchWorker& worker) const {
  std::size_t last = 0;
  auto moved = RateMeter::Clock::now();
  while (!meter.wait(kLook)) {
    worker.expect_running();
    expect_uninterrupted();
    if (const std::size_t now = meter.count(); now != last) {
      last = now;
      moved = RateMeter::Clock::now();
    }
    if (RateMeter::Clock::now() - moved > kStallTimeout)
      throw Stop(kFailed, "the worker stands at " + std::to_string(last) + " of " +
                              std::to_string(options_.messages) + " messages");
  }
}

void Bench::expect_booked(const std::string& what, std::size_t messages) {
  const auto [rows, distinct] = ground_.tables().booked();
  if (rows != messages || distinct != messages)
    report_.wrong.push_back(what + ": of " + std::to_string(messages) + " payments " +
                            std::to_string(distinct) + " are booked, in " + std::to_string(rows) +
                            " rows");
  ground_.tables().clear();
}

// At --rate, or half of what was measured.
void Bench::measure_latency(const BenchThroughput& mode) {
  const double rate = options_.rate > 0 ? options_.rate : mode.per_second() / 2;
  const auto messages = static_cast<std::size_t>(rate * static_cast<double>(options_.seconds)) + 1;
  say("latency of " + mode.mode + " at " + grouped(static_cast<std::int64_t>(rate)) +
      " messages/s for " + std::to_string(options_.seconds) + " s");
  const std::string topic = ground_.make_topic("latency-" + mode.mode, options_.partitions);
  LatencyMeter meter(messages, rate);
  BenchLatency result{mode.mode, mode.batch, rate, messages};
  {
    const BenchWorker running = worker(
        topic, ground_.name() + "-latency-" + mode.mode, mode.mode, [&](const Message& message) {
          meter.settled(number_of(message.header(kBenchHeader).value_or("")));
        });
    pace(topic, meter, messages, running);
  }
  result.sorted = meter.sorted();
  expect_booked("latency of " + mode.mode, meter.count());
  report_.latency.push_back(std::move(result));
}

// The first ones wake all that sleeps and are not measured.
void Bench::pace(const std::string& topic, LatencyMeter& meter, std::size_t messages,
                 const BenchWorker& worker) const {
  const auto expect_well = [&] {
    worker.expect_running();
    expect_uninterrupted();
  };
  const auto await_settled = [&](std::size_t count, seconds patience) {
    const auto until = LatencyMeter::Clock::now() + patience;
    for (; meter.count() < count && LatencyMeter::Clock::now() < until; expect_well())
      std::this_thread::sleep_for(milliseconds(10));
    return meter.count() >= count;
  };
  const auto payment = [&](std::size_t n) {
    return bench_payment(n, options_.partitions, options_.payload_bytes).to(topic);
  };
  kafka::Producer producer(properties_, milliseconds(0));
  for (std::size_t n = 0; n < kLatencyWarmUp; ++n) producer.produce(payment(messages + n));
  producer.flush(kDelivery);
  if (!await_settled(kLatencyWarmUp, kStallTimeout))
    throw Stop(kFailed, "the worker does not settle what was sent");
  meter.begin();
  for (std::size_t n = 0; n < messages; ++n) {
    const kafka::Outgoing next = payment(n);
    std::this_thread::sleep_until(meter.due(n));
    producer.produce(next);
    if (n % 1000 == 0) expect_well();
  }
  producer.flush(kDelivery);
  await_settled(kLatencyWarmUp + messages, kCatchUp);
}

// What was asked for beside the usual.
std::string Bench::beside() const {
  std::string text;
  if (options_.keys > 0)
    text += ", " + grouped(static_cast<std::int64_t>(options_.keys)) + " keys in the table";
  if (options_.postgres_delay_ms > 0)
    text += ", PostgreSQL " + nlohmann::json(options_.postgres_delay_ms).dump() + " ms away";
  if (options_.durability != "synchronous") text += ", durability " + options_.durability;
  return text;
}

// By a route's default retention.
void Bench::size() {
  const BenchWish wish{options_.target, lanes_,
                       std::chrono::duration_cast<seconds>(config::Route{}.retention)};
  for (const BenchThroughput& mode : report_.throughput)
    if (mode.mode != "duplicates" && mode.per_second() > 0)
      report_.sizing.push_back(size_for(mode, wish));
}

void Bench::show() const {
  if (options_.json) {
    print_json(to_json(report_));
  } else {
    print_line("hapax " + cell(report_.ground["hapax"]) + ", PostgreSQL " +
               cell(report_.ground["postgres"]) + ", Kafka: " + cell(report_.ground["kafka"]) +
               "; " + std::to_string(lanes_) + " lanes, " + std::to_string(options_.partitions) +
               " partitions, " + grouped(static_cast<std::int64_t>(options_.messages)) +
               " messages of " + std::to_string(options_.payload_bytes) + " bytes" + beside());
    print_line("");
    print(report_);
    if (!report_.sizing.empty()) print_line("");
    for (const BenchSizing& sizing : report_.sizing) print_line(to_text(sizing));
    if (!report_.sizing.empty())
      print_line(std::string("One worker was measured") +
                 (options_.config.empty() ? ", with servers of this process's own. For your sizes, "
                                            "measure your servers with -c."
                                          : ". Several share one PostgreSQL: measure as many of "
                                            "them at once before you rely on it."));
    for (const std::string& wrong : report_.wrong) print_line("WRONG: " + wrong);
  }
  if (options_.svg.empty()) return;
  std::ofstream file(options_.svg);
  file << to_svg(report_);
  if (!file.flush()) throw Stop(kFailed, "cannot write " + options_.svg);
}

}  // namespace

void add_bench(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "bench",
      "Measure throughput and latency on this machine, beside a bare loop of the same SQL");
  const auto options = std::make_shared<BenchOptions>();
  add_bench_options(*command, *options);
  command->callback([&line, options] {
    line.command = [options] {
      observe::log::set_up(observe::log::Level::warning, observe::log::Format::text);
      catch_interrupts();
      return Bench(*options).run();
    };
  });
}

}  // namespace hapax::app
