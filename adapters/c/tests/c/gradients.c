/* Tests of the gradients of gathers, which are compared with values computed by hand: with a scale that is
 * not 1, and for float16, bfloat16, float32, float64 and complex64. Calls with invalid arguments must
 * write nothing. */

#include "check.h"

#include <math.h>

typedef nds_status backward(const DLTensor *grad_output, const DLTensor *indices, int64_t axis, double scale,
                            DLTensor *grad_data, const nds_options *options);

static const int64_t ROWS[] = {2, 0, 2};

/* The gradient of a gather of the rows 2, 0 and 2 from data with three rows. */
static void of_each_operator(void) {
  const int64_t spread[] = {2, 2, 0, 0, 2, 2};
  const float gradient[] = {1, 2, 3, 4, 5, 6};
  const float expected[] = {-6, -8, 0, 0, -12, -16};
  float sums[6];
  DLTensor grad_output = TENSOR(gradient, F32, 3, 2), grad_data = TENSOR(sums, F32, 3, 2);
  const struct {
    const char *name;
    backward *run;
    int64_t axis;
    DLTensor indices;
  } cases[] = {
      {"nds_gather_backward", nds_gather_backward, 0, TENSOR(ROWS, I64, 3)},
      {"nds_gather_backward, from the end", nds_gather_backward, -2, TENSOR(ROWS, I64, 3)},
      {"nds_gather_nd_backward", nds_gather_nd_backward, 0, TENSOR(ROWS, I64, 3, 1)},
      {"nds_gather_elements_backward", nds_gather_elements_backward, 0, TENSOR(spread, I64, 3, 2)},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    set_case("%s", cases[i].name);
    memset(sums, 0x5a, sizeof sums);
    CHECK_OK(cases[i].run(&grad_output, &cases[i].indices, cases[i].axis, -2.0, &grad_data, NULL));
    for (size_t at = 0; at < COUNT(sums); at++) {
      CHECK(sums[at] == expected[at]);
    }
  }
}

/* The gradient of a gather that copied one element three times. */
static void of_each_type(void) {
  const int64_t zeros[] = {0, 0, 0};
  DLTensor at = TENSOR(zeros, I64, 3);
  const double wide[] = {1, 2, 4};
  double wide_sum = 0;
  DLTensor wide_in = TENSOR(wide, F64, 3), wide_out = TENSOR(&wide_sum, F64, 1);
  CHECK_OK(nds_gather_backward(&wide_in, &at, 0, 0.1, &wide_out, NULL));
  CHECK(wide_sum == 7 * 0.1);
  /* 2048 + 1 + 1, which is 2050 because the sum is computed in float32 */
  const uint16_t half[] = {0x6800, 0x3c00, 0x3c00};
  uint16_t half_sum = 0;
  DLTensor half_in = TENSOR(half, F16, 3), half_out = TENSOR(&half_sum, F16, 1);
  CHECK_OK(nds_gather_backward(&half_in, &at, 0, 1.0, &half_out, NULL));
  CHECK_INT(0x6801, half_sum);
  const uint16_t brain[] = {0x4380, 0x3f80, 0x3f80}; /* 256, 1 and 1 */
  uint16_t brain_sum = 0;
  DLTensor brain_in = TENSOR(brain, BF16, 3), brain_out = TENSOR(&brain_sum, BF16, 1);
  CHECK_OK(nds_gather_backward(&brain_in, &at, 0, 0.5, &brain_out, NULL));
  CHECK_INT(0x4301, brain_sum); /* 258 times the scale 0.5 is 129 */
  const float pairs[] = {1, 2, 3, 4, 5, 6};
  float pair[2];
  DLTensor pairs_in = TENSOR(pairs, C64, 3), pair_out = TENSOR(pair, C64, 1);
  CHECK_OK(nds_gather_backward(&pairs_in, &at, 0, 1.0, &pair_out, NULL));
  CHECK(pair[0] == 9 && pair[1] == 12);
}

static void with_a_zero_factor(void) {
  const float gradient[] = {INFINITY, NAN, 1};
  const uint32_t expected[] = {0, 0, 0};
  float sums[] = {1, 1, 1};
  DLTensor grad_output = TENSOR(gradient, F32, 3), grad_data = TENSOR(sums, F32, 3), at = TENSOR(ROWS, I64, 3);
  CHECK_OK(nds_gather_backward(&grad_output, &at, 0, -0.0, &grad_data, NULL));
  CHECK_BYTES(expected, sums, sizeof sums);
}

