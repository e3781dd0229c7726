// A binary of your own with the whole command line of hapax, and with handlers linked in, not
// loaded as plugins.
//
//   int main(int argc, char** argv) {
//     return hapax::Main().on(hapax::handler<Payments>("payments")).run(argc, argv);
//   }
#pragma once

#include <vector>

#include "hapax/handler.hpp"

namespace hapax {

// Thread safety: none; use it on the main thread.
class Main {
 public:
  // Makes a handler known under the name that routes use. If a route names a plugin, it takes the
  // plugin's handler instead. If two handlers of one name are linked in or given by --plugin, hapax
  // refuses a route that names them (exit code 3).
  // Throws: nothing. Blocks: no.
  Main& on(HandlerFactory handler);

  // Runs the command line of `hapax` and returns the process's exit code (see `--help`). Call it
  // once. A worker may also end the process itself, with the same codes.
  // Blocks: as long as the command runs. Throws: nothing.
  int run(int argc, char** argv);

 private:
  std::vector<HandlerFactory> handlers_;
};

}  // namespace hapax
