// The handler linked into a binary of its own, which has hapax's whole command line:
//   payments_worker run -c worker.json
#include <hapax/main.hpp>

#include "payments.hpp"

int main(int argc, char** argv) {
  return hapax::Main().on(hapax::handler<Payments>("payments", "1")).run(argc, argv);
}
