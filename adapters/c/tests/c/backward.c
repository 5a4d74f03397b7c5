/* Tests of the gradients of scatters. The tests compare the gradients of every reduction with values that
 * were computed by hand. Some calls compute grad_data in place, in the memory of grad_output. Some calls
 * pass null for grad_data or grad_updates. Calls with invalid arguments must write nothing. */

#include "check.h"

#include <math.h>

/* AT has the destinations of the five updates. The four elements of data receive 1, 3, 1 and 0 updates. */
static const int64_t AT[] = {1, 0, 1, 1, 2};
static const float DATA[] = {2, 4, 3, 9}, UPDATES[] = {4, 5, 0, 4, 3}, GRADIENT[] = {1, 6, 2, 8};

/* Expected output and gradients of each reduction. In cases with exclude_self 0, the reduction includes the
 * value of data. In cases with exclude_self 1, the reduction excludes the value of data. The expected
 * gradients are already multiplied by -2, the argument scale of the tested calls. */
static const struct {
  int32_t reduction, exclude_self, none_gradient;
  float output[4], data[4], updates[5];
} CASES[] = {
    {NONE, 0, 0, {5, 4, 3, 9}, {0, 0, 0, -16}, {0, -2, 0, -12, -4}},
    {NONE, 0, 1, {5, 4, 3, 9}, {0, 0, 0, -16}, {-12, -2, -12, -12, -4}},
    {ADD, 0, 0, {7, 12, 6, 9}, {-2, -12, -4, -16}, {-12, -2, -12, -12, -4}},
    {ADD, 1, 0, {5, 8, 3, 9}, {0, 0, 0, -16}, {-12, -2, -12, -12, -4}},
    {SUB, 0, 0, {-3, -4, 0, 9}, {-2, -12, -4, -16}, {12, 2, 12, 12, 4}},
    {MUL, 0, 0, {10, 0, 9, 9}, {-10, 0, -12, -16}, {0, -4, -768, 0, -12}},
    {MUL, 1, 0, {5, 0, 3, 9}, {0, 0, 0, -16}, {0, -2, -192, 0, -4}},
    {MIN, 0, 0, {2, 0, 3, 9}, {-2, 0, -2, -16}, {0, 0, -12, 0, -2}},
    {MAX, 0, 0, {5, 4, 3, 9}, {0, -4, -2, -16}, {-4, -2, 0, -4, -2}},
    {MAX, 1, 0, {5, 4, 3, 9}, {0, 0, 0, -16}, {-6, -2, 0, -6, -4}},
    {MEAN, 0, 0, {3.5f, 3, 3, 9}, {-1, -3, -2, -16}, {-3, -1, -3, -3, -2}},
    {MEAN, 1, 0, {5, 8.0f / 3, 3, 9}, {0, 0, 0, -16}, {-4, -2, -4, -4, -4}},
};

static void equal(const float *expected, const float *got, size_t count) {
  for (size_t at = 0; at < count; at++) {
    CHECK(expected[at] == got[at]);
  }
}

static void of_each_reduction(void) {
  float memory[4], of_updates[5];
  DLTensor grad_output = TENSOR(GRADIENT, F32, 4), data = TENSOR(DATA, F32, 4), updates = TENSOR(UPDATES, F32, 5);
  DLTensor tuples = TENSOR(AT, I64, 5, 1), list = TENSOR(AT, I64, 5);
  DLTensor grad_data = TENSOR(memory, F32, 4), grad_updates = TENSOR(of_updates, F32, 5);
  for (size_t i = 0; i < COUNT(CASES); i++) {
    const nds_options *options = OPTIONS(.reduction = CASES[i].reduction, .exclude_self = CASES[i].exclude_self,
                                         .none_gradient = CASES[i].none_gradient);
    DLTensor output = TENSOR(CASES[i].output, F32, 4);
    for (int form = 0; form < 6; form++) {
      set_case("reduction %d, exclude_self %d, form %d", CASES[i].reduction, CASES[i].exclude_self, form);
      memset(memory, 0x5a, sizeof memory);
      memset(of_updates, 0x5a, sizeof of_updates);
      DLTensor *wants_data = form == 3 ? NULL : &grad_data, *wants_updates = form == 4 ? NULL : &grad_updates;
      const DLTensor *from = &grad_output;
      if (form == 5) {
        memcpy(memory, GRADIENT, sizeof memory);
        from = &grad_data;
      }
      if (form == 1) {
        CHECK_OK(nds_scatter_update_backward(from, &data, &list, &updates, -1, &output, -2.0, wants_data, wants_updates,
                                             options));
      } else if (form == 2) {
        CHECK_OK(nds_scatter_elements_backward(from, &data, &list, &updates, 0, &output, -2.0, wants_data,
                                               wants_updates, options));
      } else {
        CHECK_OK(
            nds_scatter_nd_backward(from, &data, &tuples, &updates, &output, -2.0, wants_data, wants_updates, options));
      }
      if (wants_data) {
        equal(CASES[i].data, memory, COUNT(memory));
      }
      if (wants_updates) {
        equal(CASES[i].updates, of_updates, COUNT(of_updates));
      }
    }
  }
}

