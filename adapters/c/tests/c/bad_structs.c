/* Tests of nds_options and nds_pool with every declared size, and of option values out of range. */

#include "check.h"

#include <stdlib.h>

/* A scatter of two updates of value 5 to the two elements of the data [1 2]. The result of the scatter
 * shows which options the library used. */
typedef struct probe {
  int32_t data[2], updates[2], result[2];
  int64_t indices[2];
} probe;

static nds_status run_probe(probe *probe, const nds_options *options) {
  *probe = (struct probe){{1, 2}, {5, 5}, {-7, -7}, {0, 1}};
  DLTensor data = TENSOR(probe->data, I32, 2), at = TENSOR(probe->indices, I64, 2, 1);
  DLTensor updates = TENSOR(probe->updates, I32, 2), output = TENSOR(probe->result, I32, 2);
  return nds_scatter_nd(&data, &at, &updates, &output, options);
}

static void check_probe(nds_status expected, const nds_options *options) {
  probe probe;
  CHECK_STATUS(expected, run_probe(&probe, options));
  if (expected != NDS_OK) {
    CHECK(probe.result[0] == -7 && probe.result[1] == -7);
  }
}

/* Checks that one-shot calls, runs of plans and the making of plans fail with the given options. The check
 * covers every operator. */
static void check_all_refuse(nds_status expected, const nds_options *options) {
  check_probe(expected, options);
  for (operator_name operator_ = SCATTER_ND; operator_ <= GATHER_PAGED; operator_++) {
    base base;
    make_base(&base, operator_);
    nds_plan *plan = NULL;
    if (has_plan(&base.problem)) {
      CHECK_OK(make_plan(&base.problem, &plan));
    }
    const DLTensor *updates = is_gather(&base.problem) ? NULL : &base.problem.updates;
    float before[COUNT(base.result)];
    memcpy(before, base.result, sizeof before);
    if (plan != NULL) {
      CHECK_STATUS(expected, nds_plan_run(plan, &base.problem.data, updates, &base.output, options));
      nds_plan_free(plan);
    }
    base.problem.options = options;
    CHECK_STATUS(expected, call(&base.problem, &base.output));
    CHECK_BYTES(before, base.result, sizeof before);
    if (has_plan(&base.problem)) {
      check_plan_refused(&base.problem, expected);
    }
  }
}

static void sizes_of_options(void) {
  for (uint32_t size = 0; size <= sizeof(nds_options); size++) {
    bool whole_fields = size != 0 && size % 4 == 0 && size != 36;
    /* The allocation of the struct has exactly the size that the field size declares, but at least 4
     * bytes. A memory checker therefore detects a read of the library beyond the declared size. */
    size_t bytes = size < 4 ? 4 : size;
    unsigned char *given = allocate(bytes);
    memcpy(given, &size, sizeof size);
    set_case("nds_options.size %u", size);
    check_probe(whole_fields ? NDS_OK : NDS_INVALID_ARGUMENT, (const nds_options *)(void *)given);
    free(given);
  }
  set_case("nds_options.size %u", 5u);
  nds_options cut = {.size = 5};
  check_all_refuse(NDS_INVALID_ARGUMENT, &cut);
}

/* The field size of nds_options declares the size of the struct. For fields beyond the declared size, the
 * library uses the defaults, whatever bytes these fields hold. */
static void fields_beyond_the_size(void) {
  static const struct {
    uint32_t size;
    int32_t first; /* expected first element of the result */
  } cases[] = {{4, 5}, {8, 6}, {16, 6}, {20, 5}, {32, 5}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    nds_options options = {.size = cases[i].size, .reduction = ADD, .exclude_self = 1};
    options.none_gradient = 99;
    options.pool = (const nds_pool *)&options;
    if (cases[i].size < 8) {
      options.bounds = 77;
      options.max_threads = -1;
    }
    probe probe;
    set_case("nds_options.size %u", cases[i].size);
    CHECK_OK(run_probe(&probe, &options));
    CHECK_INT(cases[i].first, probe.result[0]);
  }
}

/* Tests a larger nds_options, as a caller with a newer header passes it. The library must accept the
 * larger struct only if all bytes beyond the fields that the library knows are 0. */
