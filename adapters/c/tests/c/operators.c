/* Tests of every operator, compared with values computed by hand: with one-shot calls and plans, out of
 * place and in place. */

#include "check.h"

#include <stdlib.h>

/* A problem and its expected result. */
typedef struct example {
  const char *reason;
  problem problem;
  DLTensor output;
} example;

#define INTS(...) ((const int32_t[]){__VA_ARGS__})

/* Runs the examples. The memory of `output` holds the expected values of each example. */
static void check_examples(const example *examples, size_t count) {
  for (size_t i = 0; i < count; i++) {
    set_case("%s", examples[i].reason);
    check_everywhere(&examples[i].problem, &examples[i].output, examples[i].output.data);
  }
}

static void scatter_nd_examples(void) {
  const example examples[] = {
      {"ONNX ScatterND, first example",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(INTS(1, 2, 3, 4, 5, 6, 7, 8), I32, 8),
        .indices = TENSOR(LONGS(4, 3, 1, 7), I64, 4, 1),
        .updates = TENSOR(INTS(9, 10, 11, 12), I32, 4)},
       TENSOR(INTS(1, 11, 3, 10, 9, 6, 7, 12), I32, 8)},
      {"rows; the last of two duplicates stays",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(INTS(1, 2, 3, 4, 5, 6), I32, 3, 2),
        .indices = TENSOR(LONGS(1, -1, 1), I64, 3, 1),
        .updates = TENSOR(INTS(7, 8, 9, 10, 11, 12), I32, 3, 2)},
       TENSOR(INTS(1, 2, 11, 12, 9, 10), I32, 3, 2)},
      {"tuples as long as the rank",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(INTS(1, 2, 3, 4), I32, 2, 2),
        .indices = TENSOR(LONGS(0, 1, -1, 0), I64, 2, 2),
        .updates = TENSOR(INTS(20, 30), I32, 2)},
       TENSOR(INTS(1, 20, 30, 4), I32, 2, 2)},
      {"empty tuples address the whole tensor",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(INTS(1, 2), I32, 2),
        .indices = TENSOR(NULL, I64, 3, 0),
        .updates = TENSOR(INTS(1, 1, 2, 2, 3, 4), I32, 3, 2),
        .options = OPTIONS(.reduction = ADD)},
       TENSOR(INTS(7, 9), I32, 2)},
      {"data of rank 0",
       {.operator_ = SCATTER_ND,
        .data = SCALAR(INTS(1), I32),
        .indices = TENSOR(NULL, I64, 2, 0),
        .updates = TENSOR(INTS(5, 6), I32, 2)},
       SCALAR(INTS(6), I32)},
      {"no tuples: the output is the data",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(INTS(1, 2, 3), I32, 3),
        .indices = TENSOR(NULL, I64, 0, 1),
        .updates = TENSOR(NULL, I32, 0)},
       TENSOR(INTS(1, 2, 3), I32, 3)},
  };
  check_examples(examples, COUNT(examples));
}

static void axis_examples(void) {
  const example examples[] = {
      {"scatter_update along the last axis",
       {.operator_ = SCATTER_UPDATE,
        .data = TENSOR(INTS(7, 8, 9, 4, 5, 6), I32, 2, 3),
        .indices = TENSOR(LONGS(2, 0), I64, 2),
        .updates = TENSOR(INTS(1, 2, 3, 4), I32, 2, 2),
        .axis = -1},
       TENSOR(INTS(2, 8, 1, 4, 5, 3), I32, 2, 3)},
      {"scatter_update of one row, with an index of rank 0",
       {.operator_ = SCATTER_UPDATE,
        .data = TENSOR(INTS(1, 2, 3, 4), I32, 2, 2),
        .indices = SCALAR(LONGS(-1), I64),
        .updates = TENSOR(INTS(8, 9), I32, 2),
        .options = OPTIONS(.reduction = SUB)},
       TENSOR(INTS(1, 2, -5, -5), I32, 2, 2)},
      {"ONNX ScatterElements, along the first axis",
       {.operator_ = SCATTER_ELEMENTS,
        .data = TENSOR(INTS(0, 0, 0, 0, 0, 0, 0, 0, 0), I32, 3, 3),
        .indices = TENSOR(LONGS(1, 0, 2, 0, 2, 1), I64, 2, 3),
        .updates = TENSOR(INTS(10, 11, 12, 20, 21, 22), I32, 2, 3)},
       TENSOR(INTS(20, 11, 0, 10, 0, 22, 0, 21, 12), I32, 3, 3)},
      {"ONNX ScatterElements, fewer indices than data",
       {.operator_ = SCATTER_ELEMENTS,
        .data = TENSOR(INTS(1, 2, 3, 4, 5), I32, 1, 5),
        .indices = TENSOR(LONGS(1, -2), I64, 1, 2),
        .updates = TENSOR(INTS(11, 21), I32, 1, 2),
        .axis = 1},
       TENSOR(INTS(1, 11, 3, 21, 5), I32, 1, 5)},
  };
  check_examples(examples, COUNT(examples));
}

