/* Pools of a host, and functions that start threads. */

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

host make_host(parallel_for *run, uint32_t workers) {
  return (host){.pool = {.size = sizeof(nds_pool), .workers = workers, .parallel_for = run}, .threads = 3};
}

const nds_pool *pool_of(host *host) {
  host->pool.ctx = host;
  return &host->pool;
}

static host *count_call(void *ctx, size_t tasks) {
  host *host = ctx;
  host->calls += 1;
  host->tasks += tasks;
  return host;
}

int32_t in_turn(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  count_call(ctx, tasks);
  for (size_t i = 0; i < tasks; i++) {
    task(argument, i);
  }
  return 0;
}

int32_t backwards(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  count_call(ctx, tasks);
  for (size_t i = tasks; i > 0; i--) {
    task(argument, i - 1);
  }
  return 0;
}

typedef struct work {
  host *host;
  size_t tasks;
  void (*task)(void *argument, size_t index);
  void *argument;
  atomic_size_t next;
} work;

static void drain(size_t number, void *shared) {
  (void)number;
  work *work = shared;
  if (work->host->before != NULL) {
    work->host->before();
  }
  for (;;) {
    size_t index = atomic_fetch_add(&work->next, 1);
    if (index >= work->tasks) {
      break;
    }
    work->task(work->argument, index);
  }
  if (work->host->after != NULL) {
    work->host->after();
  }
}

int32_t on_pthreads(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  host *host = count_call(ctx, tasks);
  work work = {.host = host, .tasks = tasks, .task = task, .argument = argument};
  on_threads(host->threads, drain, &work);
  return 0;
}

typedef struct start {
  void (*run)(size_t number, void *shared);
  size_t number;
  void *shared;
} start;

static void *run_start(void *argument) {
  const start *start = argument;
  start->run(start->number, start->shared);
  return NULL;
}

void on_threads(size_t threads, void (*run)(size_t number, void *shared), void *shared) {
  enum { MOST = 16 };
  pthread_t handles[MOST];
  start starts[MOST];
  CHECK(threads <= MOST);
  for (size_t i = 0; i < threads; i++) {
    starts[i] = (start){run, i, shared};
    CHECK_INT(0, pthread_create(&handles[i], NULL, run_start, &starts[i]));
  }
  for (size_t i = 0; i < threads; i++) {
    CHECK_INT(0, pthread_join(handles[i], NULL));
  }
}

int32_t runs_none(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  (void)tasks;
  return in_turn(ctx, 0, task, argument);
}