static void larger_options(void) {
  static const uint32_t sizes[] = {57, 60, 64, 128};
  for (size_t i = 0; i < COUNT(sizes); i++) {
    nds_options *given = allocate(sizes[i]);
    given->size = sizes[i];
    given->reduction = ADD;
    probe probe;
    set_case("nds_options.size %u", sizes[i]);
    CHECK_OK(run_probe(&probe, given));
    CHECK_INT(6, probe.result[0]);
    for (size_t at = sizeof(nds_options); at < sizes[i]; at++) {
      ((unsigned char *)given)[at] = 1;
      check_probe(NDS_UNSUPPORTED, given);
      ((unsigned char *)given)[at] = 0;
    }
    free(given);
  }
  nds_options *given = allocate(64);
  given->size = 64;
  ((unsigned char *)given)[63] = 0x80;
  check_all_refuse(NDS_UNSUPPORTED, given);
  free(given);
}

/* The padding after the last field of nds_options may hold any bytes. */
static void padding_of_options(void) {
  nds_options options;
  memset(&options, 0, sizeof options);
  size_t end = offsetof(nds_options, goal) + sizeof options.goal;
  memset((unsigned char *)&options + end, 0xff, sizeof options - end);
  options.size = sizeof options;
  check_probe(NDS_OK, &options);
}

/* In an older version of ndscatter.h, none_gradient was the last field of the struct nds_options, followed
 * by padding up to 48 bytes. If a caller was compiled with the older ndscatter.h, the library ignores the
 * padding of the caller's nds_options, and reads no memory after the caller's nds_options. */
static void padding_of_older_options(void) {
  _Static_assert(sizeof(void *) != 8 || offsetof(nds_options, goal) == 48, "the older size");
  size_t end = offsetof(nds_options, none_gradient) + sizeof(int32_t);
  for (size_t size = end; size <= offsetof(nds_options, goal); size += 4) {
    unsigned char *given = allocate(size);
    memset(given, 0, end);
    memset(given + end, 0xff, size - end);
    memcpy(given, &(uint32_t){(uint32_t)size}, 4);
    set_case("nds_options.size %zu", size);
    check_probe(NDS_OK, (const nds_options *)(void *)given);
    free(given);
  }
  /* In an nds_options of the current ndscatter.h, the library ignores the field reserved. */
  check_probe(NDS_OK, OPTIONS(.reserved = INT32_MIN, .goal = 2));
}

static int32_t never_called(void *ctx, size_t tasks, void (*task)(void *, size_t), void *argument) {
  (void)ctx, (void)tasks, (void)task, (void)argument;
  CHECK(false);
  return 1;
}

static void sizes_of_pools(void) {
  for (uint32_t size = 0; size <= 40; size++) {
    nds_pool *pool = allocate(size < sizeof *pool ? sizeof *pool : size);
    *pool = (nds_pool){.size = size, .workers = 2, .parallel_for = never_called};
    set_case("nds_pool.size %u", size);
    check_probe(size < sizeof *pool ? NDS_INVALID_ARGUMENT : NDS_OK, OPTIONS(.pool = pool));
    if (size > sizeof *pool) {
      ((unsigned char *)pool)[size - 1] = 1;
      check_probe(NDS_UNSUPPORTED, OPTIONS(.pool = pool));
    }
    free(pool);
  }
  set_case("nds_pool without a function");
  check_all_refuse(NDS_INVALID_ARGUMENT, OPTIONS(.pool = &(nds_pool){.size = sizeof(nds_pool), .workers = 2}));
}

static void numbers_out_of_range(void) {
  const nds_options *const bad[] = {
      OPTIONS(.reduction = -1),         OPTIONS(.reduction = 7),         OPTIONS(.reduction = INT32_MIN),
      OPTIONS(.reduction = INT32_MAX),  OPTIONS(.bounds = -1),           OPTIONS(.bounds = 4),
      OPTIONS(.forbid_negative = -1),   OPTIONS(.forbid_negative = 2),   OPTIONS(.exclude_self = -1),
      OPTIONS(.exclude_self = 2),       OPTIONS(.accumulate = -1),       OPTIONS(.accumulate = 2),
      OPTIONS(.reject_duplicates = -1), OPTIONS(.reject_duplicates = 2), OPTIONS(.none_gradient = -1),
      OPTIONS(.none_gradient = 2),      OPTIONS(.max_threads = -1),      OPTIONS(.max_threads = INT32_MIN),
      OPTIONS(.goal = -1),              OPTIONS(.goal = 3),              OPTIONS(.goal = INT32_MIN),
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    set_case("options %zu", i);
    check_all_refuse(NDS_INVALID_ARGUMENT, bad[i]);
  }
}

void test_bad_structs(void) {
  sizes_of_options();
  fields_beyond_the_size();
  larger_options();
  padding_of_options();
  padding_of_older_options();
  sizes_of_pools();
  numbers_out_of_range();
}
