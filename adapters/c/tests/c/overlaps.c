/* Tests of outputs that share memory with an input, and of outputs whose own elements overlap. */

#include "check.h"

/* Memory that tensors of float32 and of int64 share. */
typedef union memory {
  float floats[64];
  int64_t integers[32];
} memory;

/* Positions of the four tensors of a scatter in one `memory`, and the status that a one-shot call (a call
 * without a plan) must return. The position of the data, updates or output is the number of float32 numbers before the first
 * element of the tensor. The position of the indices is the number of int64 numbers before the first
 * index. */
typedef struct arrangement {
  const char *reason;
  int64_t output_at, output_strides[2];
  int64_t data_at, data_strides[2];
  int64_t indices_at, updates_at;
  nds_status status;
} arrangement;

/* The first field of each arrangement names the memory that the output shares. The data and the output
 * have the shape [4, 3], the updates have the shape [2, 3], and the indices have the shape [2, 1]. */
static const arrangement ARRANGEMENTS[] = {
    {"a row further than data", 3, {3, 1}, 0, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"a row before data", 0, {3, 1}, 3, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"one number of data", 11, {3, 1}, 0, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"data with other strides", 0, {1, 4}, 0, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"data with reversed rows", 9, {-3, 1}, 0, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"the indices", 8, {3, 1}, 20, {3, 1}, 4, 48, NDS_INVALID_ARGUMENT},
    {"the last of the indices", 0, {3, 1}, 20, {3, 1}, 5, 48, NDS_INVALID_ARGUMENT},
    {"the updates", 0, {3, 1}, 20, {3, 1}, 16, 0, NDS_INVALID_ARGUMENT},
    {"the end of the updates", 5, {3, 1}, 20, {3, 1}, 16, 0, NDS_INVALID_ARGUMENT},
    {"the updates, in place", 0, {3, 1}, 0, {3, 1}, 16, 6, NDS_INVALID_ARGUMENT},
    {"the indices, in place", 0, {3, 1}, 0, {3, 1}, 1, 48, NDS_INVALID_ARGUMENT},
    {"nothing: its columns lie between those of data", 1, {6, 2}, 0, {6, 2}, 16, 48, NDS_OK},
    {"itself, with one row for all", 0, {0, 1}, 20, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"itself, with rows that overlap", 0, {1, 1}, 20, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"itself, with rows that cross", 8, {-2, 1}, 20, {3, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"itself, in place", 0, {1, 1}, 0, {1, 1}, 16, 48, NDS_INVALID_ARGUMENT},
    {"nothing", 0, {3, 1}, 12, {3, 1}, 16, 24, NDS_OK},
    {"nothing: inputs may share memory with one another", 0, {3, 1}, 12, {3, 1}, 16, 12, NDS_OK},
    {"all of data: in place", 0, {3, 1}, 0, {3, 1}, 16, 48, NDS_OK},
};

static void fill(memory *memory) {
  for (int i = 0; i < 64; i++) {
    memory->floats[i] = 0.0f; /* bytes of 0 are also valid indices */
  }
}

static void scatter(const arrangement *a, bool planned) {
  memory memory;
  fill(&memory);
  int64_t shape[] = {4, 3}, output_strides[] = {a->output_strides[0], a->output_strides[1]};
  int64_t data_strides[] = {a->data_strides[0], a->data_strides[1]};
  problem p = {
      .operator_ = SCATTER_ND,
      .data = tensor_of(memory.floats + a->data_at, F32, 2, shape, data_strides),
      .indices = TENSOR(memory.integers + a->indices_at, I64, 2, 1),
      .updates = TENSOR(memory.floats + a->updates_at, F32, 2, 3),
  };
  DLTensor output = tensor_of(memory.floats + a->output_at, F32, 2, shape, output_strides);
  if (!planned) {
    check_refused(&p, &output, a->status, &memory, sizeof memory);
    return;
  }
  bool of_indices = strstr(a->reason, "indices") != NULL, of_itself = strstr(a->reason, "itself") != NULL;
  nds_plan *plan = NULL;
  if (of_itself) {
    /* The library may refuse to make a plan for an output whose elements overlap. */
    nds_status made = make_plan_with(&p, &output, &p.indices, &plan);
    CHECK(made == NDS_OK || made == NDS_INVALID_ARGUMENT);
    if (plan == NULL) {
      return;
    }
  } else {
    CHECK_OK(make_plan_with(&p, &output, &p.indices, &plan));
  }
  union memory before = memory;
  CHECK_STATUS(of_indices ? NDS_OK : a->status, nds_plan_run(plan, &p.data, &p.updates, &output, NULL));
  if (a->status != NDS_OK && !of_indices) {
    CHECK_BYTES(&before, &memory, sizeof memory);
  }
  nds_plan_free(plan);
}

/* A gather cannot run in place. The library refuses every call of a gather whose output shares memory with
 * the data or the indices, even if the output has the address and shape of the data. */
static void gathered_over_inputs(void) {
  memory memory;
  fill(&memory);
  DLTensor data = TENSOR(memory.floats, F32, 4), elsewhere = TENSOR(memory.floats + 8, F32, 4);
  DLTensor at = TENSOR(memory.integers + 10, I64, 4), tuples = TENSOR(memory.integers + 10, I64, 4, 1);
  DLTensor on_indices = TENSOR(memory.floats + 25, F32, 4), shifted = TENSOR(memory.floats + 3, F32, 4);
  const problem gathers[] = {
      {.operator_ = GATHER, .data = data, .indices = at},
      {.operator_ = GATHER_ND, .data = data, .indices = tuples},
      {.operator_ = GATHER_ELEMENTS, .data = data, .indices = at},
  };
  DLTensor *const over[] = {&data, &shifted, &on_indices};
  for (size_t i = 0; i < COUNT(gathers) * COUNT(over); i++) {
    set_case("gather %zu over input %zu", i / COUNT(over), i % COUNT(over));
    check_refused(&gathers[i / COUNT(over)], over[i % COUNT(over)], NDS_INVALID_ARGUMENT, &memory, sizeof memory);
  }
  for (size_t i = 0; i < COUNT(gathers); i++) {
    set_case("gather %zu elsewhere", i);
    CHECK_OK(call(&gathers[i], &elsewhere));
    nds_plan *plan = NULL;
    CHECK_OK(make_plan(&gathers[i], &plan));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_run(plan, &data, NULL, &shifted, NULL));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_run(plan, &data, NULL, &data, NULL));
    nds_plan_free(plan);
  }
}