/* Tests calls with null for the input tensors data, updates and output. The reduction decides which of
 * these input tensors the gradients depend on. A call may pass null for an input tensor that the gradients
 * do not depend on. A call must fail if it passes null for an input tensor that the gradients depend on. */
static void without_inputs(void) {
  float memory[4], of_updates[5];
  DLTensor grad_output = TENSOR(GRADIENT, F32, 4), updates = TENSOR(UPDATES, F32, 5), data = TENSOR(DATA, F32, 4);
  DLTensor at = TENSOR(AT, I64, 5, 1), grad_data = TENSOR(memory, F32, 4), grad_updates = TENSOR(of_updates, F32, 5);
  for (size_t i = 0; i < COUNT(CASES); i++) {
    const nds_options *options = OPTIONS(.reduction = CASES[i].reduction, .exclude_self = CASES[i].exclude_self,
                                         .none_gradient = CASES[i].none_gradient);
    int32_t reduction = CASES[i].reduction;
    bool is_extreme = reduction == MIN || reduction == MAX, depends = is_extreme || reduction == MUL;
    DLTensor output = TENSOR(CASES[i].output, F32, 4);
    const DLTensor *least_data = depends && !CASES[i].exclude_self ? &data : NULL;
    const DLTensor *least_updates = depends ? &updates : NULL, *least_output = is_extreme ? &output : NULL;
    set_case("reduction %d, exclude_self %d", reduction, CASES[i].exclude_self);
    CHECK_OK(nds_scatter_nd_backward(&grad_output, least_data, &at, least_updates, least_output, -2.0, &grad_data,
                                     &grad_updates, options));
    equal(CASES[i].data, memory, COUNT(memory));
    equal(CASES[i].updates, of_updates, COUNT(of_updates));
    memset(memory, 0x5a, sizeof memory);
    float before[4];
    memcpy(before, memory, sizeof before);
    if (least_data) {
      CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_scatter_nd_backward(&grad_output, NULL, &at, &updates, &output, 1.0,
                                                                 &grad_data, &grad_updates, options));
    }
    if (least_updates) {
      CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_scatter_nd_backward(&grad_output, &data, &at, NULL, &output, 1.0,
                                                                 &grad_data, &grad_updates, options));
    }
    if (least_output) {
      CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_scatter_nd_backward(&grad_output, &data, &at, &updates, NULL, 1.0,
                                                                 &grad_data, &grad_updates, options));
    }
    CHECK_BYTES(before, memory, sizeof memory);
  }
}

