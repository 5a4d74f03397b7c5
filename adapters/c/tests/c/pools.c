/* Tests of calls on a pool of the host.
 * A call on a correct pool gives the same bytes as a call on one thread.
 * A call that uses an incorrect pool returns an error. */

#include "check.h"

#include <stdlib.h>

/* Fills the output with bytes of 0x5a, then makes the call. */
static nds_status run(large *large, const nds_options *options) {
  memset(large->output.data, 0x5a, large->bytes);
  large->problem.options = options;
  return call(&large->problem, &large->output);
}

/* Returns the result of the call on one thread. */
static void *serial_result(large *large, int32_t reduction) {
  CHECK_OK(run(large, OPTIONS(.reduction = reduction, .max_threads = 1)));
  void *result = allocate(large->bytes);
  memcpy(result, large->output.data, large->bytes);
  return result;
}

/* Makes the plan on the calling thread, so that all calls of the pool belong to the run. */
static void run_planned(large *large, int32_t reduction, const nds_options *options) {
  large->problem.options = OPTIONS(.reduction = reduction, .max_threads = 1);
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&large->problem, &plan));
  memset(large->output.data, 0x5a, large->bytes);
  const DLTensor *updates = is_gather(&large->problem) ? NULL : &large->problem.updates;
  CHECK_OK(nds_plan_run(plan, &large->problem.data, updates, &large->output, options));
  nds_plan_free(plan);
}

static void sound_pools(large *large, int32_t reduction, const void *expected) {
  static const struct {
    const char *name;
    parallel_for *run;
    uint32_t workers;
  } pools[] = {
      {"in turn", in_turn, 4},
      {"in turn, workers unknown", in_turn, 0},
      {"backwards", backwards, 3},
      {"threads", on_pthreads, 3},
      {"threads, workers unknown", on_pthreads, 0},
      {"more workers than threads", on_pthreads, 1000000},
  };
  for (size_t i = 0; i < COUNT(pools); i++) {
    host host = make_host(pools[i].run, pools[i].workers);
    const nds_options *options = OPTIONS(.reduction = reduction, .pool = pool_of(&host));
    set_case("operator %d, reduction %d, pool: %s", (int)large->problem.operator_, reduction, pools[i].name);
    CHECK_OK(run(large, options));
    CHECK(host.calls > 0 && host.tasks > host.calls);
    CHECK_BYTES(expected, large->output.data, large->bytes);
  }
}

/* max_threads, on the pool of the library and on a pool of the host. */
static void limits(large *large, int32_t reduction, const void *expected) {
  static const int32_t most[] = {0, 2, 3, INT32_MAX};
  for (size_t i = 0; i < COUNT(most); i++) {
    set_case("max_threads %d", most[i]);
    CHECK_OK(run(large, OPTIONS(.reduction = reduction, .max_threads = most[i])));
    CHECK_BYTES(expected, large->output.data, large->bytes);
  }
  host host = make_host(on_pthreads, 4);
  run_planned(large, reduction, OPTIONS(.max_threads = 2, .pool = pool_of(&host)));
  CHECK(host.calls > 0);
  CHECK_BYTES(expected, large->output.data, large->bytes);
  unsigned long calls = host.calls;
  CHECK_OK(run(large, OPTIONS(.reduction = reduction, .max_threads = 1, .pool = pool_of(&host))));
  CHECK_INT((long long)calls, (long long)host.calls);
  CHECK_BYTES(expected, large->output.data, large->bytes);
  CHECK_OK(run(large, OPTIONS(.reduction = reduction, .pool = pool_of(&host), .goal = NDS_GOAL_THROUGHPUT)));
  CHECK_INT((long long)calls, (long long)host.calls);
  CHECK_BYTES(expected, large->output.data, large->bytes);
  CHECK_OK(run(large, OPTIONS(.reduction = reduction, .pool = pool_of(&host), .goal = NDS_GOAL_LATENCY)));
  CHECK((long long)calls < (long long)host.calls);
  CHECK_BYTES(expected, large->output.data, large->bytes);
}

