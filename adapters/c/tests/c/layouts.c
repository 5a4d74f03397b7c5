/* Tests of tensors that are not row-major: with positive, negative and zero strides, byte offsets and
 * padding. */

#include "check.h"

/* Returns a copy of the tensor with the byte_offset of the argument. */
static DLTensor at_byte(DLTensor tensor, uint64_t byte_offset) {
  tensor.byte_offset = byte_offset;
  return tensor;
}

/* Indices and expected output of one sum. The tests compute this sum for every combination of five layouts
 * of the data, indices, updates and output. The data is [[1 2 3] [4 5 6]]. The sum adds [10 20 30] to the
 * last row of the data and [100 200 300] to the first row. */
static const int64_t PLACES[] = {1, 0};
static const int32_t SUM[] = {101, 202, 303, 14, 25, 36};

enum { VARIANTS = 5 };

static void data_variants(DLTensor *variants) {
  static const int32_t plain[] = {1, 2, 3, 4, 5, 6};
  static const int32_t columns[] = {1, 4, 2, 5, 3, 6};
  static const int32_t backwards[] = {6, 5, 4, 3, 2, 1};
  static const int32_t padded[] = {-1, -1, 1, -1, 2, -1, 3, -1, -1, 4, -1, 5, -1, 6};
  static int64_t shape[] = {2, 3};
  static int64_t by_column[] = {1, 2}, reversed[] = {-3, -1}, spread[] = {7, 2}, row_major[] = {3, 1};
  variants[0] = tensor_of(plain, I32, 2, shape, NULL);
  variants[1] = tensor_of(columns, I32, 2, shape, by_column);
  variants[2] = at_byte(tensor_of(backwards, I32, 2, shape, reversed), 5 * sizeof(int32_t));
  variants[3] = at_byte(tensor_of(padded, I32, 2, shape, spread), 2 * sizeof(int32_t));
  variants[4] = tensor_of(plain, I32, 2, shape, row_major);
}

static void index_variants(DLTensor *variants) {
  static const int64_t backwards[] = {0, 1}, spread[] = {7, 1, 7, 7, 0};
  static int64_t shape[] = {2, 1};
  static int64_t reversed[] = {-1, 1}, apart[] = {3, 9}, row_major[] = {1, 1};
  variants[0] = tensor_of(PLACES, I64, 2, shape, NULL);
  variants[1] = at_byte(tensor_of(backwards, I64, 2, shape, reversed), sizeof(int64_t));
  variants[2] = at_byte(tensor_of(spread, I64, 2, shape, apart), sizeof(int64_t));
  variants[3] = tensor_of(PLACES, I64, 2, shape, row_major);
  variants[4] = variants[1];
}

static void update_variants(DLTensor *variants) {
  static const int32_t plain[] = {10, 20, 30, 100, 200, 300};
  static const int32_t columns[] = {10, 100, 20, 200, 30, 300};
  static const int32_t backwards[] = {300, 200, 100, 30, 20, 10};
  static const int32_t padded[] = {-1, 10, -1, 20, -1, 30, -1, 100, -1, 200, -1, 300};
  static int64_t shape[] = {2, 3};
  static int64_t by_column[] = {1, 2}, reversed[] = {-3, -1}, spread[] = {6, 2};
  variants[0] = tensor_of(plain, I32, 2, shape, NULL);
  variants[1] = tensor_of(columns, I32, 2, shape, by_column);
  variants[2] = at_byte(tensor_of(backwards, I32, 2, shape, reversed), 5 * sizeof(int32_t));
  variants[3] = at_byte(tensor_of(padded, I32, 2, shape, spread), sizeof(int32_t));
  variants[4] = variants[0];
}

/* Position of the element [0, 0] of an output, and strides of the output, in int32 numbers of its memory. */
typedef struct place {
  int64_t first, strides[2];
} place;

static const place OUTPUTS[VARIANTS] = {{0, {3, 1}}, {0, {1, 2}}, {5, {-3, -1}}, {2, {7, 2}}, {3, {-3, 1}}};

/* Checks that the elements of an output equal `expected` and that all other int32 numbers of its memory
 * are still -7. */
static void check_spread(const place *place, const int32_t *expected, const int32_t *memory, size_t count) {
  int32_t wanted[16];
  for (size_t i = 0; i < COUNT(wanted); i++) {
    wanted[i] = -7;
  }
  for (int64_t row = 0; row < 2; row++) {
    for (int64_t column = 0; column < 3; column++) {
      wanted[place->first + row * place->strides[0] + column * place->strides[1]] = expected[3 * row + column];
    }
  }
  CHECK_BYTES(wanted, memory, count * sizeof *memory);
}

