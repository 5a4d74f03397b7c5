// Adds rows to a table three times: in place, then with a kept plan, then with an
// index out of bounds, which is an error. Then writes to paged caches, and adds rows
// to a table that two parts store.
//
//   cc -std=c11 example.c $(pkg-config --cflags --libs ndscatter-c) -o example

#include <inttypes.h>
#include <ndscatter.h>
#include <stdio.h>
#include <string.h>

// Returns a row-major tensor that describes memory of the caller. The tensor
// copies neither `values` nor `shape`, so both arrays must outlive the tensor.
static DLTensor tensor(void *values, uint8_t code, uint8_t bits, int32_t ndim, int64_t *shape) {
  DLTensor result = {0};
  result.data = values;
  result.device.device_type = kDLCPU;
  result.ndim = ndim;
  result.dtype.code = code;
  result.dtype.bits = bits;
  result.dtype.lanes = 1;
  result.shape = shape; // null strides: row-major
  return result;
}

static void print(const char *title, const float *values, size_t count) {
  printf("%s:", title);
  for (size_t i = 0; i < count; i++) printf(" %g", (double)values[i]);
  printf("\n");
}

static int failed(const char *call) {
  fprintf(stderr, "%s: %s\n", call, nds_last_error());
  return 1;
}

static int wrong(const char *what) {
  fprintf(stderr, "%s differs from the expected result\n", what);
  return 1;
}

// Writes the keys and values of two tokens to paged caches of two blocks with two slots each. One call
// converts the keys to 8-bit floats with a scale, and the values to bfloat16.
static int write_caches(void) {
  int64_t slot_numbers[3] = {3, -1, 0}; // the entry -1 is unused
  float key_values[6] = {1, 2, 9, 9, 3, 4}, value_values[6] = {1, -1, 9, 9, 2, 0.5f}, half = 0.5f;
  uint8_t key_cache[8] = {0};
  uint16_t value_cache[8] = {0};
  enum { FLOAT8_E4M3FN = 10 }; // kDLFloat8_e4m3fn in newer headers of DLPack
  int64_t shape[] = {2, 2, 2}, step[] = {3, 2};
  DLTensor slots = tensor(slot_numbers, kDLInt, 64, 1, step), scale = tensor(&half, kDLFloat, 32, 0, NULL);
  DLTensor key = tensor(key_values, kDLFloat, 32, 2, step), value = tensor(value_values, kDLFloat, 32, 2, step);
  DLTensor keys = tensor(key_cache, FLOAT8_E4M3FN, 8, 3, shape), values = tensor(value_cache, kDLBfloat, 16, 3, shape);

  nds_conversion fp8 = {.size = sizeof fp8, .scale = &scale}; // the type of the keys says float8_e4m3fn
  nds_conversion bf16 = {.size = sizeof bf16};
  nds_write writes[] = {
      {.size = sizeof(nds_write), .data = &keys, .updates = &key, .conversion = &fp8},
      {.size = sizeof(nds_write), .data = &values, .updates = &value, .conversion = &bf16},
  };
  if (nds_write_paged(&slots, writes, 2, NULL) != NDS_OK) return failed("nds_write_paged");
  printf("keys:");
  for (size_t i = 0; i < 8; i++) printf(" %02x", key_cache[i]);
  printf("\n");
  const uint8_t expected_keys[8] = {0x4c, 0x50, 0, 0, 0, 0, 0x40, 0x48}; // 6 8, 0 0, 0 0, 2 4
  const uint16_t expected_values[8] = {0x4000, 0x3f00, 0, 0, 0, 0, 0x3f80, 0xbf80};
  if (memcmp(key_cache, expected_keys, sizeof expected_keys) != 0) return wrong("the cache of the keys");
  if (memcmp(value_cache, expected_values, sizeof expected_values) != 0) return wrong("the cache of the values");

  // Slots 0 and 3 change places, in both caches.
  int64_t from_slots[2] = {0, 3}, to_slots[2] = {3, 0}, two[] = {2};
  DLTensor from = tensor(from_slots, kDLInt, 64, 1, two), to = tensor(to_slots, kDLInt, 64, 1, two);
  DLTensor *caches[] = {&keys, &values};
  if (nds_move_slots(&from, &to, caches, 2, NULL) != NDS_OK) return failed("nds_move_slots");
  if (key_cache[0] != 0x40 || key_cache[7] != 0x50) return wrong("the cache after the move");
  return 0;
}

