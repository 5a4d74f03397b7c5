/* Tests of tables whose rows are divided among parts: the rows of parts, the lists of sharded plans, and calls
 * that are refused.
 *
 * The tests of results do what a host does: each sender packs its updates, and each part applies the entries
 * of all senders. The result must have the bits of one loop over the tuples of all senders. */

#include "check.h"

#include <stdlib.h>

enum { MOST_ROWS = 12, MOST_SLICES = 2 * MOST_ROWS, WIDTH = 3, SENDERS = 3, MOST_TUPLES = 24, MOST_PARTS = 7 };
enum { ALL_TUPLES = SENDERS * MOST_TUPLES };

static nds_sharded_lists lists_of(const nds_sharded_plan *plan) {
  nds_sharded_lists lists = {.size = sizeof lists};
  CHECK_OK(nds_sharded_plan_lists(plan, &lists));
  CHECK_INT(sizeof lists, lists.size);
  return lists;
}

static void rows_and_owners(void) {
  static const int64_t starts[] = {0, 2, 2, 9};
  static const struct {
    nds_sharding sharding;
    int64_t counts[5];               /* of parts 0 to 4, for 7 rows */
    int64_t owners[7], positions[7]; /* of rows 0 to 6 */
  } cases[] = {
      {{sizeof(nds_sharding), NDS_SHARDING_BLOCKS, 3, NULL}, {3, 3, 1}, {0, 0, 0, 1, 1, 1, 2}, {0, 1, 2, 0, 1, 2, 0}},
      {{sizeof(nds_sharding), NDS_SHARDING_MODULO, 3, NULL}, {3, 2, 2}, {0, 1, 2, 0, 1, 2, 0}, {0, 0, 0, 1, 1, 1, 2}},
      {{sizeof(nds_sharding), NDS_SHARDING_STARTS, 4, starts}, {2, 0, 5}, {0, 0, 2, 2, 2, 2, 2}, {0, 1, 0, 1, 2, 3, 4}},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    const nds_sharding *sharding = &cases[i].sharding;
    set_case("rule %d", sharding->rule);
    for (int64_t part = 0; part < 5; part++) {
      int64_t count = -1;
      CHECK_OK(nds_sharding_rows(sharding, part, 7, &count));
      CHECK_INT(cases[i].counts[part], count);
    }
    for (int64_t row = 0; row < 7; row++) {
      int64_t part = -1, local = -1, again = -1;
      CHECK_OK(nds_sharding_owner(sharding, row, 7, &part, &local));
      CHECK_INT(cases[i].owners[row], part);
      CHECK_INT(cases[i].positions[row], local);
      CHECK_OK(nds_sharding_row(sharding, part, local, 7, &again));
      CHECK_INT(row, again);
    }
    int64_t unchanged = -7;
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_owner(sharding, 7, 7, &unchanged, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_owner(sharding, -1, 7, &unchanged, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_owner(sharding, 1, 7, &unchanged, NULL));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_owner(sharding, 1, 7, NULL, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_row(sharding, 0, 3, 7, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_row(sharding, 9, 0, 7, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_row(sharding, 0, -1, 7, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_row(sharding, 0, 0, 7, NULL));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_rows(sharding, -1, 7, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_rows(sharding, 0, -7, &unchanged));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_rows(sharding, 0, 7, NULL));
    CHECK_INT(-7, unchanged);
  }
}

/* The lists of a small plan, with and without combined tuples. The table is larger than the address space. */
static void lists_of_a_small_plan(void) {
  set_case("%s", "lists");
  static const int64_t order[] = {1, 3, 0, 2}, destinations[] = {(1LL << 39) - 1, 3, 0, 0};
  static const int64_t slots[] = {2, 1, 2, 0, -1}, distinct[] = {3, (1LL << 39) - 1, 0};
  static const size_t counts[] = {2, 2}, combined[] = {2, 1};
  const DLTensor table = TENSOR(NULL, F32, 1LL << 40, 1LL << 22);
  const DLTensor indices = TENSOR(LONGS(1LL << 39, -(1LL << 39) - 1, 1LL << 39, 3, 1LL << 40), I64, 5);
  const nds_sharding halves = {.size = sizeof halves, .parts = 2};
  const nds_options *options = OPTIONS(.reduction = SUB, .bounds = SKIP);
  nds_sharded_plan *plan = NULL;
  CHECK_OK(nds_shard_scatter_update(&table, &indices, &halves, 0, options, &plan));
  nds_sharded_lists lists = lists_of(plan);
  CHECK(lists.parts == 2 && lists.entries == 4 && lists.tuples == 5 && lists.skipped == 1);
  CHECK(lists.slots == NULL && lists.reduction == NONE);
  CHECK_BYTES(counts, lists.counts, sizeof counts);
  CHECK_BYTES(order, lists.order, sizeof order);
  CHECK_BYTES(destinations, lists.destinations, sizeof destinations);
  nds_sharded_plan_free(plan);

  CHECK_OK(nds_shard_scatter_update(&table, &indices, &halves, 1, options, &plan));
  lists = lists_of(plan);
  CHECK(lists.parts == 2 && lists.entries == 3 && lists.tuples == 5 && lists.skipped == 1);
  CHECK(lists.order == NULL && lists.reduction == ADD);
  CHECK_BYTES(combined, lists.counts, sizeof combined);
  CHECK_BYTES(slots, lists.slots, sizeof slots);
  CHECK_BYTES(distinct, lists.destinations, sizeof distinct);
  nds_sharded_plan_free(plan);
  nds_sharded_plan_free(NULL);
}

/* An operator, and the table of a test. A row of the table has `slices` slices of WIDTH elements. */
typedef enum addressing { ROWS, TUPLES, SLOTS } addressing;

typedef struct table {
  addressing addressing;
  int64_t rows, slices;
  DLDataType type;
  nds_sharding sharding;
  nds_options options;
  int32_t combine;
  int32_t whole[MOST_SLICES * WIDTH]; /* elements of the type int32 or float32 */
} table;

static DLTensor whole_table(const table *t, int64_t *shape, const void *memory) {
  size_t ndim = 0;
  shape[ndim++] = t->rows;
  if (t->addressing != ROWS) {
    shape[ndim++] = t->slices;
  }
  shape[ndim++] = WIDTH;
  return tensor_of(memory, t->type, ndim, shape, NULL);
}

/* The tuples of one sender, or of all senders. */
typedef struct sender {
  int64_t count, indices[2 * ALL_TUPLES], index_shape[2];
  int32_t updates[ALL_TUPLES * WIDTH], packed[MOST_TUPLES * WIDTH], found[MOST_TUPLES * WIDTH];
  nds_sharded_plan *plan;
  nds_sharded_lists lists;
} sender;

static DLTensor indices_of(const table *t, sender *s) {
  s->index_shape[0] = s->count;
  s->index_shape[1] = 2;
  return tensor_of(s->indices, I64, t->addressing == TUPLES ? 2 : 1, s->index_shape, NULL);
}

/* Numbers whose sums depend on the order, and for combined calls small integers. */
static void fill_values(const table *t, int32_t *values, size_t count, uint32_t *state) {
  for (size_t i = 0; i < count; i++) {
    float number = (float)next_random(state) * 0x1p-20f - 3.1f;
    if (t->type.code == kDLFloat) {
      memcpy(&values[i], &number, sizeof number);
    } else {
      values[i] = (int32_t)next_random(state) - (1 << 23);
    }
  }
}

static void draw_sender(const table *t, sender *s, uint32_t *state) {
  bool may_skip = t->options.bounds == SKIP;
  s->count = (int64_t)(next_random(state) % (MOST_TUPLES + 1));
  for (int64_t i = 0; i < s->count; i++) {
    int64_t rows = t->addressing == SLOTS ? t->rows * t->slices : t->rows;
    int64_t row = (int64_t)(next_random(state) % (uint32_t)rows);
    if (may_skip && next_random(state) % 6 == 0) {
      row = next_random(state) % 2 ? rows : -rows - 1;
    } else if (t->addressing != SLOTS && next_random(state) % 4 == 0) {
      row -= rows;
    }
    if (t->addressing == TUPLES) {
      s->indices[2 * i] = row;
      s->indices[2 * i + 1] = (int64_t)(next_random(state) % (uint32_t)t->slices);
    } else {
      s->indices[i] = row;
    }
  }
  fill_values(t, s->updates, MOST_TUPLES * WIDTH, state);
}

/* The call of the whole table. */
static nds_status apply_whole(table *t, sender *s, const nds_options *options) {
  int64_t shape[3];
  DLTensor data = whole_table(t, shape, t->whole), at = indices_of(t, s);
  const DLTensor updates = TENSOR(s->updates, t->type, s->count, WIDTH);
  switch (t->addressing) {
  case ROWS:
    return nds_scatter_update(&data, &at, &updates, 0, &data, options);
  case TUPLES:
    return nds_scatter_nd(&data, &at, &updates, &data, options);
  default:
    return nds_scatter_paged(&data, &at, &updates, &data, options);
  }
}

static nds_status gather_whole(table *t, sender *s, void *result, const nds_options *options) {
  int64_t shape[3];
  const DLTensor data = whole_table(t, shape, t->whole), at = indices_of(t, s);
  DLTensor output = TENSOR(result, t->type, s->count, WIDTH);
  switch (t->addressing) {
  case ROWS:
    return nds_gather(&data, &at, 0, &output, options);
  case TUPLES:
    return nds_gather_nd(&data, &at, 0, &output, options);
  default:
    return nds_gather_paged(&data, &at, &output, options);
  }
}

typedef nds_status make_plan_of(const DLTensor *, const DLTensor *, const nds_sharding *, int32_t, const nds_options *,
                                nds_sharded_plan **);

static void make_sharded_plan(table *t, sender *s, bool gathers, const nds_options *options) {
  static make_plan_of *const functions[][2] = {
      {nds_shard_scatter_update, nds_shard_gather},
      {nds_shard_scatter_nd, nds_shard_gather_nd},
      {nds_shard_scatter_paged, nds_shard_gather_paged},
  };
  int64_t shape[3];
  const DLTensor data = whole_table(t, shape, NULL), at = indices_of(t, s);
  CHECK_OK(functions[t->addressing][gathers](&data, &at, &t->sharding, t->combine, options, &s->plan));
  s->lists = lists_of(s->plan);
  CHECK_INT(s->count, (long long)s->lists.tuples);
}

/* Packs the updates of a sender in the order of its entries. */
static void pack(const table *t, sender *s) {
  const nds_sharded_lists *lists = &s->lists;
  int64_t entries = (int64_t)lists->entries;
  const DLTensor updates = TENSOR(s->updates, t->type, s->count, WIDTH);
  DLTensor packed = TENSOR(s->packed, t->type, entries, WIDTH);
  if (lists->order != NULL) {
    const DLTensor order = TENSOR(lists->order, I64, entries);
    CHECK_OK(nds_gather(&updates, &order, 0, &packed, NULL));
  } else {
    const DLTensor slots = TENSOR(lists->slots, I64, s->count);
    const nds_options *combined =
        OPTIONS(.reduction = lists->reduction, .exclude_self = 1, .forbid_negative = 1, .bounds = SKIP_NEGATIVE);
    CHECK_OK(nds_scatter_update(&packed, &slots, &updates, 0, &packed, combined));
  }
}

/* Copies the rows of a part from the whole table to `local`, or compares them. Returns the number of slices. */
static int64_t part_of_table(const table *t, int64_t part, int32_t *local, bool compare) {
  size_t bytes = (size_t)t->slices * WIDTH * sizeof(int32_t);
  int64_t rows = -1;
  CHECK_OK(nds_sharding_rows(&t->sharding, part, t->rows, &rows));
  for (int64_t i = 0; i < rows; i++) {
    int64_t row = -1;
    CHECK_OK(nds_sharding_row(&t->sharding, part, i, t->rows, &row));
    const int32_t *whole = t->whole + row * t->slices * WIDTH;
    int32_t *mine = local + i * t->slices * WIDTH;
    if (compare) {
      CHECK_BYTES(whole, mine, bytes);
    } else {
      memcpy(mine, whole, bytes);
    }
  }
  return rows * t->slices;
}

static const int64_t *entries_of(const sender *s, int64_t part, int64_t *first, int64_t *count) {
  *first = 0;
  for (int64_t before = 0; before < part; before++) {
    *first += (int64_t)s->lists.counts[before];
  }
  *count = (int64_t)s->lists.counts[part];
  return s->lists.destinations + *first;
}

/* Appends the tuples of a sender to those of all senders. */
static void append(const table *t, sender *all, const sender *s) {
  size_t coordinates = t->addressing == TUPLES ? 2 : 1, first = (size_t)all->count, count = (size_t)s->count;
  memcpy(all->indices + first * coordinates, s->indices, count * coordinates * sizeof(int64_t));
  memcpy(all->updates + first * WIDTH, s->updates, count * WIDTH * sizeof(int32_t));
  all->count += s->count;
}

/* Each part applies the entries of all senders in one call: those of sender 0, then those of sender 1, and so
 * on. The expected table is the result of one call with the tuples of all senders in this order. */
static void check_scatter(table *t, sender *senders) {
  static int32_t locals[MOST_PARTS][MOST_SLICES * WIDTH], received[ALL_TUPLES * WIDTH];
  static int64_t numbers[ALL_TUPLES];
  static sender all;
  all.count = 0;
  for (sender *s = senders; s < senders + SENDERS; s++) {
    make_sharded_plan(t, s, false, &t->options);
    pack(t, s);
    append(t, &all, s);
  }
  nds_options applied = t->options;
  applied.bounds = BOUNDS_ERROR;
  applied.forbid_negative = 1;
  for (int64_t part = 0; part < (int64_t)t->sharding.parts; part++) {
    int64_t slices = part_of_table(t, part, locals[part], false), total = 0, first, count;
    for (const sender *s = senders; s < senders + SENDERS; s++) {
      const int64_t *mine = entries_of(s, part, &first, &count);
      memcpy(numbers + total, mine, (size_t)count * sizeof(int64_t));
      memcpy(received + total * WIDTH, s->packed + first * WIDTH, (size_t)count * WIDTH * sizeof(int32_t));
      total += count;
    }
    DLTensor local = TENSOR(locals[part], t->type, slices, WIDTH);
    const DLTensor destinations = TENSOR(numbers, I64, total), updates = TENSOR(received, t->type, total, WIDTH);
    CHECK_OK(nds_scatter_update(&local, &destinations, &updates, 0, &local, &applied));
  }
  CHECK_OK(apply_whole(t, &all, &t->options));
  for (int64_t part = 0; part < (int64_t)t->sharding.parts; part++) {
    part_of_table(t, part, locals[part], true);
  }
  for (sender *s = senders; s < senders + SENDERS; s++) {
    nds_sharded_plan_free(s->plan);
  }
}

/* Each part gathers the slices of the entries. The sender puts the answers back. */
static void check_gather(table *t, sender *s) {
  static int32_t local_memory[MOST_SLICES * WIDTH];
  const nds_options *options = OPTIONS(.bounds = t->options.bounds);
  make_sharded_plan(t, s, true, options);
  const nds_sharded_lists *lists = &s->lists;
  for (int64_t part = 0; part < (int64_t)t->sharding.parts; part++) {
    int64_t first, count;
    const int64_t *numbers = entries_of(s, part, &first, &count);
    const DLTensor destinations = TENSOR(numbers, I64, count);
    const DLTensor local = TENSOR(local_memory, t->type, part_of_table(t, part, local_memory, false), WIDTH);
    DLTensor answers = TENSOR(s->packed + first * WIDTH, t->type, count, WIDTH);
    CHECK_OK(nds_gather(&local, &destinations, 0, &answers, NULL));
  }
  const DLTensor answers = TENSOR(s->packed, t->type, (int64_t)lists->entries, WIDTH);
  DLTensor found = TENSOR(s->found, t->type, s->count, WIDTH);
  memset(s->found, 0, sizeof s->found);
  if (lists->order != NULL) {
    const DLTensor order = TENSOR(lists->order, I64, (int64_t)lists->entries);
    CHECK_OK(nds_scatter_update(&found, &order, &answers, 0, &found, NULL));
  } else {
    const DLTensor slots = TENSOR(lists->slots, I64, s->count);
    CHECK_OK(nds_gather(&answers, &slots, 0, &found, OPTIONS(.forbid_negative = 1, .bounds = SKIP_NEGATIVE)));
  }
  int32_t expected[MOST_TUPLES * WIDTH];
  CHECK_OK(gather_whole(t, s, expected, options));
  CHECK_BYTES(expected, s->found, (size_t)s->count * WIDTH * sizeof(int32_t));
  nds_sharded_plan_free(s->plan);
}

static void bits_of_one_loop(void) {
  static table t;
  static sender senders[SENDERS];
  uint32_t state = 7;
  for (int round = 0; round < 1500; round++) {
    int64_t starts[MOST_PARTS] = {0};
    t.addressing = (addressing)(next_random(&state) % 3);
    t.rows = 1 + (int64_t)(next_random(&state) % MOST_ROWS);
    t.slices = t.addressing == ROWS ? 1 : 2;
    t.combine = next_random(&state) % 2 == 0;
    t.sharding = (nds_sharding){.size = sizeof t.sharding, .rule = (int32_t)(next_random(&state) % 3)};
    t.sharding.parts = 1 + next_random(&state) % MOST_PARTS;
    for (size_t part = 1; part < t.sharding.parts; part++) {
      starts[part] = starts[part - 1] + (int64_t)(next_random(&state) % 5);
    }
    t.sharding.starts = t.sharding.rule == NDS_SHARDING_STARTS ? starts : NULL;
    t.options = (nds_options){.size = sizeof t.options, .reduction = (int32_t)(next_random(&state) % 7)};
    t.options.exclude_self = next_random(&state) % 2;
    if (t.options.reduction == MEAN) {
      t.combine = 0;
    }
    t.options.bounds = next_random(&state) % 2 ? SKIP : BOUNDS_ERROR;
    /* Sums of floats that are combined have other rounding errors than the loop. */
    t.type = t.combine && t.options.reduction >= ADD && t.options.reduction <= MUL ? I32 : F32;
    set_case("round %d: addressing %d, rule %d, parts %zu, combine %d, reduction %d", round, t.addressing,
             t.sharding.rule, t.sharding.parts, t.combine, t.options.reduction);
    fill_values(&t, t.whole, COUNT(t.whole), &state);
    for (size_t i = 0; i < SENDERS; i++) {
      draw_sender(&t, &senders[i], &state);
    }
    check_scatter(&t, senders);
    check_gather(&t, &senders[0]);
  }
}

/* A list that is long enough for several threads. The lists of the plan do not depend on the threads. A pool
 * that skips a task is an error. */
static void long_lists(void) {
  enum { TUPLES_OF_LIST = 1100000, ROWS_OF_TABLE = 5000 };
  int32_t *rows = allocate(TUPLES_OF_LIST * sizeof *rows);
  uint32_t state = 3;
  for (size_t i = 0; i < TUPLES_OF_LIST; i++) {
    rows[i] = (int32_t)(next_random(&state) % ROWS_OF_TABLE);
  }
  const DLTensor table = TENSOR(NULL, F32, ROWS_OF_TABLE, 4), indices = TENSOR(rows, I32, TUPLES_OF_LIST);
  const nds_sharding parts = {.size = sizeof parts, .rule = NDS_SHARDING_MODULO, .parts = 5};
  for (int32_t combine = 0; combine <= 1; combine++) {
    host host = make_host(on_pthreads, 3);
    nds_sharded_plan *alone = NULL, *divided = NULL;
    set_case("long lists, combine %d", combine);
    const nds_options *add = OPTIONS(.reduction = ADD, .max_threads = 1);
    CHECK_OK(nds_shard_scatter_update(&table, &indices, &parts, combine, add, &alone));
    const nds_options *on_host = OPTIONS(.reduction = ADD, .pool = pool_of(&host));
    CHECK_OK(nds_shard_scatter_update(&table, &indices, &parts, combine, on_host, &divided));
    CHECK(host.calls > 0);
    nds_sharded_lists one = lists_of(alone), other = lists_of(divided);
    CHECK_INT(combine ? ROWS_OF_TABLE : TUPLES_OF_LIST, (long long)one.entries);
    CHECK_INT((long long)one.entries, (long long)other.entries);
    CHECK_BYTES(one.counts, other.counts, one.parts * sizeof(size_t));
    CHECK_BYTES(one.destinations, other.destinations, one.entries * sizeof(int64_t));
    if (combine) {
      CHECK_BYTES(one.slots, other.slots, one.tuples * sizeof(int64_t));
    } else {
      CHECK_BYTES(one.order, other.order, one.entries * sizeof(int64_t));
    }
    nds_sharded_plan_free(alone);
    nds_sharded_plan_free(divided);
    host.pool.parallel_for = runs_none;
    CHECK_STATUS(NDS_INTERNAL, nds_shard_scatter_update(&table, &indices, &parts, combine, on_host, &divided));
    CHECK(divided == NULL);
  }
  free(rows);
}

static void refused_divisions(void) {
  static int64_t starts[] = {0, 3, 2}, negative[] = {0, -1}, late[] = {1, 2};
  static const nds_sharding cases[] = {
      {sizeof(nds_sharding), NDS_SHARDING_BLOCKS, 0, NULL},
      {sizeof(nds_sharding), NDS_SHARDING_BLOCKS, SIZE_MAX, NULL},
      {sizeof(nds_sharding), NDS_SHARDING_MODULO, 0, NULL},
      {sizeof(nds_sharding), NDS_SHARDING_MODULO, 1ULL << 32, NULL},
      {sizeof(nds_sharding), NDS_SHARDING_MODULO, 2, starts},
      {sizeof(nds_sharding), NDS_SHARDING_BLOCKS, 2, starts},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, 2, NULL},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, 0, starts},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, 3, starts},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, 2, negative},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, 2, late},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, SIZE_MAX, starts},
      {sizeof(nds_sharding), NDS_SHARDING_STARTS, 1ULL << 32, starts},
      {sizeof(nds_sharding), 3, 2, NULL},
      {sizeof(nds_sharding), -1, 2, NULL},
      {sizeof(nds_sharding) - 8, NDS_SHARDING_BLOCKS, 2, NULL},
      {0, NDS_SHARDING_BLOCKS, 2, NULL},
  };
  const DLTensor table = TENSOR(NULL, F32, 7, 2), indices = TENSOR(LONGS(1, 2), I64, 2);
  for (size_t i = 0; i <= COUNT(cases); i++) {
    const nds_sharding *sharding = i < COUNT(cases) ? &cases[i] : NULL;
    nds_sharded_plan *plan = (nds_sharded_plan *)&starts;
    int64_t count = -7;
    set_case("division %zu", i);
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharding_rows(sharding, 0, 7, &count));
    CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_shard_scatter_update(&table, &indices, sharding, 0, NULL, &plan));
    CHECK(plan == NULL && count == -7);
  }
  struct {
    nds_sharding known;
    uint64_t later;
  } newer = {{sizeof newer, NDS_SHARDING_BLOCKS, 2, NULL}, 0};
  int64_t count = -7;
  CHECK_OK(nds_sharding_rows(&newer.known, 0, 7, &count));
  CHECK_INT(4, count);
  newer.later = 1;
  CHECK_STATUS(NDS_UNSUPPORTED, nds_sharding_rows(&newer.known, 0, 7, &count));
}

