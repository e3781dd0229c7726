// What all examinations share: ways from the same beginning, held against one delivery.
//
// Thread safety: as Harness.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "testing/contents.hpp"
#include "testing/implementation.hpp"

namespace hapax::testing {

class Examination {
 protected:
  using Problems = std::vector<std::string>;
  using Deliver = std::function<void(Problems&)>;

  // Saves the state of the database. Throws: std::runtime_error if an ignored column is wrong.
  Examination(Harness::Implementation& harness, const Record& record, Wanted wanted);

  // Runs one way from the beginning; what it throws is a problem, too.
  void way(const std::string& name, const Deliver& deliver);
  // The same, from what the way before has left.
  void same_way(const std::string& name, const Deliver& deliver);

  Outcome deliver() { return harness_.run(record_, std::nullopt, false); }
  // Of the first delivery, which the others are held against. Reports what makes that impossible.
  void keep_first(Problems& problems);
  // Whether the record has the same key if the producer sends it again: not if the key is its
  // coordinates.
  bool can_send_again() const;
  // After a second good delivery from the beginning.
  void expect_same_effect(Problems& problems);
  void expect_end(const Outcome& outcome, Problems& problems) const;
  void expect_contents(const Tables& expected, const std::string& when, Problems& problems);
  // The effect of one delivery, and what on_duplicate may have done.
  void expect_contents_after_a_duplicate(Problems& problems);
  void look_at_the_session();

  Harness::Implementation& harness_;
  const Record& record_;
  const Wanted wanted_;
  Report report_;
  Tables before_;
  Tables after_;  // one delivery

 private:
  void expect_contents(const Tables& expected, const Tables& found, const std::string& when,
                       Problems& problems) const;

  Columns without_;
};

}  // namespace hapax::testing
