// The stand-in as a program, for work on this machine: build/@name@_double
#include "double.hpp"

#include <cstdio>

int main() {
  httplib::Server server;
  Double other_side(server);
  std::puts("answers on 127.0.0.1:8090");
  std::fflush(stdout);
  return server.listen("127.0.0.1", 8090) ? 0 : 1;
}
