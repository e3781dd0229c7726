#include "observe/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace hapax::observe::log {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%fZ %^%-7l%$ %v";
// The event's object follows without its opening brace.
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v)";

std::atomic<Format> format_in_use{Format::text};

std::unique_ptr<spdlog::formatter> formatter(Format format) {
  return std::make_unique<spdlog::pattern_formatter>(
      format == Format::json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc);
}

// Left alive at exit on purpose: threads and destructors may log until the very end.
spdlog::logger& logger() {
  static spdlog::logger& only = [&]() -> spdlog::logger& {
    auto& made =
        *new spdlog::logger("hapax", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made.set_level(spdlog::level::trace);  // `enabled` has decided before
    made.set_formatter(formatter(Format::text));
    return made;
  }();
  return only;
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: break;
  }
  return spdlog::level::err;
}

bool needs_quotes(std::string_view value) {
  return value.find_first_of(" =\"\\") != std::string_view::npos ||
         escape_for_terminal(value) != value;
}

nlohmann::ordered_json json_of(const Field& field) {
  return std::visit(
      [](const auto& value) -> nlohmann::ordered_json {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string_view>)
          return to_valid_utf8(value);
        else if constexpr (std::is_same_v<Value, std::monostate>)
          return nullptr;
        else
          return value;
      },
      field.value());
}

std::string text_line(std::string_view event, Fields fields, std::string_view sentence) {
  std::string line = escape_for_terminal(event) + ": " + escape_for_terminal(sentence);
  for (const Field& field : fields) {
    if (!field.is_given()) continue;
    line += ' ' + escape_for_terminal(field.name()) + '=';
    const auto* text = std::get_if<std::string_view>(&field.value());
    if (text == nullptr)
      line += json_of(field).dump();
    else if (needs_quotes(*text))
      line += quote_for_terminal(*text);
    else
      line += *text;
  }
  return line;
}

std::string json_line(std::string_view event, Fields fields, std::string_view sentence) {
  nlohmann::ordered_json object;
  object["event"] = to_valid_utf8(event);
  object["sentence"] = to_valid_utf8(sentence);
  for (const Field& field : fields)
    if (field.is_given()) object[to_valid_utf8(field.name())] = json_of(field);
  return object.dump().substr(1);
}

}  // namespace

void set_up(Level level, Format format) {
  detail::threshold = level;
  format_in_use = format;
  logger().set_formatter(formatter(format));
}

void detail::write(Level level, std::string_view event, Fields fields, std::string_view sentence) {
  const std::string line = format_in_use == Format::json ? json_line(event, fields, sentence)
                                                         : text_line(event, fields, sentence);
  logger().log(spdlog_level(level), spdlog::string_view_t(line));
}

}  // namespace hapax::observe::log
