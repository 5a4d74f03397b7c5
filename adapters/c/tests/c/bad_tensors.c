/* Invalid tensors, as each argument of each operator. */

#include "check.h"

#include <limits.h>
#include <stdio.h>

static void no_memory(DLTensor *tensor) { tensor->data = NULL; }

static void no_memory_but_an_offset(DLTensor *tensor) {
  tensor->data = NULL;
  tensor->byte_offset = 64;
}

static void no_shape(DLTensor *tensor) { tensor->shape = NULL; }
static void odd_shape(DLTensor *tensor) { tensor->shape = (int64_t *)(void *)((char *)tensor->shape + 1); }
static void odd_strides(DLTensor *tensor) { tensor->strides = (int64_t *)(void *)((char *)tensor->shape + 4); }
static void negative_rank(DLTensor *tensor) { tensor->ndim = -1; }
static void lowest_rank(DLTensor *tensor) { tensor->ndim = INT32_MIN; }

static void set_shape(DLTensor *tensor, int64_t *shape) {
  tensor->ndim = 2;
  tensor->shape = shape;
}

static void negative_size(DLTensor *tensor) {
  static int64_t shape[] = {2, -1};
  set_shape(tensor, shape);
}

static void negative_size_beside_zero(DLTensor *tensor) {
  static int64_t shape[] = {0, -3};
  set_shape(tensor, shape);
}

static void lowest_size(DLTensor *tensor) {
  static int64_t shape[] = {INT64_MIN, 1};
  set_shape(tensor, shape);
}

static void product_overflows(DLTensor *tensor) {
  static int64_t shape[] = {INT64_C(1) << 32, INT64_C(1) << 32};
  set_shape(tensor, shape);
}

static void product_wraps_to_little(DLTensor *tensor) {
  static int64_t shape[] = {(INT64_C(1) << 62) + 1, 4};
  set_shape(tensor, shape);
}

static void bytes_overflow(DLTensor *tensor) {
  static int64_t shape[] = {INT64_C(1) << 62, 1};
  set_shape(tensor, shape);
}

static void strides_overflow(DLTensor *tensor) {
  static int64_t shape[] = {2, 3}, strides[] = {INT64_MAX, 1};
  set_shape(tensor, shape);
  tensor->strides = strides;
}

static void lowest_stride(DLTensor *tensor) {
  static int64_t shape[] = {2, 3}, strides[] = {1, INT64_MIN};
  set_shape(tensor, shape);
  tensor->strides = strides;
}

static void cuda(DLTensor *tensor) { tensor->device.device_type = 2; }
static void no_device(DLTensor *tensor) { tensor->device.device_type = 0; }
static void managed(DLTensor *tensor) { tensor->device.device_type = 13; }
static void two_lanes(DLTensor *tensor) { tensor->dtype.lanes = 2; }
static void no_lanes(DLTensor *tensor) { tensor->dtype.lanes = 0; }
static void handles(DLTensor *tensor) { tensor->dtype.code = 3; }
static void float6(DLTensor *tensor) { tensor->dtype = TYPE(15, 6); }
static void three_float8(DLTensor *tensor) { tensor->dtype = (DLDataType){10, 8, 3}; }
static void thirty_two_float8(DLTensor *tensor) { tensor->dtype = (DLDataType){10, 8, 32}; }
static void float8_without_lanes(DLTensor *tensor) { tensor->dtype = (DLDataType){10, 8, 0}; }
static void most_bits(DLTensor *tensor) { tensor->dtype = (DLDataType){255, 255, 65535}; }
static void odd_bits(DLTensor *tensor) { tensor->dtype.bits = 24; }
static void no_bits(DLTensor *tensor) { tensor->dtype.bits = 0; }
static void wide_bool(DLTensor *tensor) { tensor->dtype = TYPE(6, 32); }
static void half_complex(DLTensor *tensor) { tensor->dtype = TYPE(kDLComplex, 32); }
static void odd_offset(DLTensor *tensor) { tensor->byte_offset = 1; }
static void odd_address(DLTensor *tensor) { tensor->data = (char *)tensor->data + 2; }