static void cache_examples(void) {
  const example examples[] = {
      {"one token for each of two sequences",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), I32, 2, 3, 2),
        .indices = TENSOR(LONGS(1, 2), I64, 2),
        .updates = TENSOR(INTS(1, 2, 3, 4), I32, 2, 1, 2),
        .axis = -2},
       TENSOR(INTS(0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4), I32, 2, 3, 2)},
      {"circular: rows wrap around at the end",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(0, 1, 2, 3, 4, 5), I32, 1, 6),
        .indices = TENSOR(LONGS(11), I64, 1),
        .updates = TENSOR(INTS(50, 51), I32, 1, 2),
        .axis = 1,
        .circular = 1},
       TENSOR(INTS(51, 1, 2, 3, 4, 50), I32, 1, 6)},
      {"one position that all sequences share",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(0, 0, 0, 0), I32, 2, 2),
        .indices = SCALAR(INTS(1), I32),
        .updates = TENSOR(INTS(1, 2), I32, 2, 1),
        .axis = 1},
       TENSOR(INTS(0, 1, 0, 2), I32, 2, 2)},
  };
  check_examples(examples, COUNT(examples));
}

/* Idle slots of a batch of sequences. With the option `bounds` 1, the library skips each sequence whose
 * position is negative. */
static void caches_with_idle_slots(void) {
  const example examples[] = {
      {"the second of three sequences is idle",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(1, 2, 3, 4, 5, 6, 7, 8, 9), I32, 3, 3),
        .indices = TENSOR(LONGS(1, -1, 2), I64, 3),
        .updates = TENSOR(INTS(20, 50, 90), I32, 3, 1),
        .axis = 1,
        .options = OPTIONS(.bounds = SKIP)},
       TENSOR(INTS(1, 20, 3, 4, 5, 6, 7, 8, 90), I32, 3, 3)},
      {"circular, by the lowest position",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(1, 2, 3, 4, 5, 6), I32, 2, 3),
        .indices = TENSOR(LONGS(INT64_MIN, 5), I64, 2),
        .updates = TENSOR(INTS(10, 20, 60, 40), I32, 2, 2),
        .axis = 1,
        .circular = 1,
        .options = OPTIONS(.bounds = SKIP, .max_threads = 1)},
       TENSOR(INTS(1, 2, 3, 40, 5, 60), I32, 2, 3)},
      {"all of them, by the one position that they share",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(1, 2, 3, 4), I32, 2, 2),
        .indices = SCALAR(INTS(-1), I32),
        .updates = TENSOR(INTS(8, 9), I32, 2, 1),
        .axis = 1,
        .options = OPTIONS(.bounds = SKIP)},
       TENSOR(INTS(1, 2, 3, 4), I32, 2, 2)},
      {"none: positions of an unsigned type are not negative",
       {.operator_ = TENSOR_SCATTER,
        .data = TENSOR(INTS(1, 2, 3, 4), I32, 2, 2),
        .indices = TENSOR(((const uint8_t[]){255, 254}), U8, 2),
        .updates = TENSOR(INTS(8, 9), I32, 2, 1),
        .axis = 1,
        .circular = 1,
        .options = OPTIONS(.bounds = SKIP)},
       TENSOR(INTS(1, 8, 9, 4), I32, 2, 2)},
  };
  check_examples(examples, COUNT(examples));
}

