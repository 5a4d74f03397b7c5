/* Tests of calls while pthread_create fails.
 * If the library cannot start all threads of its pool, a call runs on the calling thread, with the same result.
 * A call at least 100 ms after the last failed start tries to start the threads again. If all threads start, the pool
 * runs the tasks of calls as soon as it has run a test job. */

#define _GNU_SOURCE
#include "../c/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Number of threads that may still start, and number of requested threads. */
static atomic_long left;
static atomic_ulong requested;

typedef int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

/* Replaces the function of the C library. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  atomic_fetch_add(&requested, 1);
  if (atomic_fetch_sub(&left, 1) <= 0) {
    return EAGAIN;
  }
  create *real;
  void *symbol = dlsym(RTLD_NEXT, "pthread_create");
  memcpy(&real, &symbol, sizeof real);
  return real(thread, attributes, run, argument);
}

static void pause_for(long milliseconds) {
  nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}, NULL);
}

static void check_call(large *large, const void *expected) {
  memset(large->output.data, 0x5a, large->bytes);
  CHECK_OK(call(&large->problem, &large->output));
  CHECK_BYTES(expected, large->output.data, large->bytes);
}

int main(void) {
  enum { THREADS = 3 };
  setenv("RAYON_NUM_THREADS", "3", 1);
  large large;
  make_large(&large, SCATTER_ND);
  large.problem.options = OPTIONS(.reduction = ADD, .max_threads = 1);
  CHECK_OK(call(&large.problem, &large.output));
  CHECK_INT(0, (long long)atomic_load(&requested));
  void *expected = allocate(large.bytes);
  memcpy(expected, large.output.data, large.bytes);
  large.problem.options = OPTIONS(.reduction = ADD);
  /* The pool needs THREADS workers and one thread that starts them. */
  for (long few = 0; few <= THREADS; few++) {
    set_case("%ld threads", few);
    atomic_store(&left, few);
    atomic_store(&requested, 0);
    check_call(&large, expected);
    CHECK_INT(few + 1, (long long)atomic_load(&requested));
    pause_for(150);
  }
  set_case("all threads");
  atomic_store(&left, 1000);
  atomic_store(&requested, 0);
  check_call(&large, expected);
  CHECK_INT(THREADS + 1, (long long)atomic_load(&requested));
  pause_for(150);
  check_call(&large, expected);
  CHECK_INT(THREADS + 1, (long long)atomic_load(&requested));
  free(expected);
  free_large(&large);
  return 0;
}
