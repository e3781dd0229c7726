// hapax linked in instead of loaded: a binary of your own that has the whole command line.
//
//   int main(int argc, char** argv) {
//     return hapax::Main().on(hapax::handler<Payments>("payments")).run(argc, argv);
//   }
#pragma once

#include <vector>

#include "hapax/handler.hpp"

namespace hapax {

class Main {
 public:
  // Makes a handler known under the name that routes use. A route that names a plugin takes the
  // plugin's handler instead. If two other handlers have one name, the worker does not start.
  Main& on(HandlerFactory handler);

  // Runs the command line of `hapax` and returns the process's exit code (see `--help`).
  // Blocks: as long as the command runs. Throws: nothing.
  int run(int argc, char** argv);

 private:
  std::vector<HandlerFactory> handlers_;
};

}  // namespace hapax
