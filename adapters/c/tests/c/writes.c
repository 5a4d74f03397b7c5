/* Tests of nds_write_paged, nds_write_update, nds_write_nd and nds_plan_write: conversions, several writes
 * in one call, and calls that fail. */

#include "check.h"

#include <math.h>
#include <stdlib.h>

#define E4M3 TYPE(10, 8)
#define E5M2 TYPE(12, 8)
#define E4M3FNUZ TYPE(11, 8)

#define CONVERSION(...) (&(nds_conversion){.size = sizeof(nds_conversion), __VA_ARGS__})
#define WRITE(data, updates, conversion) ((nds_write){sizeof(nds_write), data, updates, conversion})

/* A conversion of one row, and the expected bytes of this row. */
typedef struct converted {
  const char *reason;
  DLDataType type;
  nds_conversion conversion;
  float updates[4];
  uint8_t expected[16];
  bool is_packed;
} converted;

static const float SCALE[] = {0.5f};
static int64_t NO_SHAPE[1];

static void conversions(void) {
  const DLTensor scale = tensor_of(SCALE, F32, 0, NO_SHAPE, NULL);
  const int32_t three[] = {3};
  const DLTensor zero_point = SCALAR(three, I32);
  const float big = 1000.0f;
  const converted cases[] = {
      {"float8_e4m3fn, as the type says", E4M3, *CONVERSION(0), {1.0f, -0.5f, 460.0f, big}, {0x38, 0xb0, 0x7e, 0x7f}, false},
      {"float8_e5m2, as the type says", E5M2, *CONVERSION(0), {1.0f, -0.5f, 0.0f, 65536.0f}, {0x3c, 0xb8, 0x00, 0x7c}, false},
      {"float8_e4m3fn in uint8", U8, *CONVERSION(.format = NDS_FORMAT_FLOAT8_E4M3FN), {1.0f, -0.5f, 460.0f, -big}, {0x38, 0xb0, 0x7e, 0xff}, false},
      {"float8_e5m2 in int8", I8, *CONVERSION(.format = NDS_FORMAT_FLOAT8_E5M2), {1.0f, -0.5f, 0.0f, 2.0f}, {0x3c, 0xb8, 0x00, 0x40}, false},
      {"the type and the format agree", E4M3, *CONVERSION(.format = NDS_FORMAT_FLOAT8_E4M3FN, .rounding = NDS_ROUNDING_SATURATE), {1.0f, -big, NAN, 2.0f}, {0x38, 0xfe, 0x7f, 0x40}, false},
      {"NaN saturates", E4M3, *CONVERSION(.rounding = NDS_ROUNDING_SATURATE_NAN), {1.0f, -big, -NAN, 2.0f}, {0x38, 0xfe, 0x7e, 0x40}, false},
      {"toward zero", E4M3, *CONVERSION(.rounding = NDS_ROUNDING_TRUNCATE), {1.24f, -1.24f, big, 2.0f}, {0x39, 0xb9, 0x7e, 0x40}, false},
      {"to nearest", E4M3, *CONVERSION(0), {1.24f, -1.24f, 448.0f, 2.0f}, {0x3a, 0xba, 0x7e, 0x40}, false},
      {"a scale", E4M3, *CONVERSION(.scale = &scale), {0.5f, -0.25f, 1.0f, 2.0f}, {0x38, 0xb0, 0x40, 0x48}, false},
      {"int8 with a scale", I8, *CONVERSION(.scale = &scale), {0.25f, 0.75f, -64.0f, big}, {0, 2, 0x80, 127}, false},
      {"int8 with a reciprocal", I8, *CONVERSION(.format = NDS_FORMAT_INT8, .scale = &scale, .scaling = NDS_SCALING_RECIPROCAL), {1.0f, 0.75f, -64.0f, big}, {2, 2, 0x80, 127}, false},
      {"uint8 with a zero point", U8, *CONVERSION(.format = NDS_FORMAT_UINT8, .zero_point = &zero_point), {1.0f, -1.0f, -9.0f, big}, {4, 2, 0, 255}, false},
      {"int4", U8, *CONVERSION(.format = NDS_FORMAT_INT4), {1.0f, -1.0f, 9.0f, -9.0f}, {0xf1, 0x87}, true},
      {"uint4 with a zero point", I8, *CONVERSION(.format = NDS_FORMAT_UINT4, .zero_point = &zero_point), {1.0f, -1.0f, 90.0f, -9.0f}, {0x24, 0x0f}, true},
      {"bfloat16", BF16, *CONVERSION(0), {1.0f, -2.0f, 0.0f, 0.5f}, {0x80, 0x3f, 0, 0xc0, 0, 0, 0, 0x3f}, false},
      {"float16", F16, *CONVERSION(.format = NDS_FORMAT_FLOAT16), {1.0f, -2.0f, 0.0f, 0.5f}, {0, 0x3c, 0, 0xc0, 0, 0, 0, 0x38}, false},
      {"float32 with a scale", F32, *CONVERSION(.format = NDS_FORMAT_FLOAT32, .scale = &scale), {1.0f, -2.0f, 0.0f, 0.5f}, {0, 0, 0, 0x40, 0, 0, 0x80, 0xc0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}, false},
      {"bfloat16 that the format names", BF16, *CONVERSION(.format = NDS_FORMAT_BFLOAT16), {1.0f, -2.0f, 0.0f, 0.5f}, {0x80, 0x3f, 0, 0xc0, 0, 0, 0, 0x3f}, false},
  };
  const int64_t slots[] = {-1, 3};
  DLTensor at = TENSOR(slots, I64, 2), row = TENSOR(slots + 1, I64, 1);
  for (size_t i = 0; i < COUNT(cases); i++) {
    const converted *c = &cases[i];
    int64_t width = c->is_packed ? 2 : 4;
    uint8_t data[4 * 16], expected[4 * 16];
    float updates[2][4];
    size_t bytes = (size_t)width * size_of(c->type);
    memset(data, 0x5a, sizeof data);
    memcpy(expected, data, sizeof data);
    memcpy(expected + 3 * bytes, c->expected, bytes);
    memcpy(updates[0], c->updates, sizeof updates[0]);
    memcpy(updates[1], c->updates, sizeof updates[1]);
    DLTensor cache = TENSOR(data, c->type, 2, 2, width), rows = TENSOR(data, c->type, 4, width);
    DLTensor two = TENSOR(updates, F32, 2, 4), one = TENSOR(updates, F32, 1, 4);
    DLTensor tuples = TENSOR(slots + 1, I64, 1, 1);
    set_case("%s", c->reason);
    nds_write paged = WRITE(&cache, &two, &c->conversion), along = WRITE(&rows, &one, &c->conversion);
    CHECK_OK(nds_write_paged(&at, &paged, 1, NULL));
    CHECK_BYTES(expected, data, sizeof data);
    memset(data, 0x5a, sizeof data);
    CHECK_OK(nds_write_update(&row, 0, &along, 1, NULL));
    CHECK_BYTES(expected, data, sizeof data);
    memset(data, 0x5a, sizeof data);
    CHECK_OK(nds_write_nd(&tuples, &along, 1, NULL));
    CHECK_BYTES(expected, data, sizeof data);
    memset(data, 0x5a, sizeof data);
    nds_plan *plan = NULL;
    CHECK_OK(nds_plan_scatter_paged(&cache, &at, NULL, &plan));
    CHECK_OK(nds_plan_write(plan, &paged, 1, NULL));
    CHECK_BYTES(expected, data, sizeof data);
    nds_plan_free(plan);
  }
}

