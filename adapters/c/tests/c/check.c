/* The checks of the C tests, and functions that call the operator of a `problem` with its tensors. */

#include "check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char current_case[256];
static atomic_ulong checks;

void set_case(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(current_case, sizeof current_case, format, arguments);
  va_end(arguments);
}

static void fail_at(const char *file, int line, const char *text) {
  fprintf(stderr, "%s:%d: %s\n", file, line, text);
  if (current_case[0] != '\0') {
    fprintf(stderr, "  case: %s\n", current_case);
  }
}

_Noreturn static void give_up(void) {
  fprintf(stderr, "  nds_last_error(): %s\n", nds_last_error());
  exit(1);
}

void check_true(const char *file, int line, const char *text, bool held) {
  atomic_fetch_add(&checks, 1);
  if (!held) {
    fail_at(file, line, text);
    fprintf(stderr, "  expected true, got false\n");
    give_up();
  }
}

void check_int(const char *file, int line, const char *text, long long expected, long long got) {
  atomic_fetch_add(&checks, 1);
  if (expected != got) {
    fail_at(file, line, text);
    fprintf(stderr, "  expected %lld, got %lld\n", expected, got);
    give_up();
  }
}

void check_bytes(const char *file, int line, const char *text, const void *expected, const void *got, size_t bytes) {
  atomic_fetch_add(&checks, 1);
  const unsigned char *a = expected, *b = got;
  if (bytes > 0 && memcmp(a, b, bytes) != 0) {
    size_t at = 0;
    while (a[at] == b[at]) {
      at++;
    }
    fail_at(file, line, text);
    fprintf(stderr, "  byte %zu of %zu: expected 0x%02x, got 0x%02x\n", at, bytes, a[at], b[at]);
    give_up();
  }
}

void check_status(const char *file, int line, const char *text, nds_status expected, nds_status got) {
  atomic_fetch_add(&checks, 1);
  if (expected != got) {
    fail_at(file, line, text);
    fprintf(stderr, "  expected status %d, got %d\n", (int)expected, (int)got);
    give_up();
  }
  if (expected != NDS_OK) {
    check_true(file, line, "a failure has a message", nds_last_error()[0] != '\0');
    check_int(file, line, "status of nds_last_error_info", expected, last_info().status);
  }
}

unsigned long checks_made(void) {
  return atomic_load(&checks);
}

nds_error_info last_info(void) {
  nds_error_info info = {.size = sizeof info};
  if (nds_last_error_info(&info) != NDS_OK) {
    fail_at(__FILE__, __LINE__, "nds_last_error_info");
    give_up();
  }
  return info;
}

void *allocate(size_t bytes) {
  void *memory = calloc(bytes > 0 ? bytes : 1, 1);
  if (memory == NULL) {
    fprintf(stderr, "the test cannot allocate memory\n");
    exit(1);
  }
  return memory;
}

uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

DLTensor tensor_of(const void *memory, DLDataType type, size_t ndim, int64_t *shape, int64_t *strides) {
  return (DLTensor){
      .data = (void *)memory,
      .device = {.device_type = kDLCPU},
      .ndim = (int32_t)ndim,
      .dtype = type,
      .shape = shape,
      .strides = strides,
  };
}

size_t size_of(DLDataType type) {
  return (size_t)type.bits * type.lanes / 8;
}

size_t bytes_of(const DLTensor *tensor) {
  size_t bytes = size_of(tensor->dtype);
  for (int32_t axis = 0; axis < tensor->ndim; axis++) {
    bytes *= (size_t)tensor->shape[axis];
  }
  return bytes;
}

bool is_gather(const problem *problem) {
  return problem->operator_ >= GATHER_ND;
}

bool has_plan(const problem *problem) {
  return problem->operator_ != TENSOR_SCATTER;
}

