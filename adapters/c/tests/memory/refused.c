/* Tests of calls in which memory allocations fail.
 *
 * Each call is tried several times. In attempt n, the n-th allocation of the call fails. The attempts end when the
 * call makes fewer than n allocations. This series of attempts runs twice: first only the n-th allocation fails, then
 * the n-th allocation and all later allocations of the call fail.
 *
 * A valid call with a failing allocation has one of two outcomes. Either it returns NDS_OUT_OF_MEMORY and leaves the
 * output unchanged, or it continues without the allocated memory and gives the correct result.
 *
 * An invalid call with a failing allocation returns NDS_OUT_OF_MEMORY or the status of its fault, and leaves the
 * output unchanged. No failing allocation ends the process.
 *
 * Each attempt runs in a new child process, so that it cannot reuse memory that an earlier attempt has cached. */

#include "../c/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The allocation of this thread that fails: 1 is the next allocation, 2 the one after it. 0: no allocation fails. */
static _Thread_local unsigned long countdown;
static _Thread_local bool and_all_that_follow, was_refused;

static bool refuses(void) {
  if (countdown == 0) {
    return false;
  }
  if (countdown > 1) {
    countdown--;
    return false;
  }
  countdown = and_all_that_follow ? 1 : 0;
  was_refused = true;
  errno = ENOMEM;
  return true;
}

/* Replacements of the allocator. The C library exports its functions under these names too. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
  return refuses() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  return refuses() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
  return refuses() ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return refuses() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  void *made = refuses() ? NULL : __libc_memalign(alignment, bytes);
  if (made == NULL) {
    return ENOMEM;
  }
  *memory = made;
  return 0;
}

enum { MOST_RANK = 9, ROWS = 64, WIDTH = 4, MOST_TUPLES = 3000, PADDED = WIDTH + 1, WARM = 100 };

/* The tested action: a call, or an action with a plan. */
typedef enum action { CALL, MAKE_PLAN, RUN_PLAN, EXPLAIN_PLAN, WRITE, WRITE_PLANNED, MOVE, SHARD, SHARD_COMBINED } action;

/* The fault of the action. */
typedef enum fault {
  NOTHING,
  BAD_INDEX,
  DUPLICATES,
  BAD_AXIS,
  NO_DATA,
  NO_OUTPUT,
  BAD_TYPE,
  BAD_DEVICE,
  BAD_OPTION,
  MISALIGNED,
  ON_UPDATES,
  ON_A_SHAPE,
  SHORT_BUFFER,
  /* Failures whose errors contain shapes. */
  BAD_UPDATES,
  ON_ITSELF,
  OTHER_LAYOUT,
} fault;

/* A problem with its memory. The rows of a strided problem are padded. */
typedef struct made {
  problem problem;
  nds_options options;
  DLTensor output;
  int64_t data_shape[MOST_RANK], index_shape[MOST_RANK], update_shape[MOST_RANK];
  int64_t data_strides[MOST_RANK], update_strides[MOST_RANK];
  float data[ROWS * PADDED], updates[MOST_TUPLES * PADDED];
  float result[MOST_TUPLES * PADDED];
  int64_t indices[MOST_TUPLES * MOST_RANK];
} made;