/* Keys and values with different types, layouts and scales, for the layers of a model. */
enum { LAYERS = 3, TOKENS = 5, BLOCKS = 4, BLOCK_SIZE = 2, HEADS = 2, DIM = 4, SLOTS = BLOCKS * BLOCK_SIZE };

typedef struct model {
  float updates[LAYERS][TOKENS][HEADS][DIM];
  int8_t keys[LAYERS][BLOCKS][HEADS][BLOCK_SIZE][DIM];
  float values[LAYERS][BLOCKS][BLOCK_SIZE][HEADS][DIM];
  DLTensor key_tensors[LAYERS], value_tensors[LAYERS], update_tensors[LAYERS];
  nds_write writes[2 * LAYERS];
} model;

static void make_model(model *model, const nds_conversion *keys) {
  static int64_t shape[] = {BLOCKS, BLOCK_SIZE, HEADS, DIM}, update_shape[] = {TOKENS, HEADS, DIM};
  static int64_t strides[] = {HEADS * BLOCK_SIZE * DIM, DIM, BLOCK_SIZE * DIM, 1};
  uint32_t seed = 7;
  memset(model, 0, sizeof *model);
  for (int layer = 0; layer < LAYERS; layer++) {
    for (int i = 0; i < TOKENS * HEADS * DIM; i++) {
      (&model->updates[layer][0][0][0])[i] = (float)(int)(next_random(&seed) % 100) - 50.0f;
    }
    model->key_tensors[layer] = tensor_of(model->keys[layer], I8, 4, shape, strides);
    model->value_tensors[layer] = tensor_of(model->values[layer], F32, 4, shape, NULL);
    model->update_tensors[layer] = tensor_of(model->updates[layer], F32, 3, update_shape, NULL);
    const DLTensor *updates = &model->update_tensors[layer];
    model->writes[2 * layer] = WRITE(&model->key_tensors[layer], updates, keys);
    model->writes[2 * layer + 1] = WRITE(&model->value_tensors[layer], updates, NULL);
  }
}

