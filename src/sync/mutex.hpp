// A mutex that knows what it guards. A build by clang checks that code which uses a guarded member
// holds its mutex (cmake/Layers.cmake). To other compilers this is std::mutex.
#pragma once

#include <mutex>

#ifdef __clang__
#define HAPAX_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define HAPAX_THREAD_SAFETY(attribute)
#endif

// Marks a member that is read and written only while `mutex` is held.
#define HAPAX_GUARDED_BY(mutex) HAPAX_THREAD_SAFETY(guarded_by(mutex))
// Marks a pointer whose target is guarded.
#define HAPAX_PT_GUARDED_BY(mutex) HAPAX_THREAD_SAFETY(pt_guarded_by(mutex))
// Marks a function whose caller holds `mutex`.
#define HAPAX_REQUIRES(mutex) HAPAX_THREAD_SAFETY(requires_capability(mutex))

namespace hapax::sync {

class HAPAX_THREAD_SAFETY(capability("mutex")) Mutex {
 private:
  friend class Lock;
  std::mutex mutex_;
};

// Holds a mutex from its construction to its end.
class HAPAX_THREAD_SAFETY(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) HAPAX_THREAD_SAFETY(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~Lock() HAPAX_THREAD_SAFETY(release_capability()) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // For a condition variable, which locks the mutex again before its wait returns.
  std::unique_lock<std::mutex>& waitable() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace hapax::sync