static void of_a_cache(void) {
  const float gradient[] = {1, 2, 3, 4, 5, 6};
  const int64_t at[] = {2, 0};
  float past[6], of_update[4];
  DLTensor grad_output = TENSOR(gradient, F32, 2, 3), indices = TENSOR(at, I64, 2);
  DLTensor shape = TENSOR(NULL, F32, 2, 2), other = TENSOR(NULL, F32, 2, 1);
  DLTensor grad_past = TENSOR(past, F32, 2, 3), grad_update = TENSOR(of_update, F32, 2, 2);
  const float left[] = {0, 2, 0, 0, 0, 6}, taken[] = {3, 1, 4, 5};
  const float left_first[] = {0, 0, 3, 0, 0, 6}, taken_first[] = {1, 2, 4, 5};
  set_case("%s", "of a cache");
  CHECK_OK(nds_tensor_scatter_backward(&grad_output, &shape, &indices, -1, 1, 1.0, &grad_past, &grad_update, NULL));
  equal(left, past, COUNT(past));
  equal(taken, of_update, COUNT(of_update));
  CHECK_OK(nds_tensor_scatter_backward(&grad_output, &shape, NULL, 1, 0, 1.0, &grad_past, NULL, NULL));
  equal(left_first, past, COUNT(past));
  CHECK_OK(nds_tensor_scatter_backward(&grad_output, &shape, NULL, 1, 0, 1.0, NULL, &grad_update, NULL));
  equal(taken_first, of_update, COUNT(of_update));
  CHECK_STATUS(NDS_INDEX_OUT_OF_BOUNDS, nds_tensor_scatter_backward(&grad_output, &shape, &indices, 1, 0, 1.0,
                                                                    &grad_past, &grad_update, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_tensor_scatter_backward(&grad_output, &other, &indices, 1, 1, 1.0, &grad_past,
                                                                 &grad_update, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT,
               nds_tensor_scatter_backward(&grad_output, &shape, &indices, 1, 2, 1.0, &grad_past, &grad_update, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT,
               nds_tensor_scatter_backward(&grad_output, NULL, &indices, 1, 1, 1.0, &grad_past, &grad_update, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT,
               nds_tensor_scatter_backward(&grad_output, &shape, &indices, 5, 1, 1.0, &grad_past, &grad_update, NULL));
  equal(left_first, past, COUNT(past));
  equal(taken_first, of_update, COUNT(of_update));
}

static void refused_backward(void) {
  float memory[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  float before[COUNT(memory)];
  memcpy(before, memory, sizeof memory);
  int32_t integers[] = {1, 2, 3, 4};
  DLTensor grad_output = TENSOR(memory, F32, 4), grad_data = TENSOR(memory + 4, F32, 4);
  DLTensor grad_updates = TENSOR(memory + 8, F32, 5), at = TENSOR(AT, I64, 5, 1);
  DLTensor data = TENSOR(DATA, F32, 4), updates = TENSOR(UPDATES, F32, 5);
  DLTensor over = TENSOR(memory + 3, F32, 4), over_other = TENSOR(memory + 7, F32, 5), few = TENSOR(memory + 4, F32, 3);
  DLTensor numbers = TENSOR(integers, I32, 4), wide = TENSOR(DATA, F64, 2), wild = TENSOR(AT, I64, 2);
  DLTensor over_output = TENSOR(memory, F32, 5);
  const struct {
    const char *name;
    nds_status status;
    const DLTensor *grad_output, *data, *indices, *updates;
    double scale;
    DLTensor *grad_data, *grad_updates;
    nds_options options;
  } cases[] = {
      {"no gradient", NDS_INVALID_ARGUMENT, NULL, &data, &at, &updates, 1, &grad_data, &grad_updates, {0}},
      {"no indices", NDS_INVALID_ARGUMENT, &grad_output, &data, NULL, &updates, 1, &grad_data, &grad_updates, {0}},
      {"nothing wanted", NDS_INVALID_ARGUMENT, &grad_output, &data, &at, &updates, 1, NULL, NULL, {0}},
      {"data of another type", NDS_INVALID_ARGUMENT, &grad_output, &wide, &at, &updates, 1, &grad_data, NULL, {0}},
      {"updates of another type", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, &wide, 1, &grad_data, NULL, {0}},
      {"data of another shape", NDS_INVALID_ARGUMENT, &grad_output, &few, &at, NULL, 1, NULL, &grad_updates, {0}},
      {"updates of another shape", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, &data, 1, &grad_data, NULL, {0}},
      {"integers", NDS_UNSUPPORTED, &numbers, NULL, &at, NULL, 1, &numbers, NULL, {0}},
      {"too few for data", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, 1, &few, &grad_updates, {0}},
      {"too few for updates", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, 1, NULL, &grad_data, {0}},
      {"a part of what is read", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, 1, &over, &grad_updates, {0}},
      {"updates over what is read", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, 1, NULL, &over_output, {0}},
      {"one over the other", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, 1, &grad_data, &over_other, {0}},
      {"NaN", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, NAN, &grad_data, &grad_updates, {0}},
      {"tuples of none", NDS_INVALID_ARGUMENT, &grad_output, NULL, &wild, NULL, 1, &grad_data, &grad_updates, {0}},
      {"duplicates", NDS_DUPLICATE_INDEX, &grad_output, NULL, &at, NULL, 1, &grad_data, &grad_updates,
       {.size = sizeof(nds_options), .reject_duplicates = 1}},
      {"an unknown none_gradient", NDS_INVALID_ARGUMENT, &grad_output, NULL, &at, NULL, 1, &grad_data, &grad_updates,
       {.size = sizeof(nds_options), .none_gradient = 2}},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    set_case("%s", cases[i].name);
    const nds_options *options = cases[i].options.size ? &cases[i].options : NULL;
    nds_status status =
        nds_scatter_nd_backward(cases[i].grad_output, cases[i].data, cases[i].indices, cases[i].updates, NULL,
                                cases[i].scale, cases[i].grad_data, cases[i].grad_updates, options);
    CHECK_STATUS(cases[i].status, status);
    CHECK_BYTES(before, memory, sizeof memory);
  }
}

void test_backward(void) {
  of_each_reduction();
  without_inputs();
  of_a_cache();
  refused_backward();
}