static void functional(const DLTensor *data, const DLTensor *indices, const DLTensor *updates, const place *place) {
  int32_t memory[16];
  for (size_t i = 0; i < COUNT(memory); i++) {
    memory[i] = -7;
  }
  int64_t *strides = DIMS(place->strides[0], place->strides[1]);
  DLTensor output = at_byte(tensor_of(memory, I32, 2, DIMS(2, 3), strides), (uint64_t)place->first * sizeof(int32_t));
  CHECK_OK(nds_scatter_nd(data, indices, updates, &output, OPTIONS(.reduction = ADD)));
  check_spread(place, SUM, memory, COUNT(memory));
}

static void every_combination(void) {
  DLTensor data[VARIANTS], indices[VARIANTS], updates[VARIANTS];
  data_variants(data);
  index_variants(indices);
  update_variants(updates);
  for (size_t i = 0; i < VARIANTS * VARIANTS * VARIANTS * VARIANTS; i++) {
    size_t d = i % VARIANTS, x = i / VARIANTS % VARIANTS, u = i / VARIANTS / VARIANTS % VARIANTS;
    size_t o = i / VARIANTS / VARIANTS / VARIANTS;
    set_case("layouts: data %zu, indices %zu, updates %zu, output %zu", d, x, u, o);
    functional(&data[d], &indices[x], &updates[u], &OUTPUTS[o]);
  }
}

/* Runs the sum in place: one tensor is the data and the output. Tests each layout of this tensor with a
 * one-shot call and with a plan. */
static void in_place(void) {
  DLTensor data[VARIANTS], indices[VARIANTS], updates[VARIANTS];
  data_variants(data);
  index_variants(indices);
  update_variants(updates);
  for (size_t o = 0; o < 2 * VARIANTS; o++) {
    const place *place = &OUTPUTS[o % VARIANTS];
    bool planned = o >= VARIANTS;
    int32_t memory[16];
    for (size_t i = 0; i < COUNT(memory); i++) {
      memory[i] = -7;
    }
    for (int64_t i = 0; i < 6; i++) {
      memory[place->first + i / 3 * place->strides[0] + i % 3 * place->strides[1]] = (int32_t)i + 1;
    }
    int64_t *strides = DIMS(place->strides[0], place->strides[1]);
    DLTensor tensor = at_byte(tensor_of(memory, I32, 2, DIMS(2, 3), strides), (uint64_t)place->first * sizeof(int32_t));
    const problem p = {
        .operator_ = SCATTER_ND,
        .data = tensor,
        .indices = indices[2],
        .updates = updates[3],
        .options = OPTIONS(.reduction = ADD),
    };
    set_case("in place, layout %zu, planned %d", o % VARIANTS, planned);
    if (planned) {
      nds_plan *plan = NULL;
      CHECK_OK(make_plan(&p, &plan));
      CHECK_OK(nds_plan_run(plan, &tensor, &p.updates, &tensor, NULL));
      nds_plan_free(plan);
    } else {
      CHECK_OK(call(&p, &tensor));
    }
    check_spread(place, SUM, memory, COUNT(memory));
  }
}

/* Runs a scatter in place whose data and output are the same elements, described by two different DLTensor
 * structs. The struct of the data has null strides and byte_offset 0. Its data pointer is the address of
 * the first element. The struct of the output has explicit strides. The stride of its axis of size 1 is
 * arbitrary. Its data pointer is the start of the memory, and its byte_offset is the distance in bytes
 * from there to the first element. */
static void two_names_of_one_tensor(void) {
  int32_t memory[] = {0, 1, 2, 3};
  const int32_t expected[] = {0, 1, 12, 3}, update[] = {10};
  const int64_t indices[] = {0, 1};
  DLTensor at = TENSOR(indices, I64, 1, 2), few = TENSOR(update, I32, 1);
  DLTensor data = TENSOR(memory + 1, I32, 1, 3);
  DLTensor output = at_byte(STRIDED(memory, I32, DIMS(1, 3), DIMS(77, 1)), sizeof(int32_t));
  CHECK_OK(nds_scatter_nd(&data, &at, &few, &output, OPTIONS(.reduction = ADD)));
  CHECK_BYTES(expected, memory, sizeof memory);
}

