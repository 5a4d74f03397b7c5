/* Tests of plans: repeated runs of one plan on different memory, explanations of plans, and runs that fail
 * because their tensors do not match the plan. The function check_everywhere (check.h) tests that a run of
 * a plan and a one-shot call have the same result. */

#include "check.h"

#include <stdlib.h>

static const int64_t ROWS[] = {2, 0, 2};

static problem sum_of_rows(void) {
  static int32_t data[8];
  static const int32_t updates[] = {1, 2, 3, 4, 5, 6};
  static int64_t shape[] = {4, 2}, index_shape[] = {3, 1}, update_shape[] = {3, 2};
  static const nds_options add = {.size = sizeof(nds_options), .reduction = ADD};
  return (problem){
      .operator_ = SCATTER_ND,
      .data = tensor_of(data, I32, 2, shape, NULL),
      .indices = tensor_of(ROWS, I64, 2, index_shape, NULL),
      .updates = tensor_of(updates, I32, 2, update_shape, NULL),
      .options = &add,
  };
}

static void many_runs(void) {
  problem p = sum_of_rows();
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&p, &plan));
  int32_t sums[8] = {0}, expected[8] = {0};
  DLTensor output = p.data;
  output.data = sums;
  for (int32_t run = 1; run <= 100; run++) {
    CHECK_OK(nds_plan_run(plan, &output, &p.updates, &output, NULL));
    expected[0] = 3 * run;
    expected[1] = 4 * run;
    expected[4] = 6 * run;
    expected[5] = 8 * run;
    CHECK_BYTES(expected, sums, sizeof sums);
  }
  nds_plan_free(plan);
}

/* A caller may change or free the indices after the plan has been made. The function that makes a plan
 * does not read the elements of data, so the pointer to the elements of data may be null. */
static void plan_keeps_what_it_needs(void) {
  problem p = sum_of_rows();
  int64_t *indices = allocate(sizeof ROWS);
  memcpy(indices, ROWS, sizeof ROWS);
  p.indices.data = indices;
  DLTensor described = p.data;
  described.data = NULL;
  nds_plan *plan = NULL;
  CHECK_OK(make_plan_with(&p, &described, &p.indices, &plan));
  free(indices);
  int32_t sums[8];
  const int32_t expected[] = {3, 4, 0, 0, 6, 8, 0, 0};
  DLTensor output = p.data;
  output.data = sums;
  CHECK_OK(nds_plan_run(plan, &p.data, &p.updates, &output, NULL));
  CHECK_BYTES(expected, sums, sizeof sums);
  nds_plan_free(plan);
}

/* Runs a plan of a scatter whose output is transposed and has reversed columns. The output of each run
 * must have the strides of the plan. The data and the updates of each run may have any strides. */
static void strided_runs(void) {
  problem p = sum_of_rows();
  int64_t strides[] = {1, -4};
  DLTensor planned = p.data;
  planned.strides = strides;
  nds_plan *plan = NULL;
  CHECK_OK(make_plan_with(&p, &planned, &p.indices, &plan));
  int32_t memory[8] = {0}, updates[] = {2, 4, 6, 1, 3, 5};
  const int32_t once[] = {4, 0, 8, 0, 3, 0, 6, 0}, twice[] = {8, 0, 16, 0, 6, 0, 12, 0};
  DLTensor output = planned;
  output.data = memory;
  output.byte_offset = 4 * sizeof(int32_t);
  DLTensor columns = STRIDED(updates, I32, DIMS(3, 2), DIMS(1, -3));
  columns.byte_offset = 3 * sizeof(int32_t);
  CHECK_OK(nds_plan_run(plan, &p.data, &columns, &output, NULL));
  CHECK_BYTES(once, memory, sizeof memory);
  CHECK_OK(nds_plan_run(plan, &output, &columns, &output, NULL));
  CHECK_BYTES(twice, memory, sizeof memory);
  nds_plan_free(plan);
}

/* Runs one plan of a gather with two different data tensors. The run ignores the options reduction and
 * bounds, because a run uses only the options max_threads, pool and goal. */
static void gather_runs(void) {
  const int32_t first[] = {1, 2, 3}, second[] = {4, 5, 6};
  const int32_t from_first[] = {3, 1, 3}, from_second[] = {6, 4, 6};
  int32_t result[3];
  DLTensor data = TENSOR(first, I32, 3), other = TENSOR(second, I32, 3);
  DLTensor output = TENSOR(result, I32, 3), at = TENSOR(ROWS, I64, 3);
  nds_plan *plan = NULL;
  CHECK_OK(nds_plan_gather(&data, &at, 0, NULL, &plan));
  CHECK_OK(nds_plan_run(plan, &data, NULL, &output, NULL));
  CHECK_BYTES(from_first, result, sizeof result);
  CHECK_OK(nds_plan_run(plan, &other, NULL, &output, OPTIONS(.reduction = ADD, .bounds = SKIP, .max_threads = 1)));
  CHECK_BYTES(from_second, result, sizeof result);
  nds_plan_free(plan);
}

