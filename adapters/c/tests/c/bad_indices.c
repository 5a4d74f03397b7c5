/* Indices out of bounds and duplicates: each failure must report the correct status,
 * tuple, axis and index. */

#include "check.h"

/* Expected values of nds_error_info. */
typedef struct facts {
  nds_status status;
  int64_t tuple, other_tuple, axis, axis_size, index;
} facts;

static void check_facts(const facts *expected) {
  nds_error_info info = last_info();
  CHECK_INT(sizeof info, info.size);
  CHECK_INT(expected->status, info.status);
  CHECK_INT(expected->tuple, info.tuple);
  CHECK_INT(expected->other_tuple, info.other_tuple);
  CHECK_INT(expected->axis, info.axis);
  CHECK_INT(expected->axis_size, info.axis_size);
  CHECK_INT(expected->index, info.index);
}

static int32_t NUMBERS[64];

#define NUMS(...) TENSOR(NUMBERS, I32, __VA_ARGS__)
#define INDEX(type, ...) ((const type[]){__VA_ARGS__})
#define OUT(tuple, axis, size, index) {NDS_INDEX_OUT_OF_BOUNDS, tuple, -1, axis, size, index}
#define TWICE(tuple, other) {NDS_DUPLICATE_INDEX, tuple, other, -1, -1, -1}

typedef struct bad_index {
  const char *reason;
  facts facts;
  problem problem;
  DLTensor output;
} bad_index;

static void check_bad(const bad_index *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int32_t result[64];
    memset(result, 0x5a, sizeof result);
    DLTensor output = cases[i].output;
    output.data = result;
    set_case("%s", cases[i].reason);
    check_refused(&cases[i].problem, &output, cases[i].facts.status, result, sizeof result);
    if (cases[i].problem.operator_ != TENSOR_SCATTER) {
      check_facts(&cases[i].facts);
      check_plan_refused(&cases[i].problem, cases[i].facts.status);
      check_facts(&cases[i].facts);
      continue;
    }
    nds_error_info info = last_info(); /* the axis is unspecified */
    CHECK_INT(cases[i].facts.tuple, info.tuple);
    CHECK_INT(cases[i].facts.axis_size, info.axis_size);
    CHECK_INT(cases[i].facts.index, info.index);
  }
}

static void out_of_bounds(void) {
  const DLTensor data = NUMS(4, 3), out = NUMS(4, 3), none = {0};
  const nds_options *forbid = OPTIONS(.forbid_negative = 1), *clamp = OPTIONS(.bounds = CLAMP);
  const bad_index cases[] = {
      {"the first one too high", OUT(1, 0, 4, 4),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 0, 4, 9), I64, 3, 1), NUMS(3, 3), 0, 0, NULL}, out},
      {"too low", OUT(0, 0, 4, -5),
       {SCATTER_ND, data, TENSOR(INDEX(int8_t, -5, 4), I8, 2, 1), NUMS(2, 3), 0, 0, NULL}, out},
      {"an inner axis", OUT(1, 1, 3, 3),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 3, 2, 0, 3), I64, 2, 2), NUMS(2), 0, 0, NULL}, out},
      {"the lowest axis of a tuple", OUT(0, 0, 4, 4),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 4, 3), I64, 1, 2), NUMS(1), 0, 0, NULL}, out},
      {"lowest int64", OUT(0, 0, 4, INT64_MIN),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, INT64_MIN), I64, 1, 1), NUMS(1, 3), 0, 0, NULL}, out},
      {"highest uint64, clamped to int64", OUT(0, 0, 4, INT64_MAX),
       {SCATTER_ND, data, TENSOR(INDEX(uint64_t, UINT64_MAX), U64, 1, 1), NUMS(1, 3), 0, 0, NULL}, out},
      {"a negative one, forbidden", OUT(1, 0, 4, -1),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 1, -1), I64, 2, 1), NUMS(2, 3), 0, 0, forbid}, out},
      {"an empty axis, clamped", OUT(0, 0, 0, 0),
       {SCATTER_ND, TENSOR(NULL, I32, 0, 3), TENSOR(INDEX(int64_t, 0), I64, 1, 1), NUMS(1, 3), 0, 0, clamp}, NUMS(0, 3)},
      {"rows without elements are checked", OUT(0, 0, 4, 4),
       {SCATTER_ND, TENSOR(NULL, I32, 4, 0), TENSOR(INDEX(int64_t, 4), I64, 1, 1), TENSOR(NULL, I32, 1, 0), 0, 0, NULL}, NUMS(4, 0)},
      {"bounds before duplicates", OUT(2, 0, 4, 4),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 0, 0, 4), I64, 3, 1), NUMS(3, 3), 0, 0, OPTIONS(.reject_duplicates = 1)}, out},
      {"an axis", OUT(1, 1, 3, -4),
       {SCATTER_UPDATE, data, TENSOR(INDEX(int32_t, 2, -4), I32, 2), NUMS(4, 2), 1, 0, NULL}, out},
      {"an element", OUT(2, 1, 3, 3),
       {SCATTER_ELEMENTS, data, TENSOR(INDEX(int64_t, 0, 1, 3, 2), I64, 2, 2), NUMS(2, 2), 1, 0, NULL}, out},
      {"a tuple to gather", OUT(1, 0, 4, 4),
       {GATHER_ND, data, TENSOR(INDEX(int64_t, 3, 4), I64, 2, 1), none, 0, 0, NULL}, NUMS(2, 3)},
      {"a row to gather", OUT(1, 0, 4, 200),
       {GATHER, data, TENSOR(INDEX(uint8_t, 3, 200), U8, 2), none, 0, 0, NULL}, NUMS(2, 3)},
      {"an element to gather", OUT(3, 0, 4, -5),
       {GATHER_ELEMENTS, data, TENSOR(INDEX(int64_t, 3, 2, 1, -5), I64, 2, 2), none, 0, 0, NULL}, NUMS(2, 2)},
  };
  check_bad(cases, COUNT(cases));
}

