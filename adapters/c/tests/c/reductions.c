/* Reductions and the other options, compared with values computed by hand. */

#include "check.h"

#include <math.h>

/* int32 data [10 20 30 40]. The updates 3 and 5 go to the second element, 4 to the last. */
static void every_reduction(void) {
  static const struct {
    int32_t reduction, exclude_self, second, last;
  } cases[] = {
      {NONE, 0, 5, 4}, {ADD, 0, 28, 44}, {SUB, 0, 12, 36}, {MUL, 0, 300, 160},
      {MIN, 0, 3, 4},  {MAX, 0, 20, 40}, {MEAN, 0, 9, 22},
      {NONE, 1, 5, 4}, {ADD, 1, 8, 4},   {SUB, 1, -8, -4}, {MUL, 1, 15, 4},
      {MIN, 1, 3, 4},  {MAX, 1, 5, 4},   {MEAN, 1, 4, 4},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    set_case("reduction %d, exclude_self %d", cases[i].reduction, cases[i].exclude_self);
    const int32_t data[] = {10, 20, 30, 40}, updates[] = {3, 5, 4};
    const int64_t indices[] = {1, 1, 3};
    const int32_t expected[] = {10, cases[i].second, 30, cases[i].last};
    DLTensor tensor = TENSOR(data, I32, 4), few = TENSOR(updates, I32, 3);
    DLTensor list = TENSOR(indices, I64, 3), tuples = TENSOR(indices, I64, 3, 1);
    const nds_options *options = OPTIONS(.reduction = cases[i].reduction, .exclude_self = cases[i].exclude_self);
    check_everywhere(&(problem){SCATTER_ND, tensor, tuples, few, .options = options}, &tensor, expected);
    check_everywhere(&(problem){SCATTER_UPDATE, tensor, list, few, .options = options}, &tensor, expected);
    check_everywhere(&(problem){SCATTER_ELEMENTS, tensor, list, few, .options = options}, &tensor, expected);
  }
}

/* Two updates of one destination: `data` is combined with `first`, then with `second`. */
typedef struct one_place {
  const char *reason;
  DLDataType type;
  int32_t reduction, exclude_self, accumulate;
  const void *data, *updates, *expected;
} one_place;

static void check_one_place(const one_place *place) {
  static const int64_t indices[] = {0, 0};
  DLTensor shape = TENSOR(place->data, place->type, 1);
  problem p = {
      .operator_ = SCATTER_ND,
      .data = shape,
      .indices = TENSOR(indices, I64, 2, 1),
      .updates = TENSOR(place->updates, place->type, 2),
      .options = OPTIONS(.reduction = place->reduction, .exclude_self = place->exclude_self,
                         .accumulate = place->accumulate),
  };
  set_case("%s", place->reason);
  check_everywhere(&p, &shape, place->expected);
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})
#define HALVES(...) ((const uint16_t[]){__VA_ARGS__})
#define INTS(...) ((const int32_t[]){__VA_ARGS__})
#define FLOATS(...) ((const float[]){__VA_ARGS__})

static void rules_of_types(void) {
  const one_place places[] = {
      {"integers wrap up", I8, ADD, 0, 0, BYTES(127), BYTES(1, 1), BYTES(0x81)},
      {"integers wrap down", U8, SUB, 0, 0, BYTES(1), BYTES(1, 1), BYTES(255)},
      {"products wrap", U8, MUL, 0, 0, BYTES(16), BYTES(16, 3), BYTES(0)},
      {"signed and unsigned compare differently (signed)", I8, MAX, 0, 0, BYTES(0x80), BYTES(0xff, 1), BYTES(1)},
      {"signed and unsigned compare differently (unsigned)", U8, MAX, 0, 0, BYTES(0x80), BYTES(0xff, 1), BYTES(0xff)},
      {"the mean of integers is rounded down", I32, MEAN, 0, 0, INTS(-5), INTS(0, 0), INTS(-2)},
      {"a mean without self counts updates alone", I32, MEAN, 1, 0, INTS(99), INTS(-3, 0), INTS(-2)},
      {"float16 rounds after every update", F16, ADD, 0, 0, HALVES(0x6800), HALVES(0x3c00, 0x3c00), HALVES(0x6800)},
      {"float16, wide, rounds once: 2048 + 1 + 1", F16, ADD, 0, 1, HALVES(0x6800), HALVES(0x3c00, 0x3c00), HALVES(0x6801)},
      {"bfloat16 rounds after every update", BF16, ADD, 0, 0, HALVES(0x4380), HALVES(0x3f80, 0x3f80), HALVES(0x4380)},
      {"bfloat16, wide, rounds once: 256 + 1 + 1", BF16, ADD, 0, 1, HALVES(0x4380), HALVES(0x3f80, 0x3f80), HALVES(0x4381)},
      {"float16 keeps subnormals", F16, ADD, 0, 0, HALVES(1), HALVES(1, 1), HALVES(3)},
      {"ties keep the existing value", F32, MIN, 0, 0, FLOATS(0.0f), FLOATS(-0.0f, -0.0f), FLOATS(0.0f)},
      {"without self no identity takes part: a sum of -0 is -0", F32, ADD, 1, 0, FLOATS(5.0f), FLOATS(-0.0f, -0.0f), FLOATS(-0.0f)},
      {"differences in order", F32, SUB, 1, 0, FLOATS(5.0f), FLOATS(1.0f, 2.5f), FLOATS(-3.5f)},
      {"complex sum", C64, ADD, 0, 0, FLOATS(1, 2), FLOATS(3, 4, 5, 6), FLOATS(9, 12)},
      {"complex product: (1+2i)(3+4i)(0+1i)", C64, MUL, 0, 0, FLOATS(1, 2), FLOATS(3, 4, 0, 1), FLOATS(-10, -5)},
      {"complex mean", C64, MEAN, 1, 0, FLOATS(9, 9), FLOATS(1, 2, 3, 6), FLOATS(2, 4)},
      {"none moves the bytes of bool", BOOL, NONE, 0, 0, BYTES(1), BYTES(7, 3), BYTES(3)},
      {"bool add is OR", BOOL, ADD, 0, 0, BYTES(0), BYTES(0, 4), BYTES(1)},
      {"bool sub is XOR", BOOL, SUB, 0, 0, BYTES(2), BYTES(0, 4), BYTES(0)},
      {"bool mul is AND", BOOL, MUL, 0, 0, BYTES(2), BYTES(4, 8), BYTES(1)},
      {"bool min is AND", BOOL, MIN, 0, 0, BYTES(2), BYTES(4, 0), BYTES(0)},
      {"bool max is OR", BOOL, MAX, 1, 0, BYTES(2), BYTES(0, 0), BYTES(0)},
  };
  for (size_t i = 0; i < COUNT(places); i++) {
    check_one_place(&places[i]);
  }
}

