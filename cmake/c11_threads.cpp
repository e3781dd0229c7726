// Linked in under ThreadSanitizer only. librdkafka uses C11's threads, which ThreadSanitizer does
// not know: it crashes on a thread that it did not see begin, and takes what a lock or a queue
// orders for a race. It knows POSIX's, and in glibc the types are the same ones.
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace {

auto* mutex_of(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
auto* condition_of(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }
int answer(int error) {
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

// Without ThreadSanitizer's knowledge: how librdkafka makes the object known to other threads, it
// does not see. It knows of each memcpy, also of one in a file that is not instrumented.
template <class T>
void put(T& where, const T& what) {
  auto* const to = reinterpret_cast<volatile unsigned char*>(&where);
  const auto* const from = reinterpret_cast<const volatile unsigned char*>(&what);
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = from[i];
}

struct Start {
  thrd_start_t function;
  void* argument;
};

void* run(void* given) {
  const std::unique_ptr<Start> start(static_cast<Start*>(given));
  return reinterpret_cast<void*>(std::intptr_t{start->function(start->argument)});
}

}  // namespace

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto start = std::make_unique<Start>(Start{function, argument});
  const int error = pthread_create(thread, nullptr, run, start.get());
  if (error == 0) (void)start.release();
  return answer(error);
}

int thrd_join(thrd_t thread, int* result) {
  void* returned = nullptr;
  const int error = pthread_join(thread, &returned);
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(returned));
  return answer(error);
}

int mtx_init(mtx_t* mutex, int type) {
  static const pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
  static const pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  put(*mutex_of(mutex), (type & mtx_recursive) != 0 ? recursive : plain);
  return thrd_success;
}
void mtx_destroy(mtx_t*) {}
int mtx_lock(mtx_t* mutex) { return answer(pthread_mutex_lock(mutex_of(mutex))); }
int mtx_unlock(mtx_t* mutex) { return answer(pthread_mutex_unlock(mutex_of(mutex))); }

int cnd_init(cnd_t* condition) {
  static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
  put(*condition_of(condition), fresh);
  return thrd_success;
}
void cnd_destroy(cnd_t*) {}
int cnd_signal(cnd_t* condition) { return answer(pthread_cond_signal(condition_of(condition))); }
int cnd_broadcast(cnd_t* condition) {
  return answer(pthread_cond_broadcast(condition_of(condition)));
}
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return answer(pthread_cond_wait(condition_of(condition), mutex_of(mutex)));
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return answer(pthread_cond_timedwait(condition_of(condition), mutex_of(mutex), until));
}

}  // extern "C"