/* A run uses the reduction of its plan and ignores the reduction in its own options. */
static void options_of_the_plan(void) {
  problem p = sum_of_rows();
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&p, &plan));
  int32_t sums[8];
  const int32_t expected[] = {3, 4, 0, 0, 6, 8, 0, 0};
  DLTensor output = p.data;
  output.data = sums;
  CHECK_OK(nds_plan_run(plan, &p.data, &p.updates, &output, OPTIONS(.reduction = MUL, .reject_duplicates = 1)));
  CHECK_BYTES(expected, sums, sizeof sums);
  nds_plan_free(plan);
}

static void check_explanation(const nds_plan *plan) {
  size_t length = 0;
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_explain(plan, NULL, &length));
  CHECK(length > 1);
  size_t full = length;
  char *text = allocate(full + 1);
  memset(text, 'x', full + 1);
  length = full - 1;
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_explain(plan, text, &length));
  CHECK_INT((long long)full, (long long)length);
  for (size_t i = 0; i <= full; i++) {
    CHECK_INT('x', text[i]);
  }
  for (size_t spare = 0; spare <= 1; spare++) {
    memset(text, 'x', full + 1);
    length = full + spare;
    CHECK_OK(nds_plan_explain(plan, text, &length));
    CHECK_INT((long long)full, (long long)length);
    CHECK_INT((long long)full - 1, (long long)strlen(text));
    CHECK_INT('x', text[full]);
  }
  length = full;
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_explain(plan, NULL, &length));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_explain(plan, text, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_explain(NULL, text, &length));
  free(text);
}

static void explanations(void) {
  problem p = sum_of_rows();
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&p, &plan));
  check_explanation(plan);
  nds_plan_free(plan);
  CHECK_OK(nds_plan_gather_nd(&p.data, &p.indices, 0, NULL, &plan));
  check_explanation(plan);
  nds_plan_free(plan);
}

/* A run whose arguments do not match the plan fails and does not change the output. */
static void refused_runs(void) {
  problem p = sum_of_rows();
  nds_plan *plan = NULL, *gather = NULL;
  CHECK_OK(make_plan(&p, &plan));
  CHECK_OK(nds_plan_gather_nd(&p.data, &p.indices, 0, NULL, &gather));
  int32_t memory[16], before[16];
  memset(memory, 0x5a, sizeof memory);
  memcpy(before, memory, sizeof memory);
  DLTensor output = p.data, gathered = p.updates, floats = p.data, float_updates = p.updates;
  output.data = gathered.data = memory;
  floats.dtype = float_updates.dtype = F32;
  DLTensor float_output = output;
  float_output.dtype = F32;
  DLTensor columns = STRIDED(memory, I32, DIMS(4, 2), DIMS(1, 4)), wide = TENSOR(memory, I32, 4, 3);
  DLTensor data_columns = STRIDED(p.data.data, I32, DIMS(4, 2), DIMS(1, 4));
  DLTensor few = TENSOR(p.updates.data, I32, 2, 2);
  const struct {
    const char *reason;
    const nds_plan *plan;
    const DLTensor *data, *updates;
    DLTensor *output;
  } runs[] = {
      {"no plan", NULL, &p.data, &p.updates, &output},
      {"no data", plan, NULL, &p.updates, &output},
      {"no updates", plan, &p.data, NULL, &output},
      {"no output", plan, &p.data, &p.updates, NULL},
      {"updates of a gather", gather, &p.data, &p.updates, &gathered},
      {"no data to gather from", gather, NULL, NULL, &gathered},
      {"no output of a gather", gather, &p.data, NULL, NULL},
      {"data of another type", plan, &floats, &p.updates, &output},
      {"everything of another type", plan, &floats, &float_updates, &float_output},
      {"output of another type", plan, &p.data, &p.updates, &float_output},
      {"updates of another type", plan, &p.data, &float_updates, &output},
      {"data of another type to gather from", gather, &floats, NULL, &gathered},
      {"output of other strides", plan, &p.data, &p.updates, &columns},
      {"output of another shape", plan, &p.data, &p.updates, &wide},
      {"updates of another shape", plan, &p.data, &few, &output},
      {"data of other strides to gather from", gather, &data_columns, NULL, &gathered},
      {"gathered into another shape", gather, &p.data, NULL, &output},
  };
  for (size_t i = 0; i < COUNT(runs); i++) {
    set_case("%s", runs[i].reason);
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_run(runs[i].plan, runs[i].data, runs[i].updates, runs[i].output, NULL));
    CHECK_BYTES(before, memory, sizeof memory);
  }
  nds_plan_free(plan);
  nds_plan_free(gather);
}

void test_plans(void) {
  nds_plan_free(NULL);
  many_runs();
  plan_keeps_what_it_needs();
  strided_runs();
  gather_runs();
  options_of_the_plan();
  explanations();
  refused_runs();
}
