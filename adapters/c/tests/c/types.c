/* Every element type and every index type. */

#include "check.h"

/* A type, with the little-endian bytes of 1, 2 and 3. */
typedef struct numeric {
  const char *name;
  uint8_t code, bits;
  size_t parts; /* numbers in an element: 2 for complex types */
  uint64_t one, two, three;
} numeric;

static const numeric NUMERIC[] = {
    {"int8", kDLInt, 8, 1, 1, 2, 3},
    {"int16", kDLInt, 16, 1, 1, 2, 3},
    {"int32", kDLInt, 32, 1, 1, 2, 3},
    {"int64", kDLInt, 64, 1, 1, 2, 3},
    {"uint8", kDLUInt, 8, 1, 1, 2, 3},
    {"uint16", kDLUInt, 16, 1, 1, 2, 3},
    {"uint32", kDLUInt, 32, 1, 1, 2, 3},
    {"uint64", kDLUInt, 64, 1, 1, 2, 3},
    {"float16", kDLFloat, 16, 1, 0x3c00, 0x4000, 0x4200},
    {"float32", kDLFloat, 32, 1, 0x3f800000, 0x40000000, 0x40400000},
    {"float64", kDLFloat, 64, 1, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
    {"bfloat16", kDLBfloat, 16, 1, 0x3f80, 0x4000, 0x4040},
    {"complex64", kDLComplex, 64, 2, 0x3f800000, 0x40000000, 0x40400000},
    {"complex128", kDLComplex, 128, 2, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
};

/* Writes `value` to each part of element `position`. */
static void put(uint8_t *memory, const numeric *type, size_t position, uint64_t value) {
  size_t part_bytes = type->bits / 8u / type->parts;
  for (size_t part = 0; part < type->parts; part++) {
    uint8_t *to = memory + (position * type->parts + part) * part_bytes;
    for (size_t byte = 0; byte < part_bytes; byte++) {
      to[byte] = (uint8_t)(value >> (8 * byte));
    }
  }
}

static void add_of(const numeric *type) {
  _Alignas(16) uint8_t data[4 * 16] = {0}, updates[2 * 16] = {0}, expected[4 * 16] = {0};
  for (size_t i = 0; i < 4; i++) {
    put(data, type, i, type->one);
    put(expected, type, i, i == 2 ? type->three : type->one);
  }
  put(updates, type, 0, type->one);
  put(updates, type, 1, type->one);
  const int64_t indices[] = {2, 2};
  DLTensor shape = TENSOR(data, TYPE(type->code, type->bits), 4);
  problem p = {
      .operator_ = SCATTER_ND,
      .data = shape,
      .indices = TENSOR(indices, I64, 2, 1),
      .updates = TENSOR(updates, TYPE(type->code, type->bits), 2),
      .options = OPTIONS(.reduction = ADD),
  };
  set_case("add of %s", type->name);
  check_everywhere(&p, &shape, expected);
}

/* Moves of elements keep all bytes, also bytes without a meaning for the type. */
static void moves_of(const char *name, DLDataType type) {
  _Alignas(16) uint8_t data[6 * 16], updates[2 * 16], scattered[6 * 16], gathered[2 * 16];
  size_t size = size_of(type);
  uint32_t seed = type.bits;
  for (size_t i = 0; i < sizeof data; i++) {
    data[i] = (uint8_t)next_random(&seed);
  }
  for (size_t i = 0; i < sizeof updates; i++) {
    updates[i] = (uint8_t)next_random(&seed);
  }
  memcpy(scattered, data, sizeof data);
  memcpy(scattered + 4 * size, updates, size);
  memcpy(scattered + size, updates + size, size);
  memcpy(gathered, data + 4 * size, size);
  memcpy(gathered + size, data + size, size);
  const int64_t indices[] = {4, 1};
  DLTensor six = TENSOR(data, type, 6), two = TENSOR(updates, type, 2);
  set_case("moves of %s", name);
  check_everywhere(&(problem){SCATTER_ND, six, TENSOR(indices, I64, 2, 1), two, 0, 0, NULL}, &six, scattered);
  check_everywhere(&(problem){SCATTER_UPDATE, six, TENSOR(indices, I64, 2), two, 0, 0, NULL}, &six, scattered);
  check_everywhere(&(problem){SCATTER_ELEMENTS, six, TENSOR(indices, I64, 2), two, 0, 0, NULL}, &six, scattered);
  check_everywhere(&(problem){GATHER_ND, six, TENSOR(indices, I64, 2, 1), two, 0, 0, NULL}, &two, gathered);
  check_everywhere(&(problem){GATHER, six, TENSOR(indices, I64, 2), two, 0, 0, NULL}, &two, gathered);
  check_everywhere(&(problem){GATHER_ELEMENTS, six, TENSOR(indices, I64, 2), two, 0, 0, NULL}, &two, gathered);
  DLTensor cache = TENSOR(data, type, 1, 6), step = TENSOR(updates, type, 1, 2);
  memcpy(scattered, data, sizeof data);
  memcpy(scattered + 4 * size, updates, 2 * size);
  check_everywhere(&(problem){TENSOR_SCATTER, cache, TENSOR(indices, I64, 1), step, 1, 0, NULL}, &cache, scattered);
}

/* The indices are 3 and 1. For signed types, 1 is written as -4. */
static void indices_of(const numeric *type) {
  bool is_signed = type->code == (uint8_t)kDLInt;
  const int32_t data[] = {0, 1, 2, 3, 4}, updates[] = {30, 10};
  const int32_t scattered[] = {0, 10, 2, 30, 4}, gathered[] = {3, 1};
  uint64_t indices[2] = {0};
  put((uint8_t *)indices, type, 0, 3);
  put((uint8_t *)indices, type, 1, is_signed ? (uint64_t)-4 : 1);
  DLDataType kind = TYPE(type->code, type->bits);
  DLTensor five = TENSOR(data, I32, 5), two = TENSOR(updates, I32, 2);
  set_case("indices of %s", type->name);
  check_everywhere(&(problem){SCATTER_ND, five, TENSOR(indices, kind, 2, 1), two, 0, 0, NULL}, &five, scattered);
  check_everywhere(&(problem){SCATTER_UPDATE, five, TENSOR(indices, kind, 2), two, 0, 0, NULL}, &five, scattered);
  check_everywhere(&(problem){SCATTER_ELEMENTS, five, TENSOR(indices, kind, 2), two, 0, 0, NULL}, &five, scattered);
  check_everywhere(&(problem){GATHER_ND, five, TENSOR(indices, kind, 2, 1), two, 0, 0, NULL}, &two, gathered);
  check_everywhere(&(problem){GATHER, five, TENSOR(indices, kind, 2), two, 0, 0, NULL}, &two, gathered);
  check_everywhere(&(problem){GATHER_ELEMENTS, five, TENSOR(indices, kind, 2), two, 0, 0, NULL}, &two, gathered);
  DLTensor cache = TENSOR(data, I32, 1, 5), step = TENSOR(updates, I32, 1, 2);
  const int32_t written[] = {0, 1, 2, 30, 10};
  check_everywhere(&(problem){TENSOR_SCATTER, cache, TENSOR(indices, kind, 1), step, 1, 0, NULL}, &cache, written);
}

/* Other memory that the CPU accesses: pinned memory of CUDA and ROCm. */
static void pinned_memory(void) {
  static const int kinds[] = {kDLCPU, kDLCUDAHost, kDLROCMHost};
  for (size_t i = 0; i < COUNT(kinds); i++) {
    int32_t data[] = {1, 2}, expected[] = {1, 9}, update[] = {9};
    int64_t index[] = {1};
    DLTensor tensors[] = {TENSOR(data, I32, 2), TENSOR(index, I64, 1, 1), TENSOR(update, I32, 1)};
    for (size_t t = 0; t < COUNT(tensors); t++) {
      tensors[t].device.device_type = kinds[i];
      tensors[t].device.device_id = 3;
    }
    set_case("device %d", kinds[i]);
    CHECK_OK(nds_scatter_nd(&tensors[0], &tensors[1], &tensors[2], &tensors[0], NULL));
    CHECK_BYTES(expected, data, sizeof data);
  }
}

/* Newer and future types of DLPack. Only their size matters. */
static const struct {
  const char *name;
  DLDataType type;
} MOVED[] = {
    {"float8_e3m4", {7, 8, 1}},        {"float8_e4m3fn", {10, 8, 1}},      {"float8_e8m0fnu", {14, 8, 1}},
    {"two float4", {17, 4, 2}},        {"four float4", {17, 4, 4}},        {"two float8", {12, 8, 2}},
    {"eight float4", {17, 4, 8}},      {"a type of 32 bits", {200, 32, 1}}, {"eight float8", {12, 8, 8}},
    {"a type of 64 bits", {18, 64, 1}}, {"sixteen float8", {12, 8, 16}},    {"the last code", {255, 128, 1}},
};

/* Skipped elements of a gather become bytes of 0. The memory needs no alignment. */
static void moved_at_any_address(DLDataType type) {
  uint8_t memory[1 + 3 * 16], result[1 + 2 * 16], expected[2 * 16] = {0};
  size_t size = size_of(type);
  for (size_t i = 0; i < sizeof memory; i++) {
    memory[i] = (uint8_t)(i + 1);
  }
  memcpy(expected, memory + 1 + 2 * size, size);
  const int64_t indices[] = {2, 3};
  DLTensor data = TENSOR(memory + 1, type, 3), at = TENSOR(indices, I64, 2), output = TENSOR(result + 1, type, 2);
  CHECK_OK(nds_gather(&data, &at, 0, &output, OPTIONS(.bounds = SKIP)));
  CHECK_BYTES(expected, result + 1, 2 * size);
}

/* A reduction is refused for types that are only moved. */
static void never_reduced(DLDataType type) {
  static const uint8_t bytes[4 * 16];
  static const int64_t indices[] = {1};
  for (int32_t reduction = ADD; reduction <= MEAN; reduction++) {
    uint8_t result[4 * 16];
    memset(result, 0x5a, sizeof result);
    problem p = {SCATTER_UPDATE, TENSOR(bytes, type, 4), TENSOR(indices, I64, 1), TENSOR(bytes, type, 1), 0, 0, NULL};
    p.options = OPTIONS(.reduction = reduction);
    DLTensor output = TENSOR(result, type, 4);
    check_refused(&p, &output, NDS_UNSUPPORTED, result, sizeof result);
    check_plan_refused(&p, NDS_UNSUPPORTED);
  }
}

/* Two types of the same size are different types, in calls and in runs of plans. */
static void never_mixed(operator_name operator_, DLDataType type, DLDataType other) {
  for (size_t wrong = 0; wrong < 3; wrong++) {
    base base;
    make_base(&base, operator_);
    DLTensor *moved[] = {&base.problem.data, &base.output, &base.problem.updates};
    for (size_t i = 0; i < COUNT(moved); i++) {
      moved[i]->dtype = type;
    }
    nds_plan *plan = NULL;
    if (has_plan(&base.problem)) {
      CHECK_OK(make_plan(&base.problem, &plan));
    }
    if (wrong < (is_gather(&base.problem) ? 2 : 3)) {
      moved[wrong]->dtype = other;
      check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
      CHECK(strstr(nds_last_error(), "one type") != NULL);
    }
    if (plan != NULL) {
      moved[0]->dtype = moved[1]->dtype = moved[2]->dtype = other;
      float before[COUNT(base.result)];
      memcpy(before, base.result, sizeof before);
      const DLTensor *updates = is_gather(&base.problem) ? NULL : &base.problem.updates;
      CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_run(plan, &base.problem.data, updates, &base.output, NULL));
      CHECK_BYTES(before, base.result, sizeof before);
      nds_plan_free(plan);
    }
  }
}

static void moved_types(void) {
  for (size_t i = 0; i < COUNT(MOVED); i++) {
    moves_of(MOVED[i].name, MOVED[i].type);
    moved_at_any_address(MOVED[i].type);
    never_reduced(MOVED[i].type);
  }
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    set_case("operator %d, types that are moved", (int)operator_);
    never_mixed(operator_, (DLDataType){17, 4, 8}, (DLDataType){18, 4, 8});
    never_mixed(operator_, (DLDataType){12, 8, 4}, (DLDataType){12, 32, 1});
  }
}

void test_types(void) {
  for (size_t i = 0; i < COUNT(NUMERIC); i++) {
    add_of(&NUMERIC[i]);
    moves_of(NUMERIC[i].name, TYPE(NUMERIC[i].code, NUMERIC[i].bits));
    if (NUMERIC[i].code == (uint8_t)kDLInt || NUMERIC[i].code == (uint8_t)kDLUInt) {
      indices_of(&NUMERIC[i]);
    }
  }
  moves_of("bool", BOOL);
  moved_types();
  pinned_memory();
}