nds_status call_with(const problem *p, const DLTensor *data, const DLTensor *indices, const DLTensor *updates,
                     DLTensor *output) {
  switch (p->operator_) {
  case SCATTER_ND:
    return nds_scatter_nd(data, indices, updates, output, p->options);
  case SCATTER_UPDATE:
    return nds_scatter_update(data, indices, updates, p->axis, output, p->options);
  case SCATTER_ELEMENTS:
    return nds_scatter_elements(data, indices, updates, p->axis, output, p->options);
  case SCATTER_PAGED:
    return nds_scatter_paged(data, indices, updates, output, p->options);
  case TENSOR_SCATTER:
    return nds_tensor_scatter(data, updates, indices, p->axis, p->circular, output, p->options);
  case GATHER_ND:
    return nds_gather_nd(data, indices, p->axis, output, p->options);
  case GATHER:
    return nds_gather(data, indices, p->axis, output, p->options);
  case GATHER_ELEMENTS:
    return nds_gather_elements(data, indices, p->axis, output, p->options);
  case GATHER_PAGED:
    return nds_gather_paged(data, indices, output, p->options);
  }
  return NDS_INTERNAL;
}

nds_status call(const problem *p, DLTensor *output) {
  return call_with(p, &p->data, &p->indices, &p->updates, output);
}

nds_status make_plan_with(const problem *p, const DLTensor *data, const DLTensor *indices, nds_plan **plan) {
  switch (p->operator_) {
  case SCATTER_ND:
    return nds_plan_scatter_nd(data, indices, p->options, plan);
  case SCATTER_UPDATE:
    return nds_plan_scatter_update(data, indices, p->axis, p->options, plan);
  case SCATTER_ELEMENTS:
    return nds_plan_scatter_elements(data, indices, p->axis, p->options, plan);
  case SCATTER_PAGED:
    return nds_plan_scatter_paged(data, indices, p->options, plan);
  case GATHER_ND:
    return nds_plan_gather_nd(data, indices, p->axis, p->options, plan);
  case GATHER:
    return nds_plan_gather(data, indices, p->axis, p->options, plan);
  case GATHER_ELEMENTS:
    return nds_plan_gather_elements(data, indices, p->axis, p->options, plan);
  case GATHER_PAGED:
    return nds_plan_gather_paged(data, indices, p->options, plan);
  case TENSOR_SCATTER:
    break;
  }
  return NDS_INTERNAL;
}

nds_status make_plan(const problem *p, nds_plan **plan) {
  return make_plan_with(p, &p->data, &p->indices, plan);
}

/* Runs `plan` and compares the output with `expected`. A null `plan` selects a one-shot call of the operator of `p`.
 * A null `start` selects a call that reads the data of `p`. Any other `start` selects a call in place: the function
 * copies the bytes at `start` to the output tensor, and passes the output tensor also as the data of the call. */
static void check_once(const problem *p, const nds_plan *plan, const DLTensor *shape, const void *start,
                       const void *expected) {
  size_t bytes = bytes_of(shape);
  DLTensor output = *shape;
  output.data = allocate(bytes);
  if (start != NULL) {
    memcpy(output.data, start, bytes);
  }
  const DLTensor *data = start != NULL ? &output : &p->data;
  if (plan != NULL) {
    CHECK_OK(nds_plan_run(plan, data, is_gather(p) ? NULL : &p->updates, &output, p->options));
  } else {
    CHECK_OK(call_with(p, data, &p->indices, &p->updates, &output));
  }
  CHECK_BYTES(expected, output.data, bytes);
  free(output.data);
}

static void check_both_ways(const problem *p, const nds_plan *plan, const DLTensor *shape, const void *expected) {
  check_once(p, plan, shape, NULL, expected);
  if (!is_gather(p)) {
    const char *start = (const char *)p->data.data + p->data.byte_offset;
    check_once(p, plan, shape, start, expected);
  }
}

void check_everywhere(const problem *p, const DLTensor *shape, const void *expected) {
  check_both_ways(p, NULL, shape, expected);
  if (has_plan(p)) {
    nds_plan *plan = NULL;
    CHECK_OK(make_plan(p, &plan));
    check_both_ways(p, plan, shape, expected);
    check_both_ways(p, plan, shape, expected);
    nds_plan_free(plan);
  }
}