static void cache_over_update(void) {
  memory memory;
  fill(&memory);
  DLTensor cache = TENSOR(memory.floats, F32, 2, 4), update = TENSOR(memory.floats + 6, F32, 2, 2);
  DLTensor shifted = TENSOR(memory.floats + 4, F32, 2, 4), at = TENSOR(memory.integers + 1, I64, 2);
  DLTensor good_at = TENSOR(memory.integers + 16, I64, 2), good_update = TENSOR(memory.floats + 20, F32, 2, 2);
  const problem over[] = {
      {TENSOR_SCATTER, cache, good_at, update, 1, 0, NULL},
      {TENSOR_SCATTER, cache, at, good_update, 1, 0, NULL},
      {TENSOR_SCATTER, shifted, good_at, good_update, 1, 0, NULL},
  };
  for (size_t i = 0; i < COUNT(over); i++) {
    set_case("cache over input %zu", i);
    check_refused(&over[i], &cache, NDS_INVALID_ARGUMENT, &memory, sizeof memory);
  }
}

/* A call whose DLTensor structs, shapes and strides a test can copy to other addresses. */
typedef struct described {
  base base;
  DLTensor *tensors[4]; /* data, indices, updates, output */
  int64_t strides[2];
} described;

enum { DATA, INDICES, UPDATES, OUTPUT, TENSORS };
enum { STRUCT, SHAPE, STRIDES, PARTS };

/* Memory that contains an output from byte OUTPUT_AT on, with unused bytes before and after the output. */
typedef union room {
  int64_t alignment;
  unsigned char bytes[256];
} room;

enum { OUTPUT_AT = 96 };

static void make_described(described *d, operator_name operator_, room *room) {
  memset(room, 0, sizeof *room);
  make_base(&d->base, operator_);
  d->base.output.data = room->bytes + OUTPUT_AT;
  DLTensor *tensors[] = {&d->base.problem.data, &d->base.problem.indices, &d->base.problem.updates, &d->base.output};
  memcpy(d->tensors, tensors, sizeof tensors);
}

static size_t bytes_of_part(const DLTensor *tensor, int part) {
  return part == STRUCT ? sizeof *tensor : (size_t)tensor->ndim * sizeof(int64_t);
}

/* Copies one part of a tensor's description (its DLTensor struct, shape or strides) to the address `at`.
 * The next call of call_described passes the copied part to the library, instead of the original part. */
static void describe_at(described *d, int tensor, int part, unsigned char *at) {
  DLTensor *moved = d->tensors[tensor];
  if (part == STRUCT) {
    memcpy(at, moved, sizeof *moved);
    d->tensors[tensor] = (DLTensor *)(void *)at;
    return;
  }
  if (part == SHAPE) {
    memcpy(at, moved->shape, bytes_of_part(moved, part));
    moved->shape = (int64_t *)(void *)at;
    return;
  }
  d->strides[moved->ndim - 1] = 1;
  if (moved->ndim == 2) {
    d->strides[0] = moved->shape[1];
  }
  memcpy(at, d->strides, bytes_of_part(moved, part));
  moved->strides = (int64_t *)(void *)at;
}

