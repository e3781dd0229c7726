#include "kafka/mock_cluster.hpp"

#include <stdexcept>

#include "kafka/handles.hpp"

#include <librdkafka/rdkafka_mock.h>

namespace hapax::kafka {

MockCluster::MockCluster(int brokers) : client_(nullptr), cluster_(nullptr) {
  char error[512];
  ConfHandle conf(rd_kafka_conf_new());
  // Else it warns that it knows no brokers: it is about to make them.
  rd_kafka_conf_set(conf.get(), "log_level", "3", error, sizeof error);
  client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), error, sizeof error);
  if (client_ == nullptr) throw std::runtime_error(std::string("mock cluster: ") + error);
  conf.release();
  cluster_ = rd_kafka_mock_cluster_new(client_, brokers);
  if (cluster_ != nullptr) return;
  rd_kafka_destroy(client_);
  throw std::runtime_error("mock cluster: librdkafka could not start it");
}

MockCluster::~MockCluster() {
  rd_kafka_mock_cluster_destroy(cluster_);
  rd_kafka_destroy(client_);
}

std::string MockCluster::bootstrap() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }

void MockCluster::create_topic(const std::string& name, int partitions) {
  const auto error = rd_kafka_mock_topic_create(cluster_, name.c_str(), partitions, 1);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error("mock cluster: topic " + name + ": " + rd_kafka_err2str(error));
}

void MockCluster::refuse(Request request, Error error) {
  rd_kafka_mock_push_request_errors(cluster_, static_cast<std::int16_t>(request), 1,
                                    static_cast<rd_kafka_resp_err_t>(error));
}

void MockCluster::refuse_all(Request request, Error error) {
  constexpr int kMoreThanAnyTestAsks = 10'000;
  for (int i = 0; i < kMoreThanAnyTestAsks; ++i) refuse(request, error);
}

void MockCluster::accept(Request request) {
  rd_kafka_mock_clear_request_errors(cluster_, static_cast<std::int16_t>(request));
}

void MockCluster::delay(Request request, std::chrono::milliseconds by, int times) {
  for (int i = 0; i < times; ++i)
    rd_kafka_mock_broker_push_request_error_rtts(cluster_, 1, static_cast<std::int16_t>(request), 1,
                                                 RD_KAFKA_RESP_ERR_NO_ERROR,
                                                 static_cast<int>(by.count()));
}

void MockCluster::set_topic_error(const std::string& topic, Error error) {
  rd_kafka_mock_topic_set_error(cluster_, topic.c_str(), static_cast<rd_kafka_resp_err_t>(error));
}

void MockCluster::stop_broker(int broker) { rd_kafka_mock_broker_set_down(cluster_, broker); }

void MockCluster::set_led(const std::string& topic, int partition, bool led) {
  constexpr int kFirst = 1, kNobody = -1;
  rd_kafka_mock_partition_set_leader(cluster_, topic.c_str(), partition, led ? kFirst : kNobody);
}

}  // namespace hapax::kafka
