/* Tests of nds_move_rows and nds_move_slots: moves that overlap, several tensors, and calls that fail. */

#include "check.h"

/* Moves of the rows of keys (int32, [4, 2]) and values (uint8, [4]), and the rows after the moves. */
typedef struct example {
  const char *reason;
  DLTensor from, to;
  int32_t rows[4];
  const nds_options *options;
} example;

static void moves_of_rows(void) {
  const int8_t small[] = {3, -1, 1};
  const example examples[] = {
      {"a cycle", TENSOR(LONGS(1, 2, 0), I64, 3), TENSOR(LONGS(0, 1, 2), I64, 3), {1, 2, 0, 3}, NULL},
      {"a chain", TENSOR(LONGS(0, 1, 2), I64, 3), TENSOR(LONGS(1, 2, 3), I64, 3), {0, 0, 1, 2}, NULL},
      {"the last of several moves stays", TENSOR(LONGS(1, 2), I64, 2), TENSOR(LONGS(0, 0), I64, 2), {2, 1, 2, 3}, NULL},
      {"lists of other types", TENSOR(small, I8, 1), TENSOR(LONGS(0), I64, 1), {3, 1, 2, 3}, NULL},
      {"unused entries", TENSOR(small, I8, 3), TENSOR(LONGS(0, 1, 2), I64, 3), {3, 1, 1, 3}, OPTIONS(.bounds = SKIP)},
      {"numbers of no row", TENSOR(LONGS(3, 4, 1), I64, 3), TENSOR(LONGS(0, 1, 9), I64, 3), {3, 1, 2, 3}, OPTIONS(.bounds = SKIP)},
      {"unused entries, negative", TENSOR(small, I8, 3), TENSOR(LONGS(0, 1, 2), I64, 3), {3, 1, 1, 3}, OPTIONS(.bounds = SKIP_NEGATIVE)},
      {"lists of rank 2", TENSOR(LONGS(3, 0), I64, 1, 2), TENSOR(LONGS(0, 3), I64, 1, 2), {3, 1, 2, 0}, OPTIONS(.max_threads = 1)},
      {"nothing", TENSOR(NULL, I64, 0), TENSOR(NULL, I64, 0), {0, 1, 2, 3}, NULL},
  };
  for (size_t i = 0; i < COUNT(examples); i++) {
    const example *e = &examples[i];
    for (int paged = 0; paged <= 1; paged++) {
      int32_t keys[8], expected_keys[8];
      uint8_t values[4], expected_values[4];
      for (int32_t row = 0; row < 4; row++) {
        keys[2 * row] = 10 * row;
        keys[2 * row + 1] = 10 * row + 1;
        values[row] = (uint8_t)('a' + row);
        expected_keys[2 * row] = 10 * e->rows[row];
        expected_keys[2 * row + 1] = 10 * e->rows[row] + 1;
        expected_values[row] = (uint8_t)('a' + e->rows[row]);
      }
      DLTensor key_rows = TENSOR(keys, I32, 4, 2), value_rows = TENSOR(values, U8, 4);
      DLTensor key_slots = TENSOR(keys, I32, 2, 2, 2), value_slots = TENSOR(values, U8, 2, 2);
      DLTensor *const rows[] = {&key_rows, &value_rows}, *const slots[] = {&key_slots, &value_slots};
      set_case("%s, paged %d", e->reason, paged);
      CHECK_OK(paged ? nds_move_slots(&e->from, &e->to, slots, 2, e->options)
                     : nds_move_rows(&e->from, &e->to, 0, rows, 2, e->options));
      CHECK_BYTES(expected_keys, keys, sizeof keys);
      CHECK_BYTES(expected_values, values, sizeof values);
    }
  }
}

static void moves_along_an_axis(void) {
  uint8_t data[] = {1, 2, 3, 4, 5, 6};
  DLTensor tensor = TENSOR(data, FLOAT8, 2, 3), from = TENSOR(LONGS(2, 0), I64, 2), to = TENSOR(LONGS(0, 2), I64, 2);
  DLTensor *const tensors[] = {&tensor};
  CHECK_OK(nds_move_rows(&from, &to, -1, tensors, 1, NULL));
  const uint8_t expected[] = {3, 2, 1, 6, 5, 4};
  CHECK_BYTES(expected, data, sizeof data);
}