static nds_status call_described(const described *d, const nds_plan *plan) {
  DLTensor *const *t = d->tensors;
  if (plan != NULL) {
    return nds_plan_run(plan, t[DATA], is_gather(&d->base.problem) ? NULL : t[UPDATES], t[OUTPUT], NULL);
  }
  return call_with(&d->base.problem, t[DATA], t[INDICES], t[UPDATES], t[OUTPUT]);
}

/* Copies one part of a tensor's description (its DLTensor struct, shape or strides) to four addresses near
 * the memory of the output, and calls the library once for each address. The library must accept the call
 * if the copied struct, shape or strides end directly before the first byte of the output, or begin
 * directly after the last byte of the output. The library must refuse the call if the copied struct, shape
 * or strides overlap the first 8 bytes or the last 8 bytes of the output. */
static void description_beside_output(operator_name operator_, DLDataType type, int tensor, int part, bool planned) {
  for (int place = 0; place < 4; place++) {
    room room, before;
    described d;
    make_described(&d, operator_, &room);
    d.base.problem.data.dtype = d.base.problem.updates.dtype = d.base.output.dtype = type;
    nds_plan *plan = NULL;
    if (planned) {
      CHECK_OK(make_plan(&d.base.problem, &plan));
    }
    size_t bytes = bytes_of_part(d.tensors[tensor], part), end = OUTPUT_AT + bytes_of(&d.base.output);
    const size_t places[] = {OUTPUT_AT - bytes, end, OUTPUT_AT - bytes + 8, end - 8};
    describe_at(&d, tensor, part, room.bytes + places[place]);
    memcpy(&before, &room, sizeof room);
    set_case("operator %d, tensor %d, part %d, place %d, planned %d", (int)operator_, tensor, part, place, planned);
    CHECK_STATUS(place < 2 ? NDS_OK : NDS_INVALID_ARGUMENT, call_described(&d, plan));
    CHECK_BYTES(&before, &room, place < 2 ? OUTPUT_AT : sizeof room);
    if (place >= 2) {
      CHECK(strstr(nds_last_error(), "lie in memory that is written") != NULL);
    }
    nds_plan_free(plan);
  }
}

static void descriptions_in_output(DLDataType type) {
  for (int operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    base base;
    make_base(&base, operator_);
    for (int at = 0; at < TENSORS * PARTS; at++) {
      int tensor = at / PARTS, part = at % PARTS;
      if (tensor == UPDATES && is_gather(&base.problem)) {
        continue;
      }
      description_beside_output(operator_, type, tensor, part, false);
      if (has_plan(&base.problem) && tensor != INDICES) {
        description_beside_output(operator_, type, tensor, part, true);
      }
    }
  }
}

/* The library must refuse a call if a part of a tensor's description (its DLTensor struct, shape or
 * strides) is stored in the memory of the output. The memory of the output reaches from the lowest to the
 * highest byte of the output's elements. This memory includes gaps between rows and, if a stride is
 * negative, bytes below the address of the first element. An output without elements has no memory, so a
 * description may be stored at the address of this output. */
static void descriptions_in_gaps(void) {
  for (int reversed = 0; reversed <= 1; reversed++) {
    room room;
    described d;
    make_described(&d, SCATTER_ND, &room);
    int64_t strides[] = {reversed ? -8 : 8, 1};
    d.base.output.strides = strides;
    d.base.output.byte_offset = reversed ? 96 : 0;
    describe_at(&d, DATA, SHAPE, room.bytes + OUTPUT_AT + 16);
    set_case("in a gap, reversed %d", reversed);
    CHECK_STATUS(NDS_INVALID_ARGUMENT, call_described(&d, NULL));
  }
  room room;
  described d;
  make_described(&d, GATHER, &room);
  d.base.index_shape[0] = d.base.update_shape[0] = 0;
  describe_at(&d, DATA, SHAPE, room.bytes + OUTPUT_AT);
  set_case("%s", "in no memory");
  CHECK_OK(call_described(&d, NULL));
}

void test_overlaps(void) {
  descriptions_in_output(F32);
  descriptions_in_output(FLOAT4X8);
  descriptions_in_gaps();
  for (size_t i = 0; i < COUNT(ARRANGEMENTS); i++) {
    for (int planned = 0; planned <= 1; planned++) {
      set_case("output shares %s (planned %d)", ARRANGEMENTS[i].reason, planned);
      scatter(&ARRANGEMENTS[i], planned);
    }
  }
  gathered_over_inputs();
  cache_over_update();
}
