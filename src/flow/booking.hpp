// Shows an outside handler to a lane: the lane books answers, and never calls.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hapax/outside.hpp"

namespace hapax::flow {

// A lane's handler of an outside route.
class Booker : public Handler {
 public:
  // An outside message comes to a lane's handler only with its answer.
  void handle(const Message& /*message*/, Context& /*context*/) final {
    throw std::logic_error("a message of an outside route has no answer to be booked");
  }
  virtual void book(const Message& message, const std::string& answer, Context& context) = 0;
};

class Booking final : public Booker {
 public:
  explicit Booking(std::unique_ptr<OutsideHandler> handler) : handler_(std::move(handler)) {}

  void on_start(const Setup& setup) override { handler_->on_start(setup); }

  void book(const Message& message, const std::string& answer, Context& context) override {
    handler_->book_text(message, answer, context);
  }

 private:
  std::unique_ptr<OutsideHandler> handler_;
};

// `answer`: null for a route that does not call. Precondition: with one, `handler` is a Booker.
inline void handle(Handler& handler, const Message& message, const std::string* answer,
                   Context& context) {
  if (answer != nullptr)
    static_cast<Booker&>(handler).book(message, *answer, context);
  else
    handler.handle(message, context);
}

}  // namespace hapax::flow
