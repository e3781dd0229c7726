#include "cli/store_access.hpp"

#include "config/units.hpp"
#include "store/operator/migrate.hpp"

namespace hapax::app {

store::Session open_store(const config::Config& config, const std::string& url) {
  config::Config named = config;
  if (!url.empty()) {
    named.postgres.url = url;
    named.postgres.url_file.clear();
  }
  store::Session session = connect(named);
  if (const auto problem = store::schema_problem(session, store::kSchema))
    throw Stop(kUnreachable, *problem);
  return session;
}

const std::string& group_of(const config::Config& config) {
  const auto found = config.kafka.properties.find("group.id");
  if (found == config.kafka.properties.end())
    throw Stop(kConfigWrong,
               "this gate neither publishes nor accepts, so it has no kafka.group.id");
  return found->second;
}

std::chrono::seconds duration_option(const std::string& option, const std::string& text) {
  const auto duration = config::parse_duration(text);
  if (!duration)
    throw Stop(kUsage, option + " \"" + text + "\" is no duration; write 90s, 15m, 1h or 7d");
  return std::chrono::ceil<std::chrono::seconds>(*duration);
}

}  // namespace hapax::app