/* Faults of a tensor. */
static const struct {
  const char *reason;
  void (*spoil)(DLTensor *tensor);
  nds_status status;
  bool of_memory; /* a fault of the memory, which a plan does not read in its data */
} SPOILT[] = {
    {"null data", no_memory, NDS_INVALID_ARGUMENT, true},
    {"null data with an offset", no_memory_but_an_offset, NDS_INVALID_ARGUMENT, true},
    {"null shape", no_shape, NDS_INVALID_ARGUMENT, false},
    {"misaligned shape", odd_shape, NDS_INVALID_ARGUMENT, false},
    {"misaligned strides", odd_strides, NDS_INVALID_ARGUMENT, false},
    {"negative ndim", negative_rank, NDS_INVALID_ARGUMENT, false},
    {"lowest ndim", lowest_rank, NDS_INVALID_ARGUMENT, false},
    {"negative size", negative_size, NDS_INVALID_ARGUMENT, false},
    {"negative size next to zero", negative_size_beside_zero, NDS_INVALID_ARGUMENT, false},
    {"lowest size", lowest_size, NDS_INVALID_ARGUMENT, false},
    {"sizes that overflow", product_overflows, NDS_INVALID_ARGUMENT, false},
    {"sizes that wrap to a small number", product_wraps_to_little, NDS_INVALID_ARGUMENT, false},
    {"more bytes than addresses", bytes_overflow, NDS_INVALID_ARGUMENT, true},
    {"strides that overflow", strides_overflow, NDS_INVALID_ARGUMENT, false},
    {"lowest stride", lowest_stride, NDS_INVALID_ARGUMENT, false},
    {"CUDA memory", cuda, NDS_UNSUPPORTED, false},
    {"device 0", no_device, NDS_UNSUPPORTED, false},
    {"managed CUDA memory", managed, NDS_UNSUPPORTED, false},
    {"two lanes", two_lanes, NDS_UNSUPPORTED, false},
    {"no lanes", no_lanes, NDS_UNSUPPORTED, false},
    {"opaque handles", handles, NDS_UNSUPPORTED, false},
    {"float6", float6, NDS_UNSUPPORTED, false},
    {"three float8", three_float8, NDS_UNSUPPORTED, false},
    {"thirty-two float8", thirty_two_float8, NDS_UNSUPPORTED, false},
    {"float8 without lanes", float8_without_lanes, NDS_UNSUPPORTED, false},
    {"the most bits", most_bits, NDS_UNSUPPORTED, false},
    {"24 bits", odd_bits, NDS_UNSUPPORTED, false},
    {"no bits", no_bits, NDS_UNSUPPORTED, false},
    {"bool of 32 bits", wide_bool, NDS_UNSUPPORTED, false},
    {"complex of 32 bits", half_complex, NDS_UNSUPPORTED, false},
    {"misaligned byte_offset", odd_offset, NDS_UNSUPPORTED, true},
    {"misaligned data", odd_address, NDS_UNSUPPORTED, true},
};

enum { DATA, INDICES, UPDATES, OUTPUT, ARGUMENTS };
static const char *const NAMES[] = {"data", "indices", "updates", "output"};

static DLTensor *argument(base *base, size_t number) {
  DLTensor *const tensors[] = {&base->problem.data, &base->problem.indices, &base->problem.updates, &base->output};
  return tensors[number];
}

static void spoilt_in_calls(operator_name operator_, size_t number, size_t how) {
  base base;
  make_base(&base, operator_);
  if (number == UPDATES && is_gather(&base.problem)) {
    return;
  }
  SPOILT[how].spoil(argument(&base, number));
  check_refused(&base.problem, &base.output, SPOILT[how].status, base.result, sizeof base.result);
}

static void spoilt_in_plans(operator_name operator_, size_t number, size_t how) {
  base base;
  make_base(&base, operator_);
  if (!has_plan(&base.problem) || number > INDICES || (number == DATA && SPOILT[how].of_memory)) {
    return;
  }
  SPOILT[how].spoil(argument(&base, number));
  check_plan_refused(&base.problem, SPOILT[how].status);
}

/* A run of a plan refuses the same faults of data, updates and output as a call. */
static void spoilt_in_runs(operator_name operator_, size_t number, size_t how) {
  base base;
  make_base(&base, operator_);
  bool gathers = is_gather(&base.problem);
  if (!has_plan(&base.problem) || number == INDICES || (number == UPDATES && gathers)) {
    return;
  }
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&base.problem, &plan));
  SPOILT[how].spoil(argument(&base, number));
  float before[COUNT(base.result)];
  memcpy(before, base.result, sizeof before);
  const DLTensor *updates = gathers ? NULL : &base.problem.updates;
  CHECK_STATUS(SPOILT[how].status, nds_plan_run(plan, &base.problem.data, updates, &base.output, NULL));
  CHECK_BYTES(before, base.result, sizeof before);
  nds_plan_free(plan);
}