static void pad_rows(int64_t *strides, const int64_t *shape, int rank) {
  int64_t stride = PADDED;
  strides[rank - 1] = 1;
  for (int axis = rank - 2; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
}

/* Sets the shapes. Data is [1, .., ROWS, WIDTH], and indices address rows. A paged cache is
 * [ROWS, 1, .., WIDTH], so its slots have the numbers of rows. */
static void shape_problem(made *made, operator_name operator_, int rank, int64_t tuples) {
  int update_rank = rank, index_rank = rank;
  bool is_paged = operator_ == SCATTER_PAGED || operator_ == GATHER_PAGED;
  for (int axis = 0; axis < rank; axis++) {
    made->data_shape[axis] = made->update_shape[axis] = made->index_shape[axis] = 1;
  }
  made->data_shape[rank - 2] = ROWS;
  made->data_shape[rank - 1] = made->update_shape[rank - 1] = made->index_shape[rank - 1] = WIDTH;
  made->update_shape[rank - 2] = made->index_shape[rank - 2] = tuples;
  if (operator_ == SCATTER_ND || operator_ == GATHER_ND) {
    update_rank = index_rank = 2;
    made->update_shape[0] = made->index_shape[0] = tuples;
    made->update_shape[1] = WIDTH;
    made->index_shape[1] = rank - 1;
  } else if (operator_ == SCATTER_UPDATE || operator_ == GATHER) {
    index_rank = 1;
    made->index_shape[0] = tuples;
  } else if (operator_ == TENSOR_SCATTER) {
    index_rank = 1;
    made->index_shape[0] = made->data_shape[0];
  } else if (is_paged && rank > 2) {
    index_rank = 1;
    update_rank = rank - 1;
    made->data_shape[rank - 2] = 1;
    made->update_shape[rank - 2] = WIDTH;
    made->data_shape[0] = ROWS;
    made->index_shape[0] = made->update_shape[0] = tuples;
  }
  made->problem.data = tensor_of(made->data, F32, (size_t)rank, made->data_shape, NULL);
  made->problem.indices = tensor_of(made->indices, I64, (size_t)index_rank, made->index_shape, NULL);
  made->problem.updates = tensor_of(made->updates, F32, (size_t)update_rank, made->update_shape, NULL);
}

static void fill_problem(made *made) {
  size_t count = bytes_of(&made->problem.indices) / sizeof(int64_t);
  size_t nd = made->problem.operator_ == SCATTER_ND || made->problem.operator_ == GATHER_ND;
  size_t coordinates = nd ? (size_t)made->problem.data.ndim - 1 : 1;
  uint32_t state = 1;
  for (size_t i = 0; i < count && made->problem.operator_ != TENSOR_SCATTER; i++) {
    made->indices[i] = i % coordinates == coordinates - 1 ? (int64_t)(next_random(&state) % ROWS) : 0;
  }
  for (size_t i = 0; i < COUNT(made->data); i++) {
    made->data[i] = (float)i;
  }
  for (size_t i = 0; i < COUNT(made->updates); i++) {
    made->updates[i] = (float)(next_random(&state) % 100);
    made->result[i] = -7.0f;
  }
}

static void make_problem(made *made, operator_name operator_, int rank, int64_t tuples, bool strided) {
  memset(made, 0, sizeof *made);
  made->problem.operator_ = operator_;
  made->problem.axis = operator_ == GATHER_ND ? 0 : rank - 2;
  if (operator_ == TENSOR_SCATTER && tuples > ROWS) {
    tuples = ROWS;
  }
  shape_problem(made, operator_, rank, tuples);
  fill_problem(made);
  if (strided) {
    pad_rows(made->data_strides, made->data_shape, rank);
    pad_rows(made->update_strides, made->update_shape, made->problem.updates.ndim);
    made->problem.data.strides = made->data_strides;
    made->problem.updates.strides = made->update_strides;
  }
  made->output = is_gather(&made->problem) ? made->problem.updates : made->problem.data;
  made->output.data = made->result;
  made->options = (nds_options){.size = sizeof made->options, .max_threads = 1};
  made->problem.options = &made->options;
}

typedef struct test_case {
  const char *name;
  action action;
  operator_name operator_;
  int rank;
  int64_t tuples;
  bool strided;
  int32_t reduction;
  fault fault;
  nds_status status; /* expected status if all allocations succeed */
} test_case;

/* Every kind of failure, and explanations of plans. */
static const test_case SINGLE_CASES[] = {
    {"an index", CALL, SCATTER_ND, 3, 600, false, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"an index of many", CALL, SCATTER_ND, 3, 3000, true, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"an index to plan for", MAKE_PLAN, SCATTER_UPDATE, 3, 3000, false, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"an index to gather", CALL, GATHER, 3, 600, false, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"a position", CALL, TENSOR_SCATTER, 3, 4, false, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"duplicates", CALL, SCATTER_ND, 3, 600, false, NONE, DUPLICATES, NDS_DUPLICATE_INDEX},
    {"duplicates among many", CALL, SCATTER_UPDATE, 3, 3000, true, NONE, DUPLICATES, NDS_DUPLICATE_INDEX},
    {"duplicates to plan for", MAKE_PLAN, SCATTER_ND, 3, 3000, false, NONE, DUPLICATES, NDS_DUPLICATE_INDEX},
    {"an axis", CALL, SCATTER_UPDATE, 3, 4, false, NONE, BAD_AXIS, NDS_INVALID_ARGUMENT},
    {"an axis to plan for", MAKE_PLAN, GATHER, 3, 4, false, NONE, BAD_AXIS, NDS_INVALID_ARGUMENT},
    {"no data", CALL, SCATTER_ND, 3, 4, false, NONE, NO_DATA, NDS_INVALID_ARGUMENT},
    {"no data of a plan", RUN_PLAN, SCATTER_ND, 3, 4, false, NONE, NO_DATA, NDS_INVALID_ARGUMENT},
    {"no output", CALL, GATHER, 3, 4, false, NONE, NO_OUTPUT, NDS_INVALID_ARGUMENT},
    {"a type", CALL, SCATTER_ELEMENTS, 3, 4, false, NONE, BAD_TYPE, NDS_UNSUPPORTED},
    {"a device", CALL, GATHER_ND, 3, 4, false, NONE, BAD_DEVICE, NDS_UNSUPPORTED},
    {"an option", CALL, SCATTER_ND, 3, 4, false, NONE, BAD_OPTION, NDS_INVALID_ARGUMENT},
    {"an option of a run", RUN_PLAN, SCATTER_ND, 3, 4, false, NONE, BAD_OPTION, NDS_INVALID_ARGUMENT},
    {"an address", CALL, SCATTER_ND, 3, 4, false, NONE, MISALIGNED, NDS_UNSUPPORTED},
    {"an output on updates", CALL, SCATTER_ND, 3, 4, false, NONE, ON_UPDATES, NDS_INVALID_ARGUMENT},
    {"an output on a shape", CALL, SCATTER_ND, 3, 4, false, NONE, ON_A_SHAPE, NDS_INVALID_ARGUMENT},
    {"updates", CALL, SCATTER_ND, 3, 4, false, NONE, BAD_UPDATES, NDS_INVALID_ARGUMENT},
    {"updates of a plan", RUN_PLAN, SCATTER_ND, 3, 4, false, NONE, BAD_UPDATES, NDS_INVALID_ARGUMENT},
    {"an output on itself", CALL, SCATTER_ND, 3, 4, false, NONE, ON_ITSELF, NDS_INVALID_ARGUMENT},
    {"another layout than planned", RUN_PLAN, SCATTER_ND, 3, 4, false, NONE, OTHER_LAYOUT, NDS_INVALID_ARGUMENT},
    {"explained", EXPLAIN_PLAN, SCATTER_ND, 3, 600, false, ADD, NOTHING, NDS_OK},
    {"explained, a gather", EXPLAIN_PLAN, GATHER, 3, 600, false, NONE, NOTHING, NDS_OK},
    {"writes", WRITE, SCATTER_UPDATE, 3, 600, true, NONE, NOTHING, NDS_OK},
    {"many writes", WRITE, SCATTER_UPDATE, 8, 3000, false, NONE, NOTHING, NDS_OK},
    {"writes, an index", WRITE, SCATTER_UPDATE, 3, 600, false, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"writes, updates", WRITE, SCATTER_UPDATE, 3, 4, false, NONE, BAD_UPDATES, NDS_INVALID_ARGUMENT},
    {"writes of a plan", WRITE_PLANNED, SCATTER_UPDATE, 3, 600, false, NONE, NOTHING, NDS_OK},
    {"moves", MOVE, SCATTER_UPDATE, 3, 600, true, NONE, NOTHING, NDS_OK},
    {"many moves", MOVE, SCATTER_UPDATE, 8, 3000, false, NONE, NOTHING, NDS_OK},
    {"moves, a row", MOVE, SCATTER_UPDATE, 3, 600, false, NONE, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"sharded", SHARD, SCATTER_UPDATE, 2, 600, false, ADD, NOTHING, NDS_OK},
    {"sharded, many tuples", SHARD, SCATTER_ND, 2, 3000, false, ADD, NOTHING, NDS_OK},
    {"sharded, an index", SHARD, SCATTER_UPDATE, 2, 600, false, ADD, BAD_INDEX, NDS_INDEX_OUT_OF_BOUNDS},
    {"sharded, updates of destinations", SHARD_COMBINED, SCATTER_UPDATE, 2, 600, false, ADD, NOTHING, NDS_OK},
    {"sharded, last updates", SHARD_COMBINED, SCATTER_ND, 2, 600, false, NONE, NOTHING, NDS_OK},
    {"explained in no room", EXPLAIN_PLAN, SCATTER_ND, 3, 600, false, ADD, SHORT_BUFFER, NDS_INVALID_ARGUMENT},
};

/* Sizes of valid calls. Each is tested with every operator. */
static const struct {
  int rank;
  int64_t tuples;
  bool strided;
  int32_t reduction; /* for scatters that have reductions */
} SIZES[] = {
    {2, 4, false, NONE},   {3, 600, false, ADD},  {3, 600, true, ADD},   {2, 3000, true, NONE},
    {3, 3000, true, MEAN}, {8, 600, true, MAX},   {8, 3000, false, ADD}, {2, 3000, false, MEAN},
    {9, 4, false, NONE},   {9, 3000, true, ADD},
};

static void spoil(made *made, fault fault) {
  static int64_t wrong_shape[] = {4, WIDTH + 1}, zeros[MOST_RANK];
  problem *p = &made->problem;
  switch (fault) {
  case BAD_INDEX:
    made->indices[p->operator_ == TENSOR_SCATTER ? 0 : bytes_of(&p->indices) / sizeof(int64_t) - 1] = 1000;
    break;
  case DUPLICATES:
    made->options.reject_duplicates = 1;
    break;
  case BAD_AXIS:
    p->axis = 77;
    break;
  case BAD_TYPE:
    p->data.dtype.bits = 24;
    break;
  case BAD_DEVICE:
    p->data.device.device_type = 2;
    break;
  case BAD_OPTION:
    made->options.bounds = 9;
    break;
  case MISALIGNED:
    p->updates.byte_offset = 1;
    break;
  case ON_UPDATES:
    made->output.data = made->updates + 3;
    break;
  case ON_A_SHAPE:
    made->output.data = made->data_shape;
    break;
  case BAD_UPDATES:
    p->updates.shape = wrong_shape;
    break;
  case ON_ITSELF:
  case OTHER_LAYOUT:
    made->output.strides = fault == ON_ITSELF ? zeros : made->data_strides;
    pad_rows(made->data_strides, made->data_shape, p->data.ndim);
    break;
  case NOTHING:
  case NO_DATA:
  case NO_OUTPUT:
  case SHORT_BUFFER:
    break;
  }
}

/* Writes the updates to the output, with a conversion. A null `plan` selects a call without a plan. */
static nds_status write_converted(made *made, const nds_plan *plan) {
  const problem *p = &made->problem;
  nds_conversion conversion = {.size = sizeof conversion, .rounding = NDS_ROUNDING_SATURATE};
  nds_write write = {sizeof write, &made->output, &p->updates, &conversion};
  if (plan != NULL) {
    return nds_plan_write(plan, &write, 1, p->options);
  }
  return nds_write_update(&p->indices, p->axis, &write, 1, p->options);
}

/* Moves rows of the output. The numbers of the rows to read are the indices. */
static nds_status move(made *made) {
  static int64_t to[MOST_TUPLES];
  const problem *p = &made->problem;
  for (int64_t i = 0; i < MOST_TUPLES; i++) {
    to[i] = i * 7 % ROWS;
  }
  DLTensor destinations = p->indices, *tensors[] = {&made->output};
  destinations.data = to;
  return nds_move_rows(&p->indices, &destinations, p->axis, tensors, 1, p->options);
}

/* Makes a sharded plan. The starts of the parts are allocated by the library. */
static nds_status shard(const made *made, int32_t combine) {
  static const int64_t starts[] = {0, 3, 40};
  const problem *p = &made->problem;
  const nds_sharding sharding = {sizeof sharding, NDS_SHARDING_STARTS, COUNT(starts), starts};
  nds_sharded_plan *plan = NULL;
  nds_status status = p->operator_ == SCATTER_ND
                          ? nds_shard_scatter_nd(&p->data, &p->indices, &sharding, combine, p->options, &plan)
                          : nds_shard_scatter_update(&p->data, &p->indices, &sharding, combine, p->options, &plan);
  CHECK((plan != NULL) == (status == NDS_OK));
  nds_sharded_plan_free(plan);
  return status;
}

/* Runs the action.
 * RUN_PLAN, EXPLAIN_PLAN and WRITE_PLANNED use a plan that exists before the action, so no allocation of making this plan fails. */
static nds_status act(made *made, nds_plan **plan, const test_case *c) {
  static char text[4096];
  size_t length = c->fault == SHORT_BUFFER ? 3 : sizeof text;
  const problem *p = &made->problem;
  const DLTensor *data = c->fault == NO_DATA ? NULL : &p->data;
  const DLTensor *updates = is_gather(p) ? NULL : &p->updates;
  DLTensor *output = c->fault == NO_OUTPUT ? NULL : &made->output;
  switch (c->action) {
  case CALL:
    return call_with(p, data, &p->indices, &p->updates, output);
  case MAKE_PLAN:
    return make_plan_with(p, data, &p->indices, plan);
  case RUN_PLAN:
    return nds_plan_run(*plan, data, updates, output, p->options);
  case EXPLAIN_PLAN:
    return nds_plan_explain(*plan, text, &length);
  case WRITE:
  case WRITE_PLANNED:
    return write_converted(made, *plan);
  case MOVE:
    return move(made);
  case SHARD:
  case SHARD_COMBINED:
    return shard(made, c->action == SHARD_COMBINED);
  }
  return NDS_INTERNAL;
}

/* Exit statuses of a child: no allocation of its action failed, or at least one failed. */
enum { WENT_THROUGH = 3, REFUSED = 4 };

static int act_in_child(const test_case *c, unsigned long number, bool follow) {
  static made made, before, again;
  make_problem(&made, c->operator_, c->rank, c->tuples, c->strided);
  made.options.reduction = c->reduction;
  nds_plan *plan = NULL;
  if (c->action == RUN_PLAN || c->action == EXPLAIN_PLAN || c->action == WRITE_PLANNED) {
    CHECK_OK(make_plan(&made.problem, &plan));
  }
  spoil(&made, c->fault);
  memcpy(&before, &made, sizeof made);
  and_all_that_follow = follow;
  countdown = number;
  nds_status status = act(&made, &plan, c);
  countdown = 0;
  if (status == NDS_OUT_OF_MEMORY && was_refused) {
    CHECK_STATUS(NDS_OUT_OF_MEMORY, status);
  } else {
    CHECK_STATUS(c->status, status);
  }
  if (status != NDS_OK) {
    CHECK_INT(status, last_info().status);
    CHECK(nds_last_error()[0] != '\0');
    CHECK_BYTES(&before, &made, sizeof made);
    CHECK(c->action != MAKE_PLAN || plan == NULL);
  } else if (c->action == CALL || c->action == RUN_PLAN) {
    memcpy(&again, made.result, sizeof made.result);
    memcpy(made.result, before.result, sizeof made.result);
    CHECK_OK(call(&made.problem, &made.output));
    CHECK_BYTES(made.result, &again, sizeof made.result);
  }
  nds_plan_free(plan);
  return was_refused ? REFUSED : WENT_THROUGH;
}

/* Runs a case in a child. Returns whether one of its allocations failed. */
static bool check_refusal(const test_case *c, unsigned long number, bool follow) {
  fflush(NULL);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    _exit(act_in_child(c, number, follow));
  }
  int status = 0;
  CHECK_INT(pid, waitpid(pid, &status, 0));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == REFUSED || WEXITSTATUS(status) == WENT_THROUGH);
  return WEXITSTATUS(status) == REFUSED;
}

