/* The stored message and facts of a thread's last failure. */

#include "check.h"

#include <pthread.h>
#include <stdlib.h>

/* Fails with the index `index` in tuple 1, on an axis of size 4. */
static void fail_with_index(int64_t index) {
  base base;
  make_base(&base, SCATTER_ND);
  base.indices[1] = index;
  check_refused(&base.problem, &base.output, NDS_INDEX_OUT_OF_BOUNDS, base.result, sizeof base.result);
}

static void succeed(void) {
  base base;
  make_base(&base, SCATTER_ND);
  CHECK_OK(call(&base.problem, &base.output));
  nds_plan *plan = NULL;
  CHECK_OK(make_plan(&base.problem, &plan));
  nds_plan_free(plan);
}

static void unchanged_by_successes(void) {
  fail_with_index(7);
  const char *message = nds_last_error();
  char *before = allocate(strlen(message) + 1);
  memcpy(before, message, strlen(message));
  nds_error_info facts = last_info();
  succeed();
  nds_plan_free(NULL);
  CHECK_INT(1, nds_abi_version());
  CHECK_INT(0, strcmp(before, nds_last_error()));
  nds_error_info after = last_info();
  CHECK_BYTES(&facts, &after, sizeof facts);
  fail_with_index(8);
  CHECK(strcmp(before, nds_last_error()) != 0);
  CHECK_INT(8, last_info().index);
  free(before);
}

static void check_nothing_failed(void) {
  CHECK(nds_last_error() != NULL);
  CHECK_INT('\0', nds_last_error()[0]);
  nds_error_info info = last_info();
  CHECK_INT(NDS_OK, info.status);
  CHECK(info.tuple == -1 && info.other_tuple == -1 && info.axis == -1 && info.axis_size == -1 && info.index == -1);
}

static void *on_another_thread(void *nothing) {
  (void)nothing;
  check_nothing_failed();
  succeed();
  check_nothing_failed();
  fail_with_index(11);
  CHECK_INT(11, last_info().index);
  return NULL;
}

static void one_for_each_thread(void) {
  fail_with_index(9);
  pthread_t threads[3];
  for (size_t i = 0; i < COUNT(threads); i++) {
    CHECK_INT(0, pthread_create(&threads[i], NULL, on_another_thread, NULL));
  }
  for (size_t i = 0; i < COUNT(threads); i++) {
    CHECK_INT(0, pthread_join(threads[i], NULL));
  }
  CHECK_INT(9, last_info().index);
  CHECK(nds_last_error()[0] != '\0');
}

/* Fills the fields within the declared size, writes zeros beyond the known fields, and no byte more. */
static void sizes(void) {
  nds_error_info whole = {0};
  for (uint32_t size = 0; size <= 72; size++) {
    fail_with_index(7);
    whole = last_info();
    unsigned char *info = allocate(size < 4 ? 4 : size);
    memset(info, 0x5a, size < 4 ? 4 : size);
    memcpy(info, &size, sizeof size);
    set_case("nds_error_info.size %u", size);
    bool good = (size >= 8 && size % 8 == 0) || size > sizeof whole;
    if (good) {
      CHECK_OK(nds_last_error_info((nds_error_info *)(void *)info));
      size_t known = size < sizeof whole ? size : sizeof whole;
      static const unsigned char zeros[72];
      CHECK_BYTES(&size, info, sizeof size);
      CHECK_BYTES((unsigned char *)&whole + 4, info + 4, known - 4);
      CHECK_BYTES(zeros, info + known, size - known);
    } else {
      CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_last_error_info((nds_error_info *)(void *)info));
      CHECK_BYTES(&size, info, sizeof size);
      for (uint32_t i = 4; i < size; i++) {
        CHECK_INT(0x5a, info[i]);
      }
    }
    free(info);
  }
  CHECK_STATUS(NDS_INVALID_ARGUMENT, nds_last_error_info(NULL));
}

/* A message with a very long shape is truncated. */
static void long_messages(void) {
  enum { RANK = 512 };
  int64_t *ones = allocate(RANK * sizeof(int64_t));
  for (int i = 0; i < RANK; i++) {
    ones[i] = 1;
  }
  base base;
  make_base(&base, SCATTER_ND);
  base.problem.updates.ndim = RANK;
  base.problem.updates.shape = ones;
  check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
  CHECK(strlen(nds_last_error()) > 100);
  free(ones);
}

/* Indices of rank 1 are one tuple. The message names the operator for a list of positions. */
static void indices_of_rank_one(void) {
  base base;
  make_base(&base, SCATTER_ND);
  base.problem.indices.ndim = 1;
  check_refused(&base.problem, &base.output, NDS_INVALID_ARGUMENT, base.result, sizeof base.result);
  CHECK(strstr(nds_last_error(), "did you mean `scatter_update`") != NULL);
}

void test_last_error(void) {
  unchanged_by_successes();
  one_for_each_thread();
  sizes();
  long_messages();
  indices_of_rank_one();
}
