#include "support/mirror.hpp"

#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"

namespace hapax::support {

void mirror_to(const std::string& bootstrap, const Site& site) {
  create_topic(bootstrap, site.topic(), site.partitions());
  Producer producer(bootstrap);
  for (int partition = 0; partition < site.partitions(); ++partition)
    for (const Incoming& record : read_records(site.bootstrap(), site.topic(), partition))
      if (record.offset >= 2)
        producer.produce({site.topic(), record.payload, record.key, record.headers, partition,
                          record.timestamp_ms});
  producer.flush();
}

}  // namespace hapax::support