static void good_pools(void) {
  static const struct {
    operator_name operator_;
    int32_t reduction;
  } cases[] = {{SCATTER_ND, ADD}, {GATHER, NONE}, {SCATTER_ND, NONE}, {SCATTER_UPDATE, MEAN}, {SCATTER_ELEMENTS, MAX}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    large large;
    make_large(&large, cases[i].operator_);
    set_case("operator %d, reduction %d", (int)cases[i].operator_, cases[i].reduction);
    void *expected = serial_result(&large, cases[i].reduction);
    sound_pools(&large, cases[i].reduction, expected);
    if (i < 2) {
      limits(&large, cases[i].reduction, expected);
    }
    free(expected);
    free_large(&large);
  }
}

static int32_t fails(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  in_turn(ctx, tasks, task, argument);
  return 7;
}

static int32_t fails_at_once(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  in_turn(ctx, 0, task, argument);
  return tasks > 0 ? -1 : 0;
}

static int32_t runs_one_twice(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  in_turn(ctx, tasks, task, argument);
  task(argument, 0);
  return 0;
}

static int32_t skips_the_last(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  return in_turn(ctx, tasks - 1, task, argument);
}

static int32_t twice_for_another(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  in_turn(ctx, tasks - 1, task, argument);
  task(argument, 0);
  return 0;
}

static int32_t runs_one_too_many(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  in_turn(ctx, tasks, task, argument);
  task(argument, tasks);
  return 0;
}

static int32_t far_out_of_range(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument) {
  task(argument, SIZE_MAX);
  return in_turn(ctx, tasks, task, argument);
}

static const struct {
  const char *name;
  parallel_for *run;
} BAD_POOLS[] = {
    {"fails", fails},
    {"fails at once", fails_at_once},
    {"runs one task twice", runs_one_twice},
    {"skips the last task", skips_the_last},
    {"runs no task", runs_none},
    {"runs one task twice, another never", twice_for_another},
    {"runs one task too many", runs_one_too_many},
    {"runs a task far out of range", far_out_of_range},
};

/* Making a plan fails if it uses the incorrect pool, and succeeds if it does not use the pool. */
static void plan_on_bad_pool(large *large, size_t number) {
  host host = make_host(BAD_POOLS[number].run, 4);
  large->problem.options = OPTIONS(.reduction = is_gather(&large->problem) ? NONE : ADD, .pool = pool_of(&host));
  nds_plan *plan = (nds_plan *)&plan;
  nds_status made = make_plan(&large->problem, &plan);
  CHECK_INT(host.calls > 0 ? NDS_INTERNAL : NDS_OK, made);
  CHECK((plan == NULL) == (made != NDS_OK));
  nds_plan_free(plan);
}

static void bad_pools_on(large *large) {
  bool gathers = is_gather(&large->problem);
  nds_plan *plan = NULL;
  large->problem.options = OPTIONS(.reduction = gathers ? NONE : ADD);
  CHECK_OK(make_plan(&large->problem, &plan));
  for (size_t i = 0; i < COUNT(BAD_POOLS); i++) {
    host host = make_host(BAD_POOLS[i].run, 4);
    const nds_options *options = OPTIONS(.reduction = gathers ? NONE : ADD, .pool = pool_of(&host));
    set_case("operator %d on a pool that %s", (int)large->problem.operator_, BAD_POOLS[i].name);
    CHECK_STATUS(NDS_INTERNAL, run(large, options));
    CHECK_INT(-1, last_info().tuple);
    unsigned long calls = host.calls;
    CHECK(calls > 0);
    const DLTensor *updates = gathers ? NULL : &large->problem.updates;
    CHECK_STATUS(NDS_INTERNAL, nds_plan_run(plan, &large->problem.data, updates, &large->output, options));
    CHECK(host.calls > calls);
    plan_on_bad_pool(large, i);
  }
  nds_plan_free(plan);
}

/* After all failures the library still gives correct results. */
static void bad_pools(void) {
  static const operator_name operators[] = {SCATTER_ND, GATHER};
  for (size_t i = 0; i < COUNT(operators); i++) {
    large large;
    make_large(&large, operators[i]);
    bad_pools_on(&large);
    void *expected = serial_result(&large, NONE);
    CHECK_OK(run(&large, NULL));
    CHECK_BYTES(expected, large.output.data, large.bytes);
    free(expected);
    free_large(&large);
  }
}

void test_pools(void) {
  good_pools();
  bad_pools();
}
