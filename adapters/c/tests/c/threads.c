/* Concurrent calls from several threads, and calls from forked children. */

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4 };

/* A call, its plan and its expected result, which threads share. */
typedef struct shared {
  large large;
  nds_plan *plan;
  void *expected;
} shared;

static void make_shared(shared *shared, operator_name operator_, const nds_options *options) {
  make_large(&shared->large, operator_);
  shared->large.problem.options = options;
  CHECK_OK(make_plan(&shared->large.problem, &shared->plan));
  shared->expected = allocate(shared->large.bytes);
  CHECK_OK(call(&shared->large.problem, &shared->large.output));
  memcpy(shared->expected, shared->large.output.data, shared->large.bytes);
}

static void free_shared(shared *shared) {
  nds_plan_free(shared->plan);
  free(shared->expected);
  free_large(&shared->large);
}

static nds_status run_shared(const shared *shared, DLTensor *output, bool planned) {
  const problem *p = &shared->large.problem;
  const DLTensor *updates = is_gather(p) ? NULL : &p->updates;
  return planned ? nds_plan_run(shared->plan, &p->data, updates, output, NULL) : call(p, output);
}

static void run_the_plan(size_t number, void *argument) {
  const shared *shared = argument;
  DLTensor output = shared->large.output;
  output.data = allocate(shared->large.bytes);
  for (size_t turn = 0; turn < 4; turn++) {
    set_case("thread %zu, turn %zu", number, turn);
    memset(output.data, 0x5a, shared->large.bytes);
    CHECK_OK(run_shared(shared, &output, turn % 2 == 0));
    CHECK_BYTES(shared->expected, output.data, shared->large.bytes);
  }
  free(output.data);
}

static void large_calls_at_once(void) {
  static const operator_name operators[] = {SCATTER_ND, GATHER};
  for (size_t i = 0; i < COUNT(operators); i++) {
    shared shared;
    make_shared(&shared, operators[i], operators[i] == GATHER ? NULL : OPTIONS(.reduction = ADD));
    on_threads(THREADS, run_the_plan, &shared);
    free_shared(&shared);
  }
}

/* Alternates small valid and invalid calls. Each thread must see only its own errors. */
static void small_calls(size_t number, void *argument) {
  nds_plan *plan = argument;
  for (int64_t turn = 0; turn < 200; turn++) {
    base base;
    make_base(&base, (operator_name)(((int64_t)number + turn) % (GATHER_PAGED + 1)));
    set_case("thread %zu, turn %d", number, (int)turn);
    CHECK_OK(call(&base.problem, &base.output));
    make_base(&base, SCATTER_ND);
    CHECK_OK(nds_plan_run(plan, &base.problem.data, &base.problem.updates, &base.output, NULL));
    CHECK(base.result[3] == 100.0f && base.result[0] == 103.0f && base.result[6] == 6.0f);
    base.indices[1] = 1000 * (int64_t)number + turn + 4;
    CHECK_STATUS(NDS_INDEX_OUT_OF_BOUNDS, call(&base.problem, &base.output));
    CHECK_INT(base.indices[1], last_info().index);
  }
}

static void small_calls_at_once(void) {
  base base;
  make_base(&base, SCATTER_ND);
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&base.problem, &plan));
  on_threads(THREADS, small_calls, plan);
  nds_plan_free(plan);
}

void test_threads(void) {
  small_calls_at_once();
  large_calls_at_once();
}

static void on_alarm(int signal) {
  (void)signal;
}

/* Ends a forked child. The exit status of the child is `failed_step`.
 * A successful child (`failed_step` 0) executes the program `true` instead of exiting. If the child exited, valgrind
 * would report the memory of the parent's threads as lost, because these threads do not exist in the child. */
_Noreturn static void leave(int failed_step) {
  if (failed_step == 0) {
    execlp("true", "true", (char *)NULL);
    failed_step = 127;
  }
  _exit(failed_step);
}

/* Runs a function in a child process. Returns the number of the child's failed step, or 0 if no step failed.
 * If the child has not ended after `seconds`, this function kills the child, and the test fails. */
static int run_in_child(int (*child)(void *), void *argument, unsigned seconds) {
  fflush(NULL);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    leave(child(argument));
  }
  struct sigaction action = {.sa_handler = on_alarm}, before; /* no SA_RESTART: waitpid returns */
  sigaction(SIGALRM, &action, &before);
  alarm(seconds);
  int status = 0;
  pid_t ended = waitpid(pid, &status, 0);
  bool hangs = ended < 0 && errno == EINTR;
  alarm(0);
  if (hangs) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  sigaction(SIGALRM, &before, NULL);
  CHECK(!hangs);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

