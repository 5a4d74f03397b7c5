/* Tests of a program that loads the library with dlopen, makes calls, and unloads it with dlclose while threads
 * of the library exist and while calls run.
 * The library stays loaded (-z nodelete), so later calls of its functions give the right result. */

#include <ndscatter.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20000, WIDTH = 16, TUPLES = 30000, TURNS = 8 };

typedef nds_status scatter(const DLTensor *, const DLTensor *, const DLTensor *, DLTensor *, const nds_options *);

static float data[ROWS * WIDTH], updates[TUPLES * WIDTH];
static int64_t indices[TUPLES];
static atomic_bool is_over;
static atomic_int calls_made;

static void check(bool held, const char *what) {
  if (!held) {
    const char *reason = dlerror();
    fprintf(stderr, "%s: %s\n", what, reason == NULL ? "failed" : reason);
    exit(1);
  }
}

static void *load(scatter **function) {
  void *library = dlopen("libndscatter_c.so.1", RTLD_NOW | RTLD_LOCAL);
  check(library != NULL, "dlopen");
  void *symbol = dlsym(library, "nds_scatter_nd");
  check(symbol != NULL, "dlsym");
  memcpy(function, &symbol, sizeof symbol);
  return library;
}

static DLTensor tensor_of(void *memory, DLDataTypeCode code, uint8_t bits, int64_t *shape) {
  return (DLTensor){
      .data = memory, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {(uint8_t)code, bits, 1}, .shape = shape};
}

/* Adds updates to data with the library, and compares the result with the sums of a loop. The sums are exact. */
static void call_on(scatter *scatter_nd) {
  int64_t of_data[] = {ROWS, WIDTH}, of_indices[] = {TUPLES, 1}, of_updates[] = {TUPLES, WIDTH};
  float *got = malloc(sizeof data), *expected = malloc(sizeof data);
  check(got != NULL && expected != NULL, "memory");
  memcpy(expected, data, sizeof data);
  for (size_t i = 0; i < TUPLES * WIDTH; i++) {
    expected[(size_t)indices[i / WIDTH] * WIDTH + i % WIDTH] += updates[i];
  }
  DLTensor d = tensor_of(data, kDLFloat, 32, of_data), i = tensor_of(indices, kDLInt, 64, of_indices);
  DLTensor u = tensor_of(updates, kDLFloat, 32, of_updates), o = tensor_of(got, kDLFloat, 32, of_data);
  nds_options options = {.size = sizeof options, .reduction = NDS_REDUCTION_ADD};
  check(scatter_nd(&d, &i, &u, &o, &options) == NDS_OK, "a call");
  check(memcmp(expected, got, sizeof data) == 0, "the result of a call");
  free(expected);
  free(got);
  atomic_fetch_add(&calls_made, 1);
}

static void *keep_calling(void *function) {
  scatter *scatter_nd;
  memcpy(&scatter_nd, function, sizeof scatter_nd);
  while (!atomic_load(&is_over)) {
    call_on(scatter_nd);
  }
  return NULL;
}

int main(void) {
  scatter *first, *again;
  pthread_t thread;
  setenv("RAYON_NUM_THREADS", "3", 1);
  check(dlopen("libndscatter_c.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL, "the program has not loaded the library");
  for (size_t i = 0; i < TUPLES; i++) {
    indices[i] = (int64_t)(i * i % ROWS);
  }
  for (size_t i = 0; i < TUPLES * WIDTH; i++) {
    updates[i] = (float)(i % 97);
  }
  void *library = load(&first);
  /* No thread of the library exists yet that could keep it loaded. */
  check(dlclose(library) == 0, "dlclose");
  check(dlopen("libndscatter_c.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL, "the library stays loaded");
  library = load(&again);
  check(first == again, "the address of the library");
  check(pthread_create(&thread, NULL, keep_calling, &first) == 0, "a thread");
  call_on(first);
  for (int turn = 0; turn < TURNS; turn++) {
    check(dlclose(library) == 0, "dlclose");
    call_on(first);
    library = load(&again);
    check(first == again, "the address of the library after calls");
  }
  atomic_store(&is_over, true);
  check(pthread_join(thread, NULL) == 0, "the end of the thread");
  check(dlclose(library) == 0, "dlclose");
  call_on(first);
  printf("%d calls\n", atomic_load(&calls_made));
  return 0;
}
