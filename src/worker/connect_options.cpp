#include "worker/connect_options.hpp"

#include "config/file_text.hpp"
#include "store/transport.hpp"

namespace hapax::worker {

store::ConnectOptions connect_options(const config::Config& config) {
  store::ConnectOptions options;
  options.url = config.postgres.url;
  // If the file cannot be read now, it may be about to be replaced. Then the last known value
  // counts.
  const auto file = config::read_value(config.postgres.url_file);
  if (const auto* now = std::get_if<config::FileText>(&file); now != nullptr && !now->text.empty())
    options.url = now->text;
  if (options.url != config.postgres.url && !store::same_database(options.url, config.postgres.url))
    throw store::DatabaseError({store::Fault::Kind::connection, "",
                                "the file " + config.postgres.url_file +
                                    " of postgres.url names another database than at the start of "
                                    "this worker; restart all workers to move them"});
  options.application_name = "hapax " + config.worker.name;
  options.connect_timeout = config.postgres.connect_timeout;
  options.lock_timeout = config.postgres.lock_timeout;
  options.statement_timeout = config.postgres.statement_timeout;
  options.idle_in_transaction_timeout = config.postgres.idle_in_transaction_timeout;
  return options;
}

}  // namespace hapax::worker
