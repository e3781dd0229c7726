// librdkafka waits by C11's cnd_timedwait, until a time of the wall clock. libfaketime falsifies that
// time, but knows only POSIX's wait: an hour ahead, each wait took an hour. So the one becomes the
// other here. glibc's types are the same ones.
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
  const int error =
      pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
