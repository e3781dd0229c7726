// Which Kafka cluster the group's records go to. PostgreSQL keeps its id, so that a relay that
// reaches another Kafka (a wrong setting, a name that leads elsewhere) sends nothing there.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "store/worker/outbox_cluster.hpp"

namespace hapax::outbox {

inline constexpr const char* kOtherCluster = "other_cluster";  // the reason of a halt

class Cluster {
 public:
  // `noted`: what PostgreSQL holds. Nothing: its schema keeps no clusters, so each will do.
  void begin(std::optional<store::OutboxCluster> noted) {
    noted_ = std::move(noted);
    is_read_ = true;
    is_new_ = false;
    other_.clear();
  }
  // What PostgreSQL holds may be another one by now. Until begin(), nothing is known of any
  // cluster.
  void forget() { is_read_ = false; }
  bool is_read() const { return is_read_; }
  // The schema may keep clusters from the next migration on.
  bool is_kept() const { return noted_.has_value(); }

  enum class Reached { unknown, right, other };
  // `found`: the id of the cluster that a producer has reached; "" if it does not know it yet.
  Reached judge(const std::string& found) {
    if (!is_read_) return Reached::unknown;
    if (!noted_) return Reached::right;
    if (found.empty()) return Reached::unknown;
    if (noted_->id.empty()) noted_->id = found, is_new_ = true;
    if (is_new_) return Reached::unknown;
    if (found == noted_->id) return Reached::right;
    other_ = found;
    return Reached::other;
  }

  // An id that PostgreSQL must hold before anything is sent. Nothing if it does.
  std::optional<std::string> to_note() const {
    return is_new_ ? std::optional(noted_->id) : std::nullopt;
  }
  // PostgreSQL holds this one.
  void noted(std::string id) {
    noted_->id = std::move(id);
    is_new_ = false;
  }

  // "": PostgreSQL holds none.
  std::string id() const { return noted_ && !is_new_ ? noted_->id : ""; }
  // Whether a producer has reached another one since begin().
  bool is_other() const { return !other_.empty(); }
  std::string words() const {
    return "this relay reaches Kafka cluster " + other_ + ", and the group's records go to " +
           noted_->id +
           ". Correct kafka.bootstrap.servers, then retry. If they shall go to this "
           "one, retry with --new-cluster";
  }

 private:
  std::optional<store::OutboxCluster> noted_;
  bool is_read_ = false;
  bool is_new_ = false;
  std::string other_;
};

}  // namespace hapax::outbox