/* The same write, one element after another. */
static void write_by_hand(model *model, const int64_t *slots) {
  for (int at = 0; at < LAYERS * TOKENS * HEADS * DIM; at++) {
    int d = at % DIM, head = at / DIM % HEADS, token = at / DIM / HEADS % TOKENS, layer = at / DIM / HEADS / TOKENS;
    if (slots[token] < 0) {
      continue;
    }
    int64_t block = slots[token] / BLOCK_SIZE, row = slots[token] % BLOCK_SIZE;
    float value = model->updates[layer][token][head][d];
    model->keys[layer][block][head][row][d] = (int8_t)(value * 2.0f);
    model->values[layer][block][row][head][d] = value;
  }
}

static void layers_at_once(void) {
  static model written, expected;
  const DLTensor scale = SCALAR(SCALE, F32);
  const nds_conversion *halves = CONVERSION(.scale = &scale);
  const int64_t slots[TOKENS] = {7, -1, 0, 7, 5};
  DLTensor at = TENSOR(slots, I64, TOKENS);
  for (int32_t threads = 0; threads <= 2; threads++) {
    const nds_options *options = OPTIONS(.max_threads = threads);
    make_model(&written, halves);
    make_model(&expected, halves);
    write_by_hand(&expected, slots);
    set_case("%d threads", threads);
    CHECK_OK(nds_write_paged(&at, written.writes, COUNT(written.writes), options));
    CHECK_BYTES(expected.keys, written.keys, sizeof written.keys);
    CHECK_BYTES(expected.values, written.values, sizeof written.values);
  }
  make_model(&written, halves);
  CHECK_OK(nds_write_paged(&at, written.writes, 0, NULL));
  CHECK_OK(nds_write_paged(&at, NULL, 0, NULL));
  make_model(&expected, halves);
  CHECK_BYTES(expected.keys, written.keys, sizeof written.keys);
}