// Two senders add numbers to a table of five rows. Two parts store the table. A program with several
// processes sends the entries of each part with its own transport, such as MPI.
static int add_to_parts(void) {
  int64_t row_numbers[2][3] = {{4, 0, 4}, {1, 4, 0}}, rows = 5, three = 3;
  float update_values[2][3] = {{1, 2, 3}, {4, 5, 6}}, packed_values[3], parts[2][3] = {{0}};
  DLTensor table = tensor(NULL, kDLFloat, 32, 1, &rows); // describes the whole table
  nds_sharding halves = {.size = sizeof halves, .rule = NDS_SHARDING_BLOCKS, .parts = 2};
  nds_options add = {.size = sizeof add, .reduction = NDS_REDUCTION_ADD};
  for (int sender = 0; sender < 2; sender++) { // each part applies the entries of sender 0 first
    DLTensor indices = tensor(row_numbers[sender], kDLInt, 64, 1, &three);
    DLTensor updates = tensor(update_values[sender], kDLFloat, 32, 1, &three);
    nds_sharded_plan *plan = NULL;
    nds_sharded_lists lists = {.size = sizeof lists};
    if (nds_shard_scatter_update(&table, &indices, &halves, 0, &add, &plan) != NDS_OK) return failed("nds_shard_scatter_update");
    nds_status status = nds_sharded_plan_lists(plan, &lists);
    // The sender packs the updates in the order of the parts.
    int64_t entries = (int64_t)lists.entries;
    DLTensor order = tensor((void *)lists.order, kDLInt, 64, 1, &entries);
    DLTensor packed = tensor(packed_values, kDLFloat, 32, 1, &entries);
    if (status == NDS_OK) status = nds_gather(&updates, &order, 0, &packed, NULL);
    size_t first = 0;
    for (size_t part = 0; part < lists.parts && status == NDS_OK; part++) {
      // Each part has received its destinations and its updates, and adds them to its rows. A sum may
      // be applied one sender at a time. A mean needs one call with the entries of all senders.
      int64_t mine = 0, count = (int64_t)lists.counts[part];
      status = nds_sharding_rows(&halves, (int64_t)part, rows, &mine);
      DLTensor local = tensor(parts[part], kDLFloat, 32, 1, &mine);
      DLTensor destinations = tensor((void *)(lists.destinations + first), kDLInt, 64, 1, &count);
      DLTensor received = tensor(packed_values + first, kDLFloat, 32, 1, &count);
      if (status == NDS_OK) status = nds_scatter_update(&local, &destinations, &received, 0, &local, &add);
      first += lists.counts[part];
    }
    nds_sharded_plan_free(plan);
    if (status != NDS_OK) return failed("the update of the parts");
  }
  print("part 0", parts[0], 3);
  print("part 1", parts[1], 2);
  const float expected[2][3] = {{8, 4, 0}, {0, 9, 0}};
  return memcmp(parts, expected, sizeof expected) != 0 ? wrong("the table of two parts") : 0;
}

int main(void) {
  float table_values[6] = {0};
  int64_t row_numbers[3] = {0, 2, -1}; // -1 is the last row, so row 2 occurs twice
  float update_values[6] = {1, 1, 2, 2, 3, 3};
  DLTensor table = tensor(table_values, kDLFloat, 32, 2, (int64_t[]){3, 2});
  DLTensor rows = tensor(row_numbers, kDLInt, 64, 2, (int64_t[]){3, 1});
  DLTensor updates = tensor(update_values, kDLFloat, 32, 2, (int64_t[]){3, 2});
  nds_options add = {.size = sizeof add, .reduction = NDS_REDUCTION_ADD};

  // `table` is the data and also the output, so the call is in place.
  if (nds_scatter_nd(&table, &rows, &updates, &table, &add) != NDS_OK) return failed("nds_scatter_nd");
  print("in place", table_values, 6);
  const float once[6] = {1, 1, 0, 0, 5, 5};
  if (memcmp(table_values, once, sizeof once) != 0) return wrong("the table");

  // A plan serves several calls with the same row numbers. nds_plan_scatter_nd checks
  // and analyses the row numbers once. The plan also keeps the reduction, so the run
  // needs no options. The run below writes to an output that is not the table.
  nds_plan *plan = NULL;
  if (nds_plan_scatter_nd(&table, &rows, &add, &plan) != NDS_OK) return failed("nds_plan_scatter_nd");
  float output_values[6];
  DLTensor output = tensor(output_values, kDLFloat, 32, 2, table.shape);
  nds_status status = nds_plan_run(plan, &table, &updates, &output, NULL);
  nds_plan_free(plan);
  if (status != NDS_OK) return failed("nds_plan_run");
  print("planned", output_values, 6);
  const float twice[6] = {2, 2, 0, 0, 10, 10};
  if (memcmp(output_values, twice, sizeof twice) != 0) return wrong("the output");
  if (memcmp(table_values, once, sizeof once) != 0) return wrong("the table after the plan");

  // If an index is out of bounds, the call returns a status and writes nothing. The
  // library stores a message, and the tuple, the axis and the index of the failure.
  row_numbers[1] = 7;
  status = nds_scatter_nd(&table, &rows, &updates, &table, &add);
  nds_error_info info = {.size = sizeof info};
  nds_last_error_info(&info);
  printf("status %d: %s\n", (int)status, nds_last_error());
  printf("tuple %" PRId64 ", axis %" PRId64 " of size %" PRId64 ", index %" PRId64 "\n", info.tuple, info.axis,
         info.axis_size, info.index);
  if (status != NDS_INDEX_OUT_OF_BOUNDS || info.status != (int32_t)status) return wrong("the status");
  if (info.tuple != 1 || info.axis != 0 || info.axis_size != 3 || info.index != 7) return wrong("the facts");
  if (memcmp(table_values, once, sizeof once) != 0) return wrong("the table after the error");
  int failure = write_caches();
  return failure != 0 ? failure : add_to_parts();
}