static void refused_moves(void) {
  uint8_t memory[16], before[16];
  memset(memory, 0x5a, sizeof memory);
  memcpy(before, memory, sizeof memory);
  DLTensor four = TENSOR(memory, U8, 4), other = TENSOR(memory + 8, U8, 4), overlapping = TENSOR(memory + 3, U8, 4);
  DLTensor three = TENSOR(memory + 8, U8, 3), scalar = SCALAR(memory, U8), gpu = four;
  gpu.device.device_type = 2;
  const DLTensor from = TENSOR(LONGS(0, 1), I64, 2), to = TENSOR(LONGS(2, 3), I64, 2), one = TENSOR(LONGS(0), I64, 1);
  const DLTensor beyond = TENSOR(LONGS(2, 4), I64, 2), below = TENSOR(LONGS(-1, 1), I64, 2);
  const DLTensor same = TENSOR(LONGS(2, 2), I64, 2), floats = TENSOR(LONGS(0, 1), F64, 2);
  const DLTensor in_memory = TENSOR(memory, U8, 2);
  const struct {
    const char *reason;
    const DLTensor *from, *to;
    DLTensor *tensors[2];
    int64_t axis;
    const nds_options *options;
    nds_status status;
  } cases[] = {
      {"a row to read", &beyond, &from, {&four, &other}, 0, NULL, NDS_INDEX_OUT_OF_BOUNDS},
      {"a row to write", &from, &beyond, {&four, &other}, 0, NULL, NDS_INDEX_OUT_OF_BOUNDS},
      {"a row to write, which is not negative", &from, &beyond, {&four, &other}, 0, OPTIONS(.bounds = SKIP_NEGATIVE), NDS_INDEX_OUT_OF_BOUNDS},
      {"a negative row", &below, &from, {&four, &other}, 0, NULL, NDS_INDEX_OUT_OF_BOUNDS},
      {"clamped rows", &from, &to, {&four, &other}, 0, OPTIONS(.bounds = CLAMP), NDS_UNSUPPORTED},
      {"two moves to one row", &from, &same, {&four, &other}, 0, OPTIONS(.reject_duplicates = 1), NDS_DUPLICATE_INDEX},
      {"a reduction", &from, &to, {&four, &other}, 0, OPTIONS(.reduction = ADD), NDS_UNSUPPORTED},
      {"an option", &from, &to, {&four, &other}, 0, OPTIONS(.bounds = 4), NDS_INVALID_ARGUMENT},
      {"lists of other shapes", &one, &to, {&four, &other}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"floats", &floats, &to, {&four, &other}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"no list", NULL, &to, {&four, &other}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"no other list", &from, NULL, {&four, &other}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"no tensor", &from, &to, {&four, NULL}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"an axis", &from, &to, {&four, &other}, 1, NULL, NDS_INVALID_ARGUMENT},
      {"an axis of 64 bits", &from, &to, {&four, &other}, INT64_MIN, NULL, NDS_INVALID_ARGUMENT},
      {"no axis", &from, &to, {&four, &scalar}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"other rows", &from, &to, {&four, &three}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"tensors that overlap", &from, &to, {&four, &overlapping}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"one tensor twice", &from, &to, {&four, &four}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"a list in a tensor", &in_memory, &to, {&four, &other}, 0, NULL, NDS_INVALID_ARGUMENT},
      {"a device", &from, &to, {&four, &gpu}, 0, NULL, NDS_UNSUPPORTED},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    set_case("%s", cases[i].reason);
    CHECK_STATUS(cases[i].status, nds_move_rows(cases[i].from, cases[i].to, cases[i].axis, cases[i].tensors, 2, cases[i].options));
    CHECK_BYTES(before, memory, sizeof memory);
  }
  set_case("facts");
  DLTensor *const tensors[] = {&four};
  CHECK_STATUS(NDS_INDEX_OUT_OF_BOUNDS, nds_move_rows(&from, &beyond, 0, tensors, 1, NULL));
  nds_error_info info = last_info();
  CHECK(info.tuple == 1 && info.axis == -1 && info.axis_size == 4 && info.index == 4);
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_move_slots(&from, &to, tensors, 1, NULL)); /* rank 1 */
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_move_rows(&from, &to, 0, NULL, 1, NULL));
  CHECK_OK(nds_move_rows(&from, &to, 0, NULL, 0, NULL));
  CHECK_BYTES(before, memory, sizeof memory);
}

void test_moves(void) {
  moves_of_rows();
  moves_along_an_axis();
  refused_moves();
}