/* If write_indices is null, the rows of every sequence begin at position 0. */
static void cache_without_positions(void) {
  for (int32_t circular = 0; circular <= 1; circular++) {
    int32_t cache[] = {1, 2, 3, 4, 5, 6}, update[] = {10, 11, 40, 41};
    const int32_t expected[] = {10, 11, 3, 40, 41, 6};
    DLTensor past = TENSOR(cache, I32, 2, 3), rows = TENSOR(update, I32, 2, 2);
    int32_t result[6] = {0};
    DLTensor output = TENSOR(result, I32, 2, 3);
    set_case("circular %d", circular);
    CHECK_OK(nds_tensor_scatter(&past, &rows, NULL, 1, circular, &output, NULL));
    CHECK_BYTES(expected, result, sizeof expected);
    CHECK_OK(nds_tensor_scatter(&past, &rows, NULL, 1, circular, &past, NULL));
    CHECK_BYTES(expected, cache, sizeof expected);
  }
}

static void gather_examples(void) {
  const int32_t *numbers = INTS(0, 1, 2, 3, 4, 5, 6, 7);
  const example examples[] = {
      {"ONNX GatherND, first example",
       {.operator_ = GATHER_ND,
        .data = TENSOR(numbers, I32, 2, 2),
        .indices = TENSOR(LONGS(0, 0, 1, 1), I64, 2, 2)},
       TENSOR(INTS(0, 3), I32, 2)},
      {"ONNX GatherND, with a batch dim",
       {.operator_ = GATHER_ND,
        .data = TENSOR(numbers, I32, 2, 2, 2),
        .indices = TENSOR(LONGS(1, 0), I64, 2, 1),
        .axis = 1},
       TENSOR(INTS(2, 3, 4, 5), I32, 2, 2)},
      {"ONNX Gather, along the first axis",
       {.operator_ = GATHER,
        .data = TENSOR(numbers, I32, 3, 2),
        .indices = TENSOR(LONGS(0, 1, 1, 2), I64, 2, 2)},
       TENSOR(INTS(0, 1, 2, 3, 2, 3, 4, 5), I32, 2, 2, 2)},
      {"Gather of a column, with an index of rank 0",
       {.operator_ = GATHER,
        .data = TENSOR(numbers, I32, 3, 2),
        .indices = SCALAR(LONGS(-1), I64),
        .axis = -1},
       TENSOR(INTS(1, 3, 5), I32, 3)},
      {"ONNX GatherElements, first example",
       {.operator_ = GATHER_ELEMENTS,
        .data = TENSOR(INTS(1, 2, 3, 4), I32, 2, 2),
        .indices = TENSOR(LONGS(0, 0, 1, 0), I64, 2, 2),
        .axis = 1},
       TENSOR(INTS(1, 1, 4, 3), I32, 2, 2)},
      {"what is skipped is zero",
       {.operator_ = GATHER,
        .data = TENSOR(INTS(1, 2, 3), I32, 3),
        .indices = TENSOR(LONGS(2, 3, -1, -4), I64, 4),
        .options = OPTIONS(.bounds = SKIP)},
       TENSOR(INTS(3, 0, 3, 0), I32, 4)},
      {"what is clamped is the nearest end",
       {.operator_ = GATHER,
        .data = TENSOR(INTS(1, 2, 3), I32, 3),
        .indices = TENSOR(LONGS(2, 3, -1, -4), I64, 4),
        .options = OPTIONS(.bounds = CLAMP, .forbid_negative = 1)},
       TENSOR(INTS(3, 3, 1, 1), I32, 4)},
  };
  check_examples(examples, COUNT(examples));
}

/* A cache of two blocks of two slots. Its strides are those of a cache that stores the elements of a slot
 * apart: [blocks, elements, block_size]. */
