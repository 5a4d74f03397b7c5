/* Every type of elements and of indices. */

#include "check.h"

/* One, two and three as bytes of a little-endian machine. */
typedef struct numeric {
  const char *name;
  uint8_t code, bits;
  size_t parts; /* numbers of an element: two for complex */
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

/* Writes `value` to element `position`, in each of its parts. */
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

/* Elements with bytes that mean nothing go through unchanged. */
static void moves_of(const char *name, DLDataType type) {
  _Alignas(16) uint8_t data[6 * 16], updates[2 * 16], scattered[6 * 16], gathered[2 * 16];
  size_t size = type.bits / 8u;
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

/* Places 3 and 1; in signed types 1 is counted from the end. */
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

/* Memory that the CPU reads and writes too: pinned for CUDA, for ROCm. */
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

void test_types(void) {
  for (size_t i = 0; i < COUNT(NUMERIC); i++) {
    add_of(&NUMERIC[i]);
    moves_of(NUMERIC[i].name, TYPE(NUMERIC[i].code, NUMERIC[i].bits));
    if (NUMERIC[i].code == (uint8_t)kDLInt || NUMERIC[i].code == (uint8_t)kDLUInt) {
      indices_of(&NUMERIC[i]);
    }
  }
  moves_of("bool", BOOL);
  pinned_memory();
}