static void refused_plans(void) {
  const DLTensor table = TENSOR(NULL, F32, 7, 2), scalar = SCALAR(NULL, F32), indices = TENSOR(LONGS(1, 2), I64, 2);
  const DLTensor beyond = TENSOR(LONGS(1, 2, 7), I64, 3), twice = TENSOR(LONGS(1, 2, 1), I64, 3);
  const DLTensor floats = TENSOR(LONGS(1, 2), F64, 2), none = TENSOR(LONGS(1), I64, 2, 0);
  const DLTensor slots = TENSOR(LONGS(1, 14), I64, 2), triple = TENSOR(LONGS(1, 1, 1), I64, 1, 3);
  DLTensor gpu = table, negative = TENSOR(NULL, F32, -7, 2);
  gpu.device.device_type = 2;
  const nds_sharding halves = {.size = sizeof halves, .parts = 2};
  static const nds_options reject = {.size = sizeof reject, .reject_duplicates = 1};
  static const nds_options difference = {.size = sizeof difference, .reduction = SUB};
  const DLTensor flags = TENSOR(NULL, BOOL, 7, 2);
  static const nds_options mean = {.size = sizeof mean, .reduction = MEAN};
  const struct {
    const char *reason;
    make_plan_of *make;
    const DLTensor *data, *indices;
    int32_t combine;
    const nds_options *options;
    nds_status status;
  } cases[] = {
      {"no data", nds_shard_scatter_update, NULL, &indices, 0, NULL, NDS_INVALID_ARGUMENT},
      {"no indices", nds_shard_scatter_update, &table, NULL, 0, NULL, NDS_INVALID_ARGUMENT},
      {"a scalar", nds_shard_scatter_update, &scalar, &indices, 0, NULL, NDS_INVALID_ARGUMENT},
      {"a negative size", nds_shard_gather, &negative, &indices, 0, NULL, NDS_INVALID_ARGUMENT},
      {"a device", nds_shard_gather, &gpu, &indices, 0, NULL, NDS_UNSUPPORTED},
      {"floats", nds_shard_gather, &table, &floats, 0, NULL, NDS_INVALID_ARGUMENT},
      {"an index", nds_shard_scatter_update, &table, &beyond, 0, NULL, NDS_INDEX_OUT_OF_BOUNDS},
      {"an index to gather", nds_shard_gather, &table, &beyond, 1, NULL, NDS_INDEX_OUT_OF_BOUNDS},
      {"a slot", nds_shard_gather_paged, &table, &slots, 1, NULL, NDS_INDEX_OUT_OF_BOUNDS},
      {"duplicates", nds_shard_scatter_update, &table, &twice, 0, &reject, NDS_DUPLICATE_INDEX},
      {"duplicates to gather", nds_shard_gather, &table, &twice, 0, &reject, NDS_UNSUPPORTED},
      {"a mean", nds_shard_scatter_update, &table, &twice, 1, &mean, NDS_UNSUPPORTED},
      {"a combined subtraction of booleans", nds_shard_scatter_update, &flags, &twice, 1, &difference, NDS_UNSUPPORTED},
      {"a mean of a gather", nds_shard_gather, &table, &twice, 0, &mean, NDS_UNSUPPORTED},
      {"no coordinates", nds_shard_scatter_nd, &table, &none, 0, NULL, NDS_UNSUPPORTED},
      {"too many coordinates", nds_shard_gather_nd, &table, &triple, 0, NULL,
       NDS_INVALID_ARGUMENT},
      {"combine", nds_shard_gather, &table, &indices, 2, NULL, NDS_INVALID_ARGUMENT},
      {"an option", nds_shard_gather, &table, &indices, 0, OPTIONS(.bounds = 4), NDS_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    nds_sharded_plan *plan = (nds_sharded_plan *)&gpu;
    set_case("%s", cases[i].reason);
    CHECK_STATUS(cases[i].status,
                 cases[i].make(cases[i].data, cases[i].indices, &halves, cases[i].combine, cases[i].options, &plan));
    CHECK(plan == NULL);
  }
  set_case("facts");
  nds_sharded_plan *plan = NULL;
  CHECK_STATUS(NDS_INDEX_OUT_OF_BOUNDS, nds_shard_scatter_update(&table, &beyond, &halves, 0, NULL, &plan));
  nds_error_info info = last_info();
  CHECK(info.tuple == 2 && info.axis == 0 && info.axis_size == 7 && info.index == 7);
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_shard_scatter_update(&table, &indices, &halves, 0, NULL, NULL));
  CHECK_OK(nds_shard_scatter_update(&table, &indices, &halves, 0, &mean, &plan));
  nds_sharded_lists lists = {.size = sizeof lists - 1};
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharded_plan_lists(plan, &lists));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharded_plan_lists(plan, NULL));
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_sharded_plan_lists(NULL, &lists));
  CHECK(lists.counts == NULL);
  nds_sharded_plan_free(plan);
}

void test_sharding(void) {
  rows_and_owners();
  lists_of_a_small_plan();
  bits_of_one_loop();
  long_lists();
  refused_divisions();
  refused_plans();
}