enum { CHILD_SECONDS = 300 };

static bool gives_the_same(const shared *shared, DLTensor *output, bool planned) {
  memset(output->data, 0x5a, shared->large.bytes);
  return run_shared(shared, output, planned) == NDS_OK && memcmp(shared->expected, output->data, shared->large.bytes) == 0;
}

/* Every kind of call in a child. */
static int child_calls(void *argument) {
  shared *shared = argument;
  problem *p = &shared->large.problem;
  DLTensor *output = &shared->large.output;
  if (!gives_the_same(shared, output, false)) {
    return 1;
  }
  if (!gives_the_same(shared, output, true)) {
    return 2;
  }
  nds_plan_free(shared->plan);
  if (make_plan(p, &shared->plan) != NDS_OK || !gives_the_same(shared, output, true)) {
    return 3;
  }
  p->options = OPTIONS(.reduction = ADD, .max_threads = 4);
  if (!gives_the_same(shared, output, false)) {
    return 4;
  }
  host host = make_host(on_pthreads, 2);
  p->options = OPTIONS(.reduction = ADD, .pool = pool_of(&host));
  if (!gives_the_same(shared, output, false) || host.calls == 0) {
    return 5;
  }
  int64_t *indices = p->indices.data;
  indices[0] = INT64_C(1) << 40;
  if (call(p, output) != NDS_INDEX_OUT_OF_BOUNDS || last_info().index != indices[0]) {
    return 6;
  }
  free_shared(shared);
  return 0;
}

static int first_call_of_child(void *nothing) {
  (void)nothing;
  large large;
  make_large(&large, SCATTER_ND);
  nds_status status = call(&large.problem, &large.output);
  free_large(&large);
  return (int)status;
}

/* A child of a process without a pool may start its own threads. */
void test_fork_before_threads(void) {
  CHECK_INT(0, run_in_child(first_call_of_child, NULL, CHILD_SECONDS));
}

static atomic_bool at_work;
static atomic_ulong failures;

/* Repeats calls that allocate and free memory, until `at_work` is cleared.
 * Valgrind runs only one thread at a time, so this thread pauses after each iteration to let the other threads run. */
static void *keep_calling(void *plan) {
  while (atomic_load(&at_work)) {
    base base;
    nds_plan *made = NULL;
    make_base(&base, SCATTER_ND);
    bool good = call(&base.problem, &base.output) == NDS_OK && make_plan(&base.problem, &made) == NDS_OK &&
                nds_plan_run(plan, &base.problem.data, &base.problem.updates, &base.output, NULL) == NDS_OK;
    nds_plan_free(made);
    atomic_fetch_add(&failures, good ? 0 : 1);
    nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
  }
  return NULL;
}

static int small_child(void *plan) {
  base base;
  make_base(&base, SCATTER_ND);
  if (call(&base.problem, &base.output) != NDS_OK || base.result[3] != 100.0f) {
    return 1;
  }
  make_base(&base, SCATTER_ND);
  if (nds_plan_run(plan, &base.problem.data, &base.problem.updates, &base.output, NULL) != NDS_OK) {
    return 2;
  }
  return base.result[3] != 100.0f ? 3 : 0;
}

/* Forks while another thread makes calls.
 * A lock that the other thread holds at the time of the fork must not block the child. */
static void fork_beside_calls(void) {
  base base;
  make_base(&base, SCATTER_ND);
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&base.problem, &plan));
  pthread_t thread;
  atomic_store(&at_work, true);
  CHECK_INT(0, pthread_create(&thread, NULL, keep_calling, plan));
  for (int turn = 0; turn < 40; turn++) {
    CHECK_INT(0, run_in_child(small_child, plan, CHILD_SECONDS));
  }
  atomic_store(&at_work, false);
  CHECK_INT(0, pthread_join(thread, NULL));
  CHECK_INT(0, (long long)atomic_load(&failures));
  nds_plan_free(plan);
}

void test_fork(void) {
  shared shared;
  make_shared(&shared, SCATTER_ND, OPTIONS(.reduction = ADD));
  CHECK_INT(0, run_in_child(child_calls, &shared, CHILD_SECONDS));
  CHECK(gives_the_same(&shared, &shared.large.output, false)); /* the parent still gives the same result */
  free_shared(&shared);
  fork_beside_calls();
}