/* One plan for keys and values of one layout. */
static void plan_of_layers(void) {
  uint8_t keys[8], values[16];
  const float rows[2][2] = {{1.0f, 2.0f}, {3.0f, 4.0f}};
  const int64_t slots[] = {3, 0};
  memset(keys, 0, sizeof keys);
  memset(values, 0, sizeof values);
  DLTensor at = TENSOR(slots, I64, 2), updates = TENSOR(rows, F32, 2, 2);
  DLTensor key_cache = TENSOR(keys, E4M3, 2, 2, 2), value_cache = TENSOR(values, BF16, 2, 2, 2);
  const nds_conversion *conversion = CONVERSION(0);
  const nds_write writes[] = {WRITE(&key_cache, &updates, conversion), WRITE(&value_cache, &updates, conversion)};
  nds_plan *plan = NULL, *gather = NULL;
  CHECK_OK(nds_plan_scatter_paged(&key_cache, &at, NULL, &plan));
  CHECK_OK(nds_plan_write(plan, writes, 2, OPTIONS(.max_threads = 1)));
  const uint8_t expected_keys[] = {0x44, 0x48, 0, 0, 0, 0, 0x38, 0x40};
  const uint8_t expected_values[] = {0x40, 0x40, 0x80, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0x40};
  CHECK_BYTES(expected_keys, keys, sizeof keys);
  CHECK_BYTES(expected_values, values, sizeof values);
  DLTensor other = TENSOR(keys, E4M3, 4, 1, 2);
  const nds_write elsewhere = WRITE(&other, &updates, conversion);
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_write(plan, &elsewhere, 1, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_write(NULL, writes, 2, NULL));
  CHECK_OK(nds_plan_gather_paged(&key_cache, &at, NULL, &gather));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_plan_write(gather, writes, 2, NULL));
  CHECK_BYTES(expected_keys, keys, sizeof keys);
  nds_plan_free(plan);
  nds_plan_free(gather);
}

/* A valid call with two writes, which tests spoil. The second write is spoilt, so the test also shows that
 * the first write is not made. */
typedef struct valid {
  uint8_t first[8], second[8];
  float updates[2][2], scale[2];
  int32_t zero_points[2];
  int64_t slots[2], shape[3], update_shape[2], slot_shape[1], scale_shape[1];
  DLTensor slots_tensor, first_tensor, second_tensor, updates_tensor, scale_tensor, zero_tensor;
  nds_conversion conversion;
  nds_write writes[2];
  nds_options options;
} valid;

static void make_valid(valid *v) {
  memset(v, 0, sizeof *v);
  *v = (valid){
      .updates = {{1.0f, 2.0f}, {3.0f, 4.0f}},
      .scale = {1.0f, 2.0f},
      .slots = {0, 3},
      .shape = {2, 2, 2},
      .update_shape = {2, 2},
      .slot_shape = {2},
      .scale_shape = {2},
      .options = {.size = sizeof(nds_options)},
  };
  v->slots_tensor = tensor_of(v->slots, I64, 1, v->slot_shape, NULL);
  v->first_tensor = tensor_of(v->first, U8, 3, v->shape, NULL);
  v->second_tensor = tensor_of(v->second, U8, 3, v->shape, NULL);
  v->updates_tensor = tensor_of(v->updates, F32, 2, v->update_shape, NULL);
  v->scale_tensor = tensor_of(v->scale, F32, 1, v->scale_shape, NULL);
  v->zero_tensor = tensor_of(v->zero_points, I32, 1, v->scale_shape, NULL);
  v->conversion = (nds_conversion){
      .size = sizeof(nds_conversion), .format = NDS_FORMAT_UINT8, .scale = &v->scale_tensor, .zero_point = &v->zero_tensor};
  v->writes[0] = WRITE(&v->first_tensor, &v->updates_tensor, &v->conversion);
  v->writes[1] = WRITE(&v->second_tensor, &v->updates_tensor, &v->conversion);
}

static DLTensor other_updates, other_scale;
static int64_t other_shape[] = {2, 3};