/* A negative position in a cache is out of bounds: it does not count from the end. */
static void cache_positions(void) {
  const DLTensor cache = NUMS(2, 6), out = NUMS(2, 6), step = NUMS(2, 2);
  const bad_index cases[] = {
      {"an update beyond the end of the cache", OUT(1, -1, 6, 5),
       {TENSOR_SCATTER, cache, TENSOR(INDEX(int64_t, 4, 5), I64, 2), step, 1, 0, NULL}, out},
      {"a negative position", OUT(0, -1, 6, -1),
       {TENSOR_SCATTER, cache, TENSOR(INDEX(int64_t, -1, 9), I64, 2), step, 1, 0, NULL}, out},
      {"a negative position of a ring", OUT(1, -1, 6, -6),
       {TENSOR_SCATTER, cache, TENSOR(INDEX(int64_t, 100, -6), I64, 2), step, 1, 1, NULL}, out},
      {"an update beyond the end, with an idle slot", OUT(1, -1, 6, 5),
       {TENSOR_SCATTER, cache, TENSOR(INDEX(int64_t, -1, 5), I64, 2), step, 1, 0, OPTIONS(.bounds = SKIP)}, out},
      {"a sum that would wrap", OUT(0, -1, 6, INT64_MAX),
       {TENSOR_SCATTER, cache, TENSOR(INDEX(int64_t, INT64_MAX, 0), I64, 2), step, 1, 0, NULL}, out},
  };
  check_bad(cases, COUNT(cases));
}

/* The position in the list is the tuple, and no axis is named. The size is the number of slots. */
static void slots(void) {
  const DLTensor cache = NUMS(4, 3, 2), out = NUMS(4, 3, 2), none = {0};
  const nds_options *forbid = OPTIONS(.forbid_negative = 1), *clamp = OPTIONS(.bounds = CLAMP);
  const bad_index cases[] = {
      {"a slot beyond the last one", OUT(1, -1, 12, 12),
       {SCATTER_PAGED, cache, TENSOR(INDEX(int64_t, -1, 12, 11), I64, 3), NUMS(3, 2), 0, 0, NULL}, out},
      {"a negative slot, forbidden", OUT(0, -1, 12, -1),
       {SCATTER_PAGED, cache, TENSOR(INDEX(int32_t, -1, 12), I32, 2), NUMS(2, 2), 0, 0, forbid}, out},
      {"a slot to read", OUT(2, -1, 12, 200),
       {GATHER_PAGED, cache, TENSOR(INDEX(uint8_t, 3, 11, 200), U8, 3), none, 0, 0, NULL}, NUMS(3, 2)},
      {"a block without slots, clamped", OUT(0, -1, 0, 0),
       {SCATTER_PAGED, TENSOR(NULL, I32, 4, 0), TENSOR(INDEX(int64_t, 0), I64, 1), NUMS(1), 0, 0, clamp}, TENSOR(NULL, I32, 4, 0)},
      {"the same slot", TWICE(2, 0),
       {SCATTER_PAGED, cache, TENSOR(INDEX(int64_t, 7, -1, 7), I64, 3), NUMS(3, 2), 0, 0, OPTIONS(.reject_duplicates = 1)}, out},
  };
  check_bad(cases, COUNT(cases));
}

static void duplicates(void) {
  const DLTensor data = NUMS(4, 3), out = NUMS(4, 3);
  const nds_options *reject = OPTIONS(.reject_duplicates = 1);
  const nds_options *clamp = OPTIONS(.reject_duplicates = 1, .bounds = CLAMP, .reduction = ADD);
  const bad_index cases[] = {
      {"the same index", TWICE(2, 0),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 1, 2, 1), I64, 3, 1), NUMS(3, 3), 0, 0, reject}, out},
      {"after wrapping", TWICE(1, 0),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 3, -1, -1), I64, 3, 1), NUMS(3, 3), 0, 0, reject}, out},
      {"after clamping", TWICE(3, 1),
       {SCATTER_ND, data, TENSOR(INDEX(int64_t, 0, 9, 2, 4), I64, 4, 1), NUMS(4, 3), 0, 0, clamp}, out},
      {"the whole tensor, twice", TWICE(1, 0),
       {SCATTER_ND, data, TENSOR(NULL, I64, 2, 0), NUMS(2, 4, 3), 0, 0, reject}, out},
      {"along an axis", TWICE(1, 0),
       {SCATTER_UPDATE, data, TENSOR(INDEX(int64_t, 2, 2), I64, 2), NUMS(4, 2), 1, 0, reject}, out},
      {"an element", TWICE(3, 2),
       {SCATTER_ELEMENTS, data, TENSOR(INDEX(int64_t, 0, 1, 2, 2), I64, 2, 2), NUMS(2, 2), 1, 0, reject}, out},
  };
  check_bad(cases, COUNT(cases));
}

/* Skipped tuples do not count as duplicates. Distinct tuples are accepted. */
static void no_duplicates(void) {
  const int64_t indices[] = {9, -9, 3, 7};
  int32_t result[12];
  DLTensor data = NUMS(4, 3), at = TENSOR(indices, I64, 4, 1), updates = NUMS(4, 3), output = TENSOR(result, I32, 4, 3);
  CHECK_OK(nds_scatter_nd(&data, &at, &updates, &output, OPTIONS(.reject_duplicates = 1, .bounds = SKIP)));
}

void test_bad_indices(void) {
  out_of_bounds();
  cache_positions();
  slots();
  duplicates();
  no_duplicates();
}
