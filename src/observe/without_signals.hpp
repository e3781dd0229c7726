// Threads that no signal is delivered to: signals are for the thread that waits for them.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace hapax::observe {

// A thread that runs `start`. Throws: std::system_error if there is none left.
template <typename Start>
std::thread without_signals(Start start) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(start));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace hapax::observe