static void no_data(valid *v) { v->writes[1].data = NULL; }
static void no_updates(valid *v) { v->writes[1].updates = NULL; }
static void size_of_a_write(valid *v) { v->writes[0].size = 8; }
static void other_sizes(valid *v) { v->writes[1].size = 40; }
static void size_of_a_conversion(valid *v) { v->conversion.size = 4; }
static void bad_format(valid *v) { v->conversion.format = 10; }
static void negative_format(valid *v) { v->conversion.format = -1; }
static void bad_rounding(valid *v) { v->conversion.rounding = 4; }
static void bad_scaling(valid *v) { v->conversion.scaling = 2; }
static void ambiguous(valid *v) { v->second_tensor.dtype = v->first_tensor.dtype = E4M3FNUZ, v->conversion.format = NDS_FORMAT_OF_DATA; }
static void other_format(valid *v) { v->second_tensor.dtype = E4M3, v->conversion.format = NDS_FORMAT_FLOAT8_E5M2; }
static void not_in_the_type(valid *v) { v->conversion.format = NDS_FORMAT_FLOAT32; }
static void integers_to_convert(valid *v) { v->updates_tensor.dtype = I32; }
static void scale_of_zero(valid *v) { v->scale[1] = 0.0f; }
static void scale_of_nan(valid *v) { v->scale[1] = NAN; }
static void negative_scale(valid *v) { v->scale[0] = -1.0f; }
static void scale_of_doubles(valid *v) { v->scale_tensor.dtype = F64; }
static void zero_point_out_of_range(valid *v) { v->zero_points[1] = 256; }
static void scale_of_another_shape(valid *v) { v->scale_tensor.shape = &v->shape[1], v->scale_tensor.ndim = 2, v->shape[1] = 2, v->update_shape[0] = 2, other_scale = v->scale_tensor, other_scale.shape = other_shape, v->conversion.scale = &other_scale; }
static void updates_of_another_shape(valid *v) { other_updates = v->updates_tensor, other_updates.shape = other_shape, v->writes[1].updates = &other_updates; }
static void slot_beyond(valid *v) { v->slots[1] = 4; }
static void the_same_data(valid *v) { v->second_tensor.data = v->first; }
static void slots_in_data(valid *v) { v->second_tensor.data = v->slots; }
static void scale_in_data(valid *v) { v->second_tensor.data = v->scale; }
static void shape_in_data(valid *v) { v->second_tensor.data = v->shape; }
static void struct_in_data(valid *v) { v->first_tensor.data = &v->zero_tensor; }
static void data_of_stride_zero(valid *v) { static int64_t zeros[3]; v->second_tensor.strides = zeros; }
static void reduction(valid *v) { v->options.reduction = ADD; }
static void twice(valid *v) { v->slots[1] = 0, v->options.reject_duplicates = 1; }
static void no_conversion(valid *v) { v->writes[1].conversion = NULL; }
static void data_on_a_device(valid *v) { v->second_tensor.device.device_type = 2; }

