/* Tests in which another thread writes the indices during calls, which the interface forbids. The values
 * in the output are then unspecified, but no byte outside the output may change. A call may fail only with
 * NDS_INDEX_OUT_OF_BOUNDS, and must then leave the output unchanged. */

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { BINS = 100, TUPLES = 2000, CALLS = 200, GUARD = 512, MARK = 0x5a };

/* An index far outside the address range of the output. */
#define WILD ((int64_t)1 << 44)

/* Indices that the function `change` writes on another thread until `stop` is set. */
typedef struct changing {
  _Atomic int64_t *indices;
  size_t count;
  atomic_bool stop;
  atomic_ulong rounds;
} changing;

static void *change(void *argument) {
  changing *changing = argument;
  const int64_t values[] = {7, 0, WILD, BINS - 1, BINS, 7, BINS + 3, -1, -BINS - 3, -WILD, 7};
  const size_t written[] = {0, changing->count / 3, changing->count / 2, changing->count - 1};
  for (size_t round = 0; !atomic_load(&changing->stop); round++) {
    for (size_t i = 0; i < COUNT(written); i++) {
      /* The writes are separate, so a call can read indices of two rounds. */
      atomic_store(&changing->indices[written[i]], values[(round + i * round / 5) % COUNT(values)]);
    }
    if (atomic_fetch_add(&changing->rounds, 1) % 64 == 0) {
      sched_yield(); /* gives the workers of a call time on this core */
    }
  }
  return NULL;
}

/* An output between two areas of guard bytes, which have the value MARK. */
typedef struct guarded {
  DLTensor tensor;
  unsigned char *memory;
  size_t bytes;
} guarded;

static void check_guarded(const guarded *guarded, nds_status status) {
  unsigned char marks[GUARD];
  memset(marks, MARK, sizeof marks);
  CHECK_BYTES(marks, guarded->memory, GUARD);
  CHECK_BYTES(marks, guarded->memory + GUARD + guarded->bytes, GUARD);
  if (status != NDS_OK) {
    CHECK_STATUS(NDS_INDEX_OUT_OF_BOUNDS, status);
    for (size_t at = 0; at < guarded->bytes; at += GUARD) {
      size_t rest = guarded->bytes - at;
      CHECK_BYTES(marks, guarded->memory + GUARD + at, rest < GUARD ? rest : GUARD);
    }
  }
}

/* Runs one-shot calls, and makes and runs plans. Before each one-shot call and before each plan is made,
 * all bytes of the output have the value MARK. */
static void check_calls(const problem *p, guarded *guarded) {
  for (size_t turn = 0; turn < CALLS; turn++) {
    set_case("operator %d, call %zu", (int)p->operator_, turn);
    memset(guarded->memory, MARK, guarded->bytes + 2 * GUARD);
    check_guarded(guarded, call(p, &guarded->tensor));
    if (!has_plan(p)) {
      continue;
    }
    memset(guarded->memory, MARK, guarded->bytes + 2 * GUARD);
    nds_plan *plan = NULL;
    nds_status status = make_plan(p, &plan);
    check_guarded(guarded, status);
    if (status == NDS_OK) {
      CHECK_OK(nds_plan_run(plan, &p->data, is_gather(p) ? NULL : &p->updates, &guarded->tensor, p->options));
      check_guarded(guarded, NDS_OK);
    }
    nds_plan_free(plan);
  }
}

/* Runs a problem while another thread changes its indices. `indices` has the shape of the problem's indices. */
static void while_they_change(problem p, DLTensor output, DLTensor indices) {
  changing changing = {.count = bytes_of(&indices) / sizeof(int64_t)};
  changing.indices = allocate(bytes_of(&indices));
  for (size_t i = 0; i < changing.count; i++) {
    atomic_store(&changing.indices[i], (int64_t)(i * 7 % BINS));
  }
  indices.data = (void *)changing.indices;
  p.indices = indices;
  guarded guarded = {.tensor = output, .bytes = bytes_of(&output)};
  guarded.memory = allocate(guarded.bytes + 2 * GUARD);
  guarded.tensor.data = guarded.memory + GUARD;

  pthread_t writer;
  CHECK_INT(0, pthread_create(&writer, NULL, change, &changing));
  while (atomic_load(&changing.rounds) == 0) {
  }
  const nds_options options[] = {
      {.size = sizeof(nds_options), .bounds = BOUNDS_ERROR},
      {.size = sizeof(nds_options), .bounds = SKIP},
  };
  for (size_t i = 0; i < COUNT(options); i++) {
    p.options = &options[i];
    check_calls(&p, &guarded);
  }
  atomic_store(&changing.stop, true);
  CHECK_INT(0, pthread_join(writer, NULL));
  free((void *)changing.indices);
  free(guarded.memory);
}

void test_changing(void) {
  enum { ROW = 8 };
  int32_t *values = allocate(TUPLES * ROW * sizeof(int32_t));
#define INTS(...) TENSOR(values, I32, __VA_ARGS__)
#define AT(...) TENSOR(NULL, I64, __VA_ARGS__)
  /* The problems, in order: scatter_nd of single elements to an output of 100 elements; scatter_nd of
   * rows; scatter_nd with tuples of two coordinates; scatter_elements of 16 elements; scatter_update of
   * slices along the second axis; scatter_elements of rows; tensor_scatter to a key-value cache; gather;
   * gather_elements. */
  while_they_change((problem){.operator_ = SCATTER_ND, .data = INTS(BINS), .updates = INTS(TUPLES)}, INTS(BINS),
                    AT(TUPLES, 1));
  while_they_change((problem){.operator_ = SCATTER_ND, .data = INTS(BINS, ROW), .updates = INTS(TUPLES, ROW)},
                    INTS(BINS, ROW), AT(TUPLES, 1));
  while_they_change((problem){.operator_ = SCATTER_ND, .data = INTS(BINS, BINS), .updates = INTS(300)},
                    INTS(BINS, BINS), AT(300, 2));
  while_they_change((problem){.operator_ = SCATTER_ELEMENTS, .data = INTS(BINS, 4), .updates = INTS(4, 4)},
                    INTS(BINS, 4), AT(4, 4));
  while_they_change(
      (problem){.operator_ = SCATTER_UPDATE, .axis = 1, .data = INTS(2, BINS, 2), .updates = INTS(2, 300, 2)},
      INTS(2, BINS, 2), AT(300));
  while_they_change((problem){.operator_ = SCATTER_ELEMENTS, .data = INTS(BINS, ROW), .updates = INTS(50, ROW)},
                    INTS(BINS, ROW), AT(50, ROW));
  while_they_change(
      (problem){.operator_ = TENSOR_SCATTER, .axis = 2, .data = INTS(5, 2, BINS, 2), .updates = INTS(5, 2, 1, 2)},
      INTS(5, 2, BINS, 2), AT(5));
  while_they_change((problem){.operator_ = GATHER, .data = INTS(BINS, ROW)}, INTS(TUPLES, ROW), AT(TUPLES));
  while_they_change((problem){.operator_ = GATHER_ELEMENTS, .data = INTS(BINS, ROW)}, INTS(50, ROW), AT(50, ROW));
#undef INTS
#undef AT
  free(values);
}
