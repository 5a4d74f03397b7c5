/* Calls that are large enough to run on the threads of a pool. */

#include "check.h"

#include <stdlib.h>

/* The work of each call is above every threshold for dividing work among threads
 * (docs/notes/2026-11-22-thresholds.md), but small enough to run in valgrind. A gather writes one element
 * per tuple. A scatter also copies all of data, so the scatter has a quarter as many tuples as the gather. */
enum { DESTINATIONS = 3 << 20, SCATTERED = 160 << 10, GATHERED = 640 << 10 };

/* Returns values whose sums are rounded, so a different order of the additions changes the bits of a sum. */
static float *random_floats(size_t count, uint32_t seed) {
  float *values = allocate(count * sizeof(float));
  for (size_t i = 0; i < count; i++) {
    values[i] = ((float)next_random(&seed) - 8388608.0f) / (float)(1 + (next_random(&seed) & 0xfff));
  }
  return values;
}

/* Returns indices with many duplicates. Every other index is less than 5000. */
static int64_t *random_places(size_t count, uint32_t seed) {
  int64_t *places = allocate(count * sizeof(int64_t));
  for (size_t i = 0; i < count; i++) {
    uint32_t range = i % 2 == 0 ? DESTINATIONS : 5000;
    places[i] = next_random(&seed) % range;
  }
  return places;
}

void make_large(large *large, operator_name operator_) {
  bool gathers = operator_ >= GATHER_ND;
  int64_t tuples = gathers ? GATHERED : SCATTERED;
  *large = (struct large){.shape = {DESTINATIONS, 1}, .index_shape = {tuples, 1}, .update_shape = {tuples, 1}};
  large->data = random_floats(DESTINATIONS, 1);
  large->indices = random_places((size_t)tuples, 2);
  large->updates = random_floats((size_t)tuples, 3);
  size_t index_rank = operator_ == SCATTER_ND || operator_ == GATHER_ND ? 2 : 1;
  large->problem = (problem){
      .operator_ = operator_,
      .data = tensor_of(large->data, F32, 1, large->shape, NULL),
      .indices = tensor_of(large->indices, I64, index_rank, large->index_shape, NULL),
      .updates = tensor_of(large->updates, F32, 1, large->update_shape, NULL),
  };
  large->output = tensor_of(NULL, F32, 1, gathers ? large->update_shape : large->shape, NULL);
  large->bytes = bytes_of(&large->output);
  large->output.data = allocate(large->bytes);
}

void free_large(large *large) {
  free(large->data);
  free(large->indices);
  free(large->updates);
  free(large->output.data);
}