static void paged_examples(void) {
  static const int32_t cache[] = {0, 1, 2, 3, 4, 5, 6, 7}, steps[] = {10, 11, 20, 21, 30, 31};
  const DLTensor data = TENSOR(cache, I32, 2, 2, 2), slots = TENSOR(LONGS(3, -1, 0), I64, 3);
  const DLTensor apart = STRIDED(cache, I32, DIMS(2, 2, 2), DIMS(4, 1, 2)), updates = TENSOR(steps, I32, 3, 2);
  const example examples[] = {
      {"a paged cache; a negative slot is skipped",
       {SCATTER_PAGED, data, slots, updates, 0, 0, NULL},
       TENSOR(INTS(30, 31, 2, 3, 4, 5, 10, 11), I32, 2, 2, 2)},
      {"slots of rank 2",
       {SCATTER_PAGED, data, TENSOR(LONGS(2, 1), I64, 1, 2), TENSOR(steps, I32, 1, 2, 2), 0, 0, NULL},
       TENSOR(INTS(0, 1, 20, 21, 10, 11, 6, 7), I32, 2, 2, 2)},
      {"the last of several updates of a slot stays",
       {SCATTER_PAGED, data, TENSOR(LONGS(1, 2, 1), I64, 3), updates, 0, 0, OPTIONS(.bounds = SKIP_NEGATIVE)},
       TENSOR(INTS(0, 1, 30, 31, 20, 21, 6, 7), I32, 2, 2, 2)},
      {"a slot beyond the last one, skipped",
       {SCATTER_PAGED, data, TENSOR(LONGS(4, -5, 1), I64, 3), updates, 0, 0, OPTIONS(.bounds = SKIP)},
       TENSOR(INTS(0, 1, 30, 31, 4, 5, 6, 7), I32, 2, 2, 2)},
      {"slots to read; what is skipped is zero",
       {.operator_ = GATHER_PAGED, .data = data, .indices = slots},
       TENSOR(INTS(6, 7, 0, 0, 0, 1), I32, 3, 2)},
      {"slots of a cache with other strides",
       {.operator_ = GATHER_PAGED, .data = apart, .indices = slots},
       TENSOR(INTS(5, 7, 0, 0, 0, 2), I32, 3, 2)},
      {"negative indices below their axis, skipped along an axis",
       {SCATTER_UPDATE, TENSOR(cache, I32, 4, 2), TENSOR(LONGS(-1, -5, 0), I64, 3), updates, 0, 0,
        OPTIONS(.bounds = SKIP_NEGATIVE)},
       TENSOR(INTS(30, 31, 2, 3, 4, 5, 10, 11), I32, 4, 2)},
  };
  check_examples(examples, COUNT(examples));
}

/* Tensors without elements need no memory. */
static void empty_examples(void) {
  const example examples[] = {
      {"data without rows",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(NULL, F32, 0, 3),
        .indices = TENSOR(NULL, I64, 0, 1),
        .updates = TENSOR(NULL, F32, 0, 3)},
       TENSOR(NULL, F32, 0, 3)},
      {"rows without columns",
       {.operator_ = SCATTER_ND,
        .data = TENSOR(NULL, F32, 4, 0),
        .indices = TENSOR(LONGS(3, 3), I64, 2, 1),
        .updates = TENSOR(NULL, F32, 2, 0)},
       TENSOR(NULL, F32, 4, 0)},
      {"no elements to gather",
       {.operator_ = GATHER, .data = TENSOR(INTS(1, 2), I32, 2), .indices = TENSOR(NULL, I64, 0)},
       TENSOR(NULL, I32, 0)},
  };
  for (size_t i = 0; i < COUNT(examples); i++) {
    problem p = examples[i].problem;
    DLTensor output = examples[i].output;
    set_case("%s", examples[i].reason);
    CHECK_OK(call(&p, &output));
    nds_plan *plan = NULL;
    CHECK_OK(make_plan(&p, &plan));
    CHECK_OK(nds_plan_run(plan, &p.data, is_gather(&p) ? NULL : &p.updates, &output, NULL));
    nds_plan_free(plan);
  }
}

static void versions(void) {
  unsigned major, minor, patch;
  CHECK(nds_version() != NULL);
  char *end;
  major = (unsigned)strtoul(nds_version(), &end, 10);
  CHECK_INT('.', *end);
  minor = (unsigned)strtoul(end + 1, &end, 10);
  CHECK_INT('.', *end);
  patch = (unsigned)strtoul(end + 1, &end, 10);
  CHECK(major + minor + patch > 0);
  CHECK_INT(1, nds_abi_version());
}

void test_operators(void) {
  versions();
  scatter_nd_examples();
  axis_examples();
  cache_examples();
  caches_with_idle_slots();
  cache_without_positions();
  gather_examples();
  paged_examples();
  empty_examples();
}
