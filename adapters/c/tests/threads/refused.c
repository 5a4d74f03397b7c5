/* Threads that cannot be had: calls run without them, with the same results,
 * and with them as soon as they can be had. */

#define _GNU_SOURCE
#include "../c/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How many more threads may start, and how many have been asked for. */
static atomic_long left;
static atomic_ulong asked_for;

typedef int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

/* In the place of the C library's. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  atomic_fetch_add(&asked_for, 1);
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
  CHECK_INT(0, (long long)atomic_load(&asked_for));
  void *expected = allocate(large.bytes);
  memcpy(expected, large.output.data, large.bytes);
  large.problem.options = OPTIONS(.reduction = ADD);
  /* One thread looks after the start of the others. */
  for (long few = 0; few <= THREADS; few++) {
    set_case("%ld threads", few);
    atomic_store(&left, few);
    atomic_store(&asked_for, 0);
    check_call(&large, expected);
    CHECK_INT(few + 1, (long long)atomic_load(&asked_for));
    pause_for(150);
  }
  set_case("as many threads as are wanted");
  atomic_store(&left, 1000);
  atomic_store(&asked_for, 0);
  check_call(&large, expected);
  CHECK_INT(THREADS + 1, (long long)atomic_load(&asked_for));
  pause_for(150);
  check_call(&large, expected);
  CHECK_INT(THREADS + 1, (long long)atomic_load(&asked_for));
  free(expected);
  free_large(&large);
  return 0;
}