static void spoilt_arguments(void) {
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    for (size_t number = 0; number < ARGUMENTS; number++) {
      for (size_t how = 0; how < COUNT(SPOILT); how++) {
        set_case("operator %d, %s: %s", (int)operator_, NAMES[number], SPOILT[how].reason);
        spoilt_in_calls(operator_, number, how);
        spoilt_in_plans(operator_, number, how);
        spoilt_in_runs(operator_, number, how);
      }
    }
  }
}

/* Each pointer to a tensor is null once. Only write_indices may be null. */
static void null_tensors(void) {
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    for (size_t number = 0; number < ARGUMENTS; number++) {
      base base;
      make_base(&base, operator_);
      bool has_it = number != UPDATES || !is_gather(&base.problem);
      if (!has_it || (operator_ == TENSOR_SCATTER && number == INDICES)) {
        continue;
      }
      DLTensor *given[ARGUMENTS];
      for (size_t i = 0; i < ARGUMENTS; i++) {
        given[i] = i == number ? NULL : argument(&base, i);
      }
      float before[COUNT(base.result)];
      memcpy(before, base.result, sizeof before);
      set_case("operator %d without %s", (int)operator_, NAMES[number]);
      CHECK_STATUS(NDS_INVALID_ARGUMENT, call_with(&base.problem, given[0], given[1], given[2], given[3]));
      CHECK(strstr(nds_last_error(), "` is null") != NULL);
      CHECK_BYTES(before, base.result, sizeof before);
    }
  }
}

/* A misaligned struct is refused without a read. */
static void misaligned_tensors(void) {
  base base;
  make_base(&base, SCATTER_ND);
  _Alignas(DLTensor) static unsigned char room[sizeof(DLTensor) + 4];
  memcpy(room + 4, &base.problem.data, sizeof(DLTensor));
  const DLTensor *data = (const DLTensor *)(void *)(room + 4);
  CHECK_STATUS(NDS_INVALID_ARGUMENT, call_with(&base.problem, data, &base.problem.indices, &base.problem.updates, &base.output));
  CHECK(strstr(nds_last_error(), "`data` is a struct at address 0x") != NULL);
}

/* The message distinguishes null pointers from misaligned pointers. */
static void messages_about_sizes(void) {
  static const struct {
    void (*spoil)(DLTensor *tensor);
    const char *message;
  } cases[] = {{no_shape, "`output.shape` is null"}, {odd_shape, "`output.shape` is 0x"}, {odd_strides, "`output.strides` is 0x"}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    base base;
    make_base(&base, SCATTER_ND);
    cases[i].spoil(&base.output);
    set_case("%s", cases[i].message);
    check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
    CHECK(strstr(nds_last_error(), cases[i].message) != NULL);
  }
}

static void null_arguments_of_plans(void) {
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    base base;
    make_base(&base, operator_);
    if (!has_plan(&base.problem)) {
      continue;
    }
    const DLTensor *data = &base.problem.data, *indices = &base.problem.indices;
    nds_plan *plan = (nds_plan *)&plan;
    set_case("plan of operator %d", (int)operator_);
    CHECK_STATUS(NDS_INVALID_ARGUMENT, make_plan_with(&base.problem, NULL, indices, &plan));
    CHECK(plan == NULL);
    plan = (nds_plan *)&plan;
    CHECK_STATUS(NDS_INVALID_ARGUMENT, make_plan_with(&base.problem, data, NULL, &plan));
    CHECK(plan == NULL);
    CHECK_STATUS(NDS_INVALID_ARGUMENT, make_plan_with(&base.problem, data, indices, NULL));
  }
}

/* Without a fault, the base calls succeed. */
static void unspoilt(void) {
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    base base;
    make_base(&base, operator_);
    set_case("operator %d", (int)operator_);
    CHECK_OK(call(&base.problem, &base.output));
  }
}

void test_bad_tensors(void) {
  unspoilt();
  spoilt_arguments();
  null_tensors();
  misaligned_tensors();
  messages_about_sizes();
  null_arguments_of_plans();
}