static void refused_writes(void) {
  static const struct {
    const char *reason;
    void (*spoil)(valid *v);
    nds_status status;
  } cases[] = {
      {"no data", no_data, NDS_INVALID_ARGUMENT},
      {"no updates", no_updates, NDS_INVALID_ARGUMENT},
      {"size of a write", size_of_a_write, NDS_INVALID_ARGUMENT},
      {"writes of different sizes", other_sizes, NDS_INVALID_ARGUMENT},
      {"size of a conversion", size_of_a_conversion, NDS_INVALID_ARGUMENT},
      {"a format", bad_format, NDS_INVALID_ARGUMENT},
      {"a negative format", negative_format, NDS_INVALID_ARGUMENT},
      {"a rounding", bad_rounding, NDS_INVALID_ARGUMENT},
      {"a scaling", bad_scaling, NDS_INVALID_ARGUMENT},
      {"a type without conversions", ambiguous, NDS_UNSUPPORTED},
      {"a format that is not the type", other_format, NDS_INVALID_ARGUMENT},
      {"a format that the type cannot hold", not_in_the_type, NDS_INVALID_ARGUMENT},
      {"integers", integers_to_convert, NDS_UNSUPPORTED},
      {"a scale of 0", scale_of_zero, NDS_INVALID_ARGUMENT},
      {"a scale of NaN", scale_of_nan, NDS_INVALID_ARGUMENT},
      {"a negative scale", negative_scale, NDS_INVALID_ARGUMENT},
      {"a scale of doubles", scale_of_doubles, NDS_INVALID_ARGUMENT},
      {"a zero point", zero_point_out_of_range, NDS_INVALID_ARGUMENT},
      {"the shape of the scale", scale_of_another_shape, NDS_INVALID_ARGUMENT},
      {"the shape of the updates", updates_of_another_shape, NDS_INVALID_ARGUMENT},
      {"a slot", slot_beyond, NDS_INDEX_OUT_OF_BOUNDS},
      {"two writes to the same data", the_same_data, NDS_INVALID_ARGUMENT},
      {"slots in data", slots_in_data, NDS_INVALID_ARGUMENT},
      {"a scale in data", scale_in_data, NDS_INVALID_ARGUMENT},
      {"a shape in data", shape_in_data, NDS_INVALID_ARGUMENT},
      {"a struct in data", struct_in_data, NDS_INVALID_ARGUMENT},
      {"data that overlaps itself", data_of_stride_zero, NDS_INVALID_ARGUMENT},
      {"a reduction", reduction, NDS_UNSUPPORTED},
      {"duplicates", twice, NDS_DUPLICATE_INDEX},
      {"another type, without a conversion", no_conversion, NDS_INVALID_ARGUMENT},
      {"a device", data_on_a_device, NDS_UNSUPPORTED},
  };
  static valid v, before;
  make_valid(&v);
  set_case("valid writes");
  CHECK_OK(nds_write_paged(&v.slots_tensor, v.writes, 2, &v.options));
  const uint8_t expected[] = {1, 1, 0, 0, 0, 0, 3, 2};
  CHECK_BYTES(expected, v.first, sizeof expected);
  CHECK_BYTES(expected, v.second, sizeof expected);
  for (size_t i = 0; i < COUNT(cases); i++) {
    make_valid(&v);
    cases[i].spoil(&v);
    before = v;
    set_case("%s", cases[i].reason);
    CHECK_STATUS(cases[i].status, nds_write_paged(&v.slots_tensor, v.writes, 2, &v.options));
    CHECK_BYTES(&before, &v, sizeof v);
  }
  make_valid(&v);
  set_case("null pointers");
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_write_paged(NULL, v.writes, 2, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_write_paged(&v.slots_tensor, NULL, 1, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_write_update(&v.slots_tensor, 3, v.writes, 2, NULL));
}

/* Two 8-bit floats of different types. */
static void moved_types_without_a_conversion(void) {
  uint8_t data[4] = {0};
  const uint8_t updates[] = {1};
  const int64_t slots[] = {2};
  DLTensor cache = TENSOR(data, E4M3, 2, 2), at = TENSOR(slots, I64, 1);
  DLTensor same = TENSOR(updates, E4M3, 1), other = TENSOR(updates, E5M2, 1);
  const nds_write right = WRITE(&cache, &same, NULL), wrong = WRITE(&cache, &other, NULL);
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_write_paged(&at, &wrong, 1, NULL));
  CHECK_INT(0, data[2]);
  CHECK_OK(nds_write_paged(&at, &right, 1, NULL));
  CHECK_INT(1, data[2]);
}

/* Structs of a caller with a newer header, whose writes and conversions are larger. */
static void larger_structs(void) {
  enum { MORE = 24 };
  valid v;
  make_valid(&v);
  size_t size = sizeof(nds_write) + MORE;
  unsigned char *writes = allocate(2 * size), *conversion = allocate(sizeof(nds_conversion) + MORE);
  v.conversion.size = sizeof(nds_conversion) + MORE;
  memcpy(conversion, &v.conversion, sizeof v.conversion);
  for (size_t i = 0; i < 2; i++) {
    v.writes[i].size = (uint32_t)size;
    v.writes[i].conversion = (const nds_conversion *)(void *)conversion;
    memcpy(writes + i * size, &v.writes[i], sizeof v.writes[i]);
  }
  const nds_write *given = (const nds_write *)(void *)writes;
  CHECK_OK(nds_write_paged(&v.slots_tensor, given, 2, NULL));
  CHECK_INT(3, v.second[6]);
  writes[2 * size - 1] = 1;
  CHECK_STATUS(NDS_UNSUPPORTED, nds_write_paged(&v.slots_tensor, given, 2, NULL));
  writes[2 * size - 1] = 0;
  conversion[sizeof(nds_conversion) + MORE - 1] = 1;
  CHECK_STATUS(NDS_UNSUPPORTED, nds_write_paged(&v.slots_tensor, given, 2, NULL));
  free(writes);
  free(conversion);
}

void test_writes(void) {
  conversions();
  layers_at_once();
  plan_of_layers();
  refused_writes();
  moved_types_without_a_conversion();
  larger_structs();
}
