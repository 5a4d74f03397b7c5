/* Checks of calls that must fail without a write, and the valid calls that tests start from. */

#include "check.h"

#include <stdlib.h>

void check_refused(const problem *p, DLTensor *output, nds_status expected, const void *memory, size_t bytes) {
  void *before = allocate(bytes);
  memcpy(before, memory, bytes);
  CHECK_STATUS(expected, call(p, output));
  CHECK_BYTES(before, memory, bytes);
  free(before);
}

void check_plan_refused(const problem *p, nds_status expected) {
  nds_plan *plan = (nds_plan *)&plan; /* any value except null */
  CHECK_STATUS(expected, make_plan(p, &plan));
  CHECK(plan == NULL);
}

/* Data is 4 x 3. For tensor_scatter this is 4 sequences of 3 positions. For the operators of paged caches
 * this is 4 blocks of 3 slots. */
void make_base(base *base, operator_name operator_) {
  *base = (struct base){.shape = {4, 3}, .index_shape = {2, 1}, .update_shape = {2, 3}, .indices = {1, 0, 2, 1, 0, 2}};
  for (int i = 0; i < 16; i++) {
    base->data[i] = (float)i;
    base->updates[i] = (float)(100 + i);
    base->result[i] = -7.0f;
  }
  size_t index_rank = 2;
  if (operator_ == SCATTER_UPDATE || operator_ == GATHER) {
    index_rank = 1;
  } else if (operator_ == SCATTER_ELEMENTS || operator_ == GATHER_ELEMENTS) {
    base->index_shape[1] = 3;
  } else if (operator_ == TENSOR_SCATTER) {
    index_rank = 1;
    base->index_shape[0] = base->update_shape[0] = 4;
    base->update_shape[1] = 1;
  }
  if (operator_ == SCATTER_PAGED || operator_ == GATHER_PAGED) {
    base->index_shape[1] = 3;
  }
  bool gathers = operator_ >= GATHER_ND;
  base->problem = (problem){
      .operator_ = operator_,
      .data = tensor_of(base->data, F32, 2, base->shape, NULL),
      .indices = tensor_of(base->indices, I64, index_rank, base->index_shape, NULL),
      .updates = tensor_of(base->updates, F32, 2, base->update_shape, NULL),
      .axis = operator_ == TENSOR_SCATTER ? 1 : 0,
  };
  base->output = tensor_of(base->result, F32, 2, gathers ? base->update_shape : base->shape, NULL);
}