static unsigned long check_refusals(const test_case *c) {
  unsigned long refusals = 0;
  for (int follow = 0; follow <= 1; follow++) {
    for (unsigned long number = 1;; number++) {
      set_case("%s: action %d, operator %d, rank %d, %d tuples, reduction %d, allocation %lu%s", c->name, c->action,
               c->operator_, c->rank, (int)c->tuples, c->reduction, number, follow ? " and all that follow" : "");
      if (!check_refusal(c, number, follow)) {
        break;
      }
      CHECK(number < 1000);
      refusals++;
    }
  }
  return refusals;
}

/* Makes the allocations that a thread makes only once. These allocations do not belong to a call. */
static void set_up_this_thread(void) {
  static made made;
  static const int32_t reductions[] = {NONE, ADD, MEAN};
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    for (size_t i = 0; i < COUNT(reductions); i++) {
      make_problem(&made, operator_, 3, WARM, true);
      made.options.reduction = operator_ < TENSOR_SCATTER ? reductions[i] : NONE;
      CHECK_OK(call(&made.problem, &made.output));
    }
  }
  make_problem(&made, SCATTER_ND, 3, WARM, true);
  made.options.bounds = 9;
  CHECK_STATUS(NDS_INVALID_ARGUMENT, call(&made.problem, &made.output));
}

static unsigned long check_sizes(operator_name operator_, action action) {
  unsigned long refusals = 0;
  for (size_t i = 0; i < COUNT(SIZES); i++) {
    test_case c = {.name = "right", .action = action, .operator_ = operator_};
    c.rank = operator_ == TENSOR_SCATTER && SIZES[i].rank == 2 ? 3 : SIZES[i].rank; /* tensor_scatter has no axis 0 */
    c.tuples = SIZES[i].tuples;
    c.strided = SIZES[i].strided;
    c.reduction = operator_ < TENSOR_SCATTER ? SIZES[i].reduction : NONE;
    refusals += check_refusals(&c);
  }
  return refusals;
}

int main(void) {
  unsigned long refusals = 0;
  set_up_this_thread();
  for (size_t i = 0; i < COUNT(SINGLE_CASES); i++) {
    refusals += check_refusals(&SINGLE_CASES[i]);
  }
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    refusals += check_sizes(operator_, CALL);
    if (operator_ != TENSOR_SCATTER) {
      refusals += check_sizes(operator_, MAKE_PLAN) + check_sizes(operator_, RUN_PLAN);
    }
  }
  CHECK(refusals > 0);
  printf("%lu allocations refused\n", refusals);
  return 0;
}
