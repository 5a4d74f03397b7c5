/* Tests of invalid calls: tensors that do not fit together, axes out of range, and options that the
 * operator does not have. */

#include "check.h"

static int32_t NUMBERS[64];
static int64_t ZEROS[64];

#define NUMS(...) TENSOR(NUMBERS, I32, __VA_ARGS__)
#define INDEX(...) TENSOR(ZEROS, I64, __VA_ARGS__)

/* A call that must fail. `planned`: whether the test also makes a plan of this call, which must fail too. */
typedef struct refusal {
  const char *reason;
  nds_status status;
  bool planned;
  problem problem;
  DLTensor output; /* check_refusals sets the pointer to its memory */
} refusal;

static void check_refusals(const refusal *refusals, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int32_t result[64];
    memset(result, 0x5a, sizeof result);
    DLTensor output = refusals[i].output;
    output.data = result;
    set_case("%s", refusals[i].reason);
    check_refused(&refusals[i].problem, &output, refusals[i].status, result, sizeof result);
    if (refusals[i].planned) {
      check_plan_refused(&refusals[i].problem, refusals[i].status);
    }
  }
}

static void shapes_of_scatters(void) {
  const DLTensor data = NUMS(4, 3), out = NUMS(4, 3), rows = NUMS(2, 3);
  const refusal refusals[] = {
      {"output of another shape", NDS_INVALID_ARGUMENT, false,
       {SCATTER_ND, data, INDEX(2, 1), rows, 0, 0, NULL}, NUMS(3, 4)},
      {"output of another rank", NDS_INVALID_ARGUMENT, false,
       {SCATTER_ND, data, INDEX(2, 1), rows, 0, 0, NULL}, NUMS(12)},
      {"updates of another shape", NDS_INVALID_ARGUMENT, false,
       {SCATTER_ND, data, INDEX(2, 1), NUMS(3, 3), 0, 0, NULL}, out},
      {"updates of another rank", NDS_INVALID_ARGUMENT, false,
       {SCATTER_ND, data, INDEX(2, 1), NUMS(6), 0, 0, NULL}, out},
      {"updates of rank 0", NDS_INVALID_ARGUMENT, false,
       {SCATTER_ND, data, INDEX(2, 1), SCALAR(NUMBERS, I32), 0, 0, NULL}, out},
      {"indices of rank 0", NDS_INVALID_ARGUMENT, true,
       {SCATTER_ND, data, SCALAR(ZEROS, I64), rows, 0, 0, NULL}, out},
      {"tuples longer than the rank", NDS_INVALID_ARGUMENT, true,
       {SCATTER_ND, data, INDEX(2, 3), NUMS(2), 0, 0, NULL}, out},
      {"updates without the shape of indices", NDS_INVALID_ARGUMENT, false,
       {SCATTER_UPDATE, data, INDEX(2), NUMS(3, 3), 0, 0, NULL}, out},
      {"updates unlike indices", NDS_INVALID_ARGUMENT, false,
       {SCATTER_ELEMENTS, data, INDEX(2, 3), NUMS(2, 2), 0, 0, NULL}, out},
      {"indices of another rank", NDS_INVALID_ARGUMENT, true,
       {SCATTER_ELEMENTS, data, INDEX(2), NUMS(2), 0, 0, NULL}, out},
      {"indices longer than data off the axis", NDS_INVALID_ARGUMENT, true,
       {SCATTER_ELEMENTS, data, INDEX(2, 4), NUMS(2, 4), 0, 0, NULL}, out},
  };
  check_refusals(refusals, COUNT(refusals));
}