/* min and max return NaN if either side is NaN. */
static void nan_propagates(void) {
  for (int32_t reduction = MIN; reduction <= MAX; reduction++) {
    const float data[] = {NAN, 1.0f, 2.0f}, updates[] = {1.0f, NAN};
    const int64_t indices[] = {0, 1};
    float result[3];
    DLTensor shape = TENSOR(data, F32, 3), output = TENSOR(result, F32, 3);
    DLTensor at = TENSOR(indices, I64, 2, 1), few = TENSOR(updates, F32, 2);
    set_case("reduction %d", reduction);
    CHECK_OK(nds_scatter_nd(&shape, &at, &few, &output, OPTIONS(.reduction = reduction)));
    CHECK(isnan(result[0]) && isnan(result[1]) && result[2] == 2.0f);
  }
}

/* int32 data [1 2 3 4]. The updates 10, 20 and 30 have the indices 5, -9 and -3. */
static void bounds(void) {
  static const struct {
    int32_t bounds, forbid_negative, expected[4];
  } cases[] = {
      {SKIP, 0, {1, 30, 3, 4}},
      {SKIP, 1, {1, 2, 3, 4}},
      {CLAMP, 0, {20, 30, 3, 10}},
      {CLAMP, 1, {30, 2, 3, 10}},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    const int32_t data[] = {1, 2, 3, 4}, updates[] = {10, 20, 30};
    const int64_t indices[] = {5, -9, -3};
    DLTensor shape = TENSOR(data, I32, 4);
    problem p = {
        .operator_ = SCATTER_ND,
        .data = shape,
        .indices = TENSOR(indices, I64, 3, 1),
        .updates = TENSOR(updates, I32, 3),
        .options = OPTIONS(.bounds = cases[i].bounds, .forbid_negative = cases[i].forbid_negative),
    };
    set_case("bounds %d, forbid_negative %d", cases[i].bounds, cases[i].forbid_negative);
    check_everywhere(&p, &shape, cases[i].expected);
  }
}

/* Options that have no effect on a call are accepted. */
static void idle_options(void) {
  const int32_t data[] = {1, 2, 3, 4}, updates[] = {10, 20}, expected[] = {1, 10, 3, 20};
  const int64_t indices[] = {1, 3};
  DLTensor shape = TENSOR(data, I32, 4);
  const nds_options *const idle[] = {
      NULL,
      OPTIONS(.reject_duplicates = 1),
      OPTIONS(.none_gradient = NDS_NONE_GRADIENT_EVERY_DUPLICATE),
      OPTIONS(.accumulate = NDS_ACCUMULATE_WIDE),
      OPTIONS(.exclude_self = 1),
      OPTIONS(.max_threads = 1),
      OPTIONS(.max_threads = INT32_MAX),
      OPTIONS(.goal = NDS_GOAL_LATENCY),
      OPTIONS(.goal = NDS_GOAL_THROUGHPUT),
  };
  for (size_t i = 0; i < COUNT(idle); i++) {
    set_case("options %zu", i);
    problem p = {SCATTER_ND, shape, TENSOR(indices, I64, 2, 1), TENSOR(updates, I32, 2), .options = idle[i]};
    check_everywhere(&p, &shape, expected);
  }
}

void test_reductions(void) {
  every_reduction();
  rules_of_types();
  nan_propagates();
  bounds();
  idle_options();
}