static void with_options(void) {
  const int64_t wild[] = {-1, 7, 0};
  const float gradient[] = {1, 2, 4}, skipped[] = {4, 1}, clamped[] = {4, 3};
  float sums[2];
  DLTensor grad_output = TENSOR(gradient, F32, 3), grad_data = TENSOR(sums, F32, 2), at = TENSOR(wild, I64, 3);
  CHECK_OK(nds_gather_backward(&grad_output, &at, 0, 1.0, &grad_data, OPTIONS(.bounds = SKIP)));
  CHECK_BYTES(skipped, sums, sizeof sums);
  CHECK_OK(nds_gather_backward(&grad_output, &at, 0, 1.0, &grad_data, OPTIONS(.bounds = CLAMP, .max_threads = 1)));
  CHECK_BYTES(clamped, sums, sizeof sums);
  CHECK_STATUS(NDS_INDEX_OUT_OF_BOUNDS, nds_gather_backward(&grad_output, &at, 0, 1.0, &grad_data, NULL));
  CHECK_BYTES(clamped, sums, sizeof sums);
}

static void refused(void) {
  float memory[] = {1, 2, 3, 4, 5, 6};
  const float before[] = {1, 2, 3, 4, 5, 6};
  int32_t integers[] = {1, 2, 3};
  DLTensor grad_output = TENSOR(memory, F32, 3), grad_data = TENSOR(memory + 3, F32, 3), at = TENSOR(ROWS, I64, 3);
  DLTensor over = TENSOR(memory + 2, F32, 3), few = TENSOR(memory, F32, 2), matrix = TENSOR(memory + 3, F32, 3, 1);
  DLTensor numbers = TENSOR(integers, I32, 3), wide = TENSOR(memory, F64, 3);
  const struct {
    const char *name;
    nds_status status;
    const DLTensor *grad_output, *indices;
    double scale;
    DLTensor *grad_data;
  } cases[] = {
      {"no gradient", NDS_INVALID_ARGUMENT, NULL, &at, 1, &grad_data},
      {"no indices", NDS_INVALID_ARGUMENT, &grad_output, NULL, 1, &grad_data},
      {"nothing to write", NDS_INVALID_ARGUMENT, &grad_output, &at, 1, NULL},
      {"another type", NDS_INVALID_ARGUMENT, &wide, &at, 1, &grad_data},
      {"integers", NDS_UNSUPPORTED, &numbers, &at, 1, &numbers},
      {"too few gradients", NDS_INVALID_ARGUMENT, &few, &at, 1, &grad_data},
      {"another rank", NDS_INVALID_ARGUMENT, &grad_output, &at, 1, &matrix},
      {"shared memory", NDS_INVALID_ARGUMENT, &grad_output, &at, 1, &over},
      {"NaN", NDS_INVALID_ARGUMENT, &grad_output, &at, NAN, &grad_data},
      {"infinity", NDS_INVALID_ARGUMENT, &grad_output, &at, -INFINITY, &grad_data},
      {"beyond the range of float32", NDS_INVALID_ARGUMENT, &grad_output, &at, 1e60, &grad_data},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    set_case("%s", cases[i].name);
    nds_status status =
        nds_gather_backward(cases[i].grad_output, cases[i].indices, 0, cases[i].scale, cases[i].grad_data, NULL);
    CHECK_STATUS(cases[i].status, status);
    CHECK_BYTES(before, memory, sizeof memory);
  }
  set_case("an axis out of range");
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_gather_backward(&grad_output, &at, 1, 1.0, &grad_data, NULL));
  set_case("negative batch_dims");
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_gather_nd_backward(&grad_output, &at, -1, 1.0, &grad_data, NULL));
  set_case("a reduction");
  CHECK_STATUS(NDS_UNSUPPORTED, nds_gather_backward(&grad_output, &at, 0, 1.0, &grad_data, OPTIONS(.reduction = ADD)));
  CHECK_BYTES(before, memory, sizeof memory);
}

void test_gradients(void) {
  of_each_operator();
  of_each_type();
  with_a_zero_factor();
  with_options();
  refused();
}