static void shapes_of_caches(void) {
  const DLTensor cache = NUMS(2, 6), out = NUMS(2, 6), step = NUMS(2, 1), at = INDEX(2);
  const refusal refusals[] = {
      {"a cache along its sequences", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, at, step, 0, 0, NULL}, out},
      {"a cache of rank 1", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, NUMS(6), INDEX(6), NUMS(1), 0, 0, NULL}, NUMS(6)},
      {"a cache axis out of range", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, at, step, 2, 0, NULL}, out},
      {"positions for other sequences", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, INDEX(3), step, 1, 0, NULL}, out},
      {"positions of rank 2", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, INDEX(2, 1), step, 1, 0, NULL}, out},
      {"an update for other sequences", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, at, NUMS(3, 1), 1, 0, NULL}, out},
      {"an update longer than the cache", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, at, NUMS(2, 7), 1, 1, NULL}, out},
      {"circular is neither 0 nor 1", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, at, step, 1, 2, NULL}, out},
      {"circular is negative", NDS_INVALID_ARGUMENT, false,
       {TENSOR_SCATTER, cache, at, step, 1, -1, NULL}, out},
      {"a reduction of a cache", NDS_UNSUPPORTED, false,
       {TENSOR_SCATTER, cache, at, step, 1, 0, OPTIONS(.reduction = ADD)}, out},
      {"a clamped cache", NDS_UNSUPPORTED, false,
       {TENSOR_SCATTER, cache, at, step, 1, 0, OPTIONS(.bounds = CLAMP)}, out},
      {"a clamped ring", NDS_UNSUPPORTED, false,
       {TENSOR_SCATTER, cache, at, step, 1, 1, OPTIONS(.bounds = CLAMP)}, out},
      {"a reduction of a cache with idle slots", NDS_UNSUPPORTED, false,
       {TENSOR_SCATTER, cache, at, step, 1, 0, OPTIONS(.bounds = SKIP, .reduction = MAX)}, out},
  };
  check_refusals(refusals, COUNT(refusals));
}

static void shapes_of_gathers(void) {
  const DLTensor data = NUMS(4, 3), none = {0}, out = NUMS(2, 3);
  const refusal refusals[] = {
      {"gathered into another shape", NDS_INVALID_ARGUMENT, false,
       {GATHER, data, INDEX(2), none, 0, 0, NULL}, NUMS(3, 2)},
      {"gathered tuples into another shape", NDS_INVALID_ARGUMENT, false,
       {GATHER_ND, data, INDEX(2, 1), none, 0, 0, NULL}, NUMS(6)},
      {"gathered elements into another shape", NDS_INVALID_ARGUMENT, false,
       {GATHER_ELEMENTS, data, INDEX(2, 3), none, 0, 0, NULL}, NUMS(2, 2)},
      {"indices of rank 0 to gather tuples", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, SCALAR(ZEROS, I64), none, 0, 0, NULL}, out},
      {"tuples longer than the rank to gather", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, INDEX(2, 3), none, 0, 0, NULL}, NUMS(2)},
      {"negative batch_dims", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, INDEX(2, 1), none, -1, 0, NULL}, out},
      {"more batch_dims than dims", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, INDEX(4, 1), none, 3, 0, NULL}, out},
      {"lowest batch_dims", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, INDEX(4, 1), none, INT64_MIN, 0, NULL}, out},
      {"highest batch_dims", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, INDEX(4, 1), none, INT64_MAX, 0, NULL}, out},
      {"batch dims that differ", NDS_INVALID_ARGUMENT, true,
       {GATHER_ND, data, INDEX(2, 1), none, 1, 0, NULL}, NUMS(2)},
      {"indices of another rank to gather elements", NDS_INVALID_ARGUMENT, true,
       {GATHER_ELEMENTS, data, INDEX(2), none, 0, 0, NULL}, NUMS(2)},
      {"a reduction of gathered tuples", NDS_UNSUPPORTED, true,
       {GATHER_ND, data, INDEX(2, 1), none, 0, 0, OPTIONS(.reduction = ADD)}, out},
      {"a reduction of a gather", NDS_UNSUPPORTED, true,
       {GATHER, data, INDEX(2), none, 0, 0, OPTIONS(.reduction = MAX)}, out},
      {"a reduction of gathered elements", NDS_UNSUPPORTED, true,
       {GATHER_ELEMENTS, data, INDEX(2, 3), none, 0, 0, OPTIONS(.reduction = MEAN)}, out},
      {"duplicates of a gather rejected", NDS_UNSUPPORTED, true,
       {GATHER, data, INDEX(2), none, 0, 0, OPTIONS(.reject_duplicates = 1)}, out},
  };
  check_refusals(refusals, COUNT(refusals));
}