/* Tests of inputs with stride 0, in which all elements are the same number in memory. */
static void broadcasts(void) {
  const int32_t seven[] = {7}, five[] = {5};
  const int32_t filled[] = {7, 12, 7, 17}, ones[] = {7, 12, 7, 7};
  const int64_t indices[] = {1, 3, 3};
  int32_t result[4];
  DLTensor data = STRIDED(seven, I32, DIMS(4), DIMS(0)), updates = STRIDED(five, I32, DIMS(3), DIMS(0));
  DLTensor output = TENSOR(result, I32, 4), at = TENSOR(indices, I64, 3, 1);
  CHECK_OK(nds_scatter_nd(&data, &at, &updates, &output, OPTIONS(.reduction = ADD)));
  CHECK_BYTES(filled, result, sizeof result);
  DLTensor same = STRIDED(indices, I64, DIMS(3, 1), DIMS(0, 0));
  CHECK_OK(nds_scatter_nd(&data, &same, &updates, &output, OPTIONS(.reduction = MAX)));
  const int32_t unchanged[] = {7, 7, 7, 7};
  CHECK_BYTES(unchanged, result, sizeof result);
  DLTensor first = STRIDED(indices, I64, DIMS(1, 1), DIMS(0, 0)), one = STRIDED(five, I32, DIMS(1), DIMS(0));
  CHECK_OK(nds_scatter_nd(&data, &first, &one, &output, OPTIONS(.reduction = ADD)));
  CHECK_BYTES(ones, result, sizeof result);
}

/* Data and output are alternate int32 numbers of one buffer and share no byte. */
static void interleaved(void) {
  int32_t memory[] = {1, 0, 2, 0, 3, 0, 4, 0};
  const int32_t expected[] = {1, 1, 2, 9, 3, 3, 4, 4}, update[] = {9};
  const int64_t index[] = {1};
  DLTensor data = STRIDED(memory, I32, DIMS(4), DIMS(2));
  DLTensor output = STRIDED(memory + 1, I32, DIMS(4), DIMS(2));
  DLTensor at = TENSOR(index, I64, 1, 1), few = TENSOR(update, I32, 1);
  CHECK_OK(nds_scatter_nd(&data, &at, &few, &output, NULL));
  CHECK_BYTES(expected, memory, sizeof memory);
}

/* Gathers the rows of a transposed matrix in reverse order. The output uses every other int32 number of
 * its memory. */
static void gathers(void) {
  const int32_t memory[] = {1, 2, 3, 4, 5, 6};
  const int64_t indices[] = {-1, 0, 0, 0, 1};
  const int32_t expected[] = {2, -7, 4, -7, 6, -7, 1, -7, 3, -7, 5, -7};
  int32_t result[12];
  for (size_t i = 0; i < COUNT(result); i++) {
    result[i] = -7;
  }
  DLTensor data = STRIDED(memory, I32, DIMS(2, 3), DIMS(1, 2));
  DLTensor at = STRIDED(indices, I64, DIMS(2), DIMS(1)), output = STRIDED(result, I32, DIMS(2, 3), DIMS(6, 2));
  DLTensor tuples = STRIDED(indices, I64, DIMS(2, 1), DIMS(1, 0));
  DLTensor wide = STRIDED(indices, I64, DIMS(2, 3), DIMS(1, 0));
  CHECK_OK(nds_gather(&data, &at, 0, &output, NULL));
  CHECK_BYTES(expected, result, sizeof result);
  memset(result, 0xf9, sizeof result); /* 0xf9 bytes differ from every expected value */
  CHECK_OK(nds_gather_nd(&data, &tuples, 0, &output, NULL));
  CHECK(result[0] == 2 && result[10] == 5 && result[1] == (int32_t)0xf9f9f9f9);
  memset(result, 0xf9, sizeof result);
  CHECK_OK(nds_gather_elements(&data, &wide, 0, &output, NULL));
  CHECK(result[0] == 2 && result[10] == 5 && result[1] == (int32_t)0xf9f9f9f9);
}

/* A cache in which the stride between positions (2) is larger than the stride between sequences (1). */
static void cache(void) {
  int32_t memory[] = {0, 0, 0, 0, 0, 0}, update[] = {21, 11, 22, 12};
  const int32_t expected[] = {0, 0, 11, 21, 12, 22};
  const int64_t indices[] = {0, 1};
  DLTensor data = STRIDED(memory, I32, DIMS(2, 3), DIMS(1, 2));
  DLTensor rows = at_byte(STRIDED(update, I32, DIMS(2, 2), DIMS(-1, 2)), sizeof(int32_t));
  DLTensor at = STRIDED(indices + 1, I64, DIMS(2), DIMS(0));
  CHECK_OK(nds_tensor_scatter(&data, &rows, &at, -1, 0, &data, NULL));
  CHECK_BYTES(expected, memory, sizeof memory);
}

void test_layouts(void) {
  every_combination();
  set_case("%s", "");
  in_place();
  set_case("%s", "");
  two_names_of_one_tensor();
  broadcasts();
  interleaved();
  gathers();
  cache();
}