static void axes(void) {
  static const operator_name along[] = {SCATTER_UPDATE, SCATTER_ELEMENTS, TENSOR_SCATTER, GATHER, GATHER_ELEMENTS};
  static const int64_t beyond[] = {2, -3, INT64_MAX, INT64_MIN, INT64_C(1) << 32, -(INT64_C(1) << 32)};
  for (size_t i = 0; i < COUNT(along) * COUNT(beyond); i++) {
    base base;
    make_base(&base, along[i / COUNT(beyond)]);
    base.problem.axis = beyond[i % COUNT(beyond)];
    set_case("operator %d along axis %lld", (int)base.problem.operator_, (long long)base.problem.axis);
    check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
    if (has_plan(&base.problem)) {
      check_plan_refused(&base.problem, NDS_INVALID_ARGUMENT);
    }
  }
}

/* Element types that the library supports, but not for the tensor that has them here. */
static void types(void) {
  const DLDataType no_integers[] = {F16, F32, F64, BF16, C64, BOOL, FLOAT8};
  const DLDataType others[] = {I32, U8, FLOAT8, FLOAT4X8};
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    base base;
    for (size_t i = 0; i < COUNT(no_integers); i++) {
      make_base(&base, operator_);
      base.problem.indices.dtype = no_integers[i];
      set_case("operator %d, indices of type %d", (int)operator_, no_integers[i].code);
      check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
      if (has_plan(&base.problem)) {
        check_plan_refused(&base.problem, NDS_INVALID_ARGUMENT);
      }
    }
    for (size_t i = 0; i < COUNT(others); i++) {
      make_base(&base, operator_);
      base.output.dtype = others[i];
      set_case("operator %d, output of type %d", (int)operator_, others[i].code);
      check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
      make_base(&base, operator_);
      base.problem.updates.dtype = others[i];
      set_case("operator %d, updates of type %d", (int)operator_, others[i].code);
      if (!is_gather(&base.problem)) {
        check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
      }
      make_base(&base, operator_);
      base.problem.data.dtype = others[i];
      set_case("operator %d, data of type %d", (int)operator_, others[i].code);
      check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
    }
  }
}

/* Reductions that the element type does not support. */
static void reductions_of_types(void) {
  static const struct {
    uint8_t code, bits;
    int32_t reduction;
  } cases[] = {{kDLComplex, 64, MIN}, {kDLComplex, 64, MAX}, {kDLComplex, 128, MIN}, {kDLComplex, 128, MAX}, {6, 8, MEAN}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    static const _Alignas(16) uint8_t bytes[64];
    _Alignas(16) uint8_t result[64];
    memset(result, 0x5a, sizeof result);
    DLDataType type = TYPE(cases[i].code, cases[i].bits);
    problem p = {
        .operator_ = SCATTER_ND,
        .data = TENSOR(bytes, type, 4),
        .indices = INDEX(1, 1),
        .updates = TENSOR(bytes, type, 1),
        .options = OPTIONS(.reduction = cases[i].reduction),
    };
    DLTensor output = TENSOR(result, type, 4);
    set_case("reduction %d of type %d", cases[i].reduction, cases[i].code);
    check_refused(&p, &output, NDS_UNSUPPORTED, result, sizeof result);
    check_plan_refused(&p, NDS_UNSUPPORTED);
  }
}

/* One index that stride 0 repeats 2^52 times. The library cannot allocate memory for 2^52 destination
 * numbers. */
static void too_many_tuples(void) {
  float result[4] = {-7, -7, -7, -7};
  static const float data[4];
  int64_t count = INT64_C(1) << 52;
  problem p = {
      .operator_ = SCATTER_ND,
      .data = TENSOR(data, F32, 4),
      .indices = STRIDED(ZEROS, I64, DIMS(count, 1), DIMS(0, 1)),
      .updates = STRIDED(data, F32, DIMS(count), DIMS(0)),
      .options = OPTIONS(.reduction = ADD),
  };
  DLTensor output = TENSOR(result, F32, 4);
  set_case("2^52 indices");
  check_refused(&p, &output, NDS_OUT_OF_MEMORY, result, sizeof result);
  check_plan_refused(&p, NDS_OUT_OF_MEMORY);
}

void test_bad_calls(void) {
  shapes_of_scatters();
  shapes_of_caches();
  shapes_of_gathers();
  axes();
  types();
  reductions_of_types();
  too_many_tuples();
}
