/* Declarations that all files of the C tests share: checks that report their failure, and short notations
 * for tensors and options.
 *
 * This file depends on the C interface, but not on the expected results of a test. */

#ifndef CHECK_H
#define CHECK_H

#include <ndscatter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sets the name of the case that the calling thread tests. A check that fails prints this name. */
void set_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

void check_true(const char *file, int line, const char *text, bool held);
void check_int(const char *file, int line, const char *text, long long expected, long long got);
void check_bytes(const char *file, int line, const char *text, const void *expected, const void *got, size_t bytes);
void check_status(const char *file, int line, const char *text, nds_status expected, nds_status got);
unsigned long checks_made(void);

#define CHECK(held) check_true(__FILE__, __LINE__, #held, held)
#define CHECK_INT(expected, got) check_int(__FILE__, __LINE__, #got, expected, got)
#define CHECK_BYTES(expected, got, bytes) check_bytes(__FILE__, __LINE__, #got, expected, got, bytes)
#define CHECK_STATUS(expected, call) check_status(__FILE__, __LINE__, #call, expected, call)
#define CHECK_OK(call) CHECK_STATUS(NDS_OK, call)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Element types. DLPack declares kDLBool since version 0.8; its value is 6. */
#define TYPE(code, bits) ((DLDataType){(uint8_t)(code), (bits), 1})
#define I8 TYPE(kDLInt, 8)
#define I32 TYPE(kDLInt, 32)
#define I64 TYPE(kDLInt, 64)
#define U8 TYPE(kDLUInt, 8)
#define U64 TYPE(kDLUInt, 64)
#define F16 TYPE(kDLFloat, 16)
#define F32 TYPE(kDLFloat, 32)
#define F64 TYPE(kDLFloat, 64)
#define BF16 TYPE(kDLBfloat, 16)
#define C64 TYPE(kDLComplex, 64)
#define BOOL TYPE(6, 8)
/* Types for which the library knows only the size: an 8-bit float, and a type of eight 4-bit floats. */
#define FLOAT8 TYPE(10, 8)
#define FLOAT4X8 ((DLDataType){17, 4, 8})

/* Short names of the values of nds_reduction and nds_bounds. */
enum {
  NONE = NDS_REDUCTION_NONE,
  ADD = NDS_REDUCTION_ADD,
  SUB = NDS_REDUCTION_SUB,
  MUL = NDS_REDUCTION_MUL,
  MIN = NDS_REDUCTION_MIN,
  MAX = NDS_REDUCTION_MAX,
  MEAN = NDS_REDUCTION_MEAN,
};
enum {
  BOUNDS_ERROR = NDS_BOUNDS_ERROR,
  SKIP = NDS_BOUNDS_SKIP,
  CLAMP = NDS_BOUNDS_CLAMP,
  SKIP_NEGATIVE = NDS_BOUNDS_SKIP_NEGATIVE,
};

/* An array of constant 64-bit integers. */
#define LONGS(...) ((const int64_t[]){__VA_ARGS__})

/* Macros that make tensors. TENSOR makes a row-major tensor, STRIDED a tensor with explicit strides, and
 * SCALAR a tensor of rank 0. */
#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define TENSOR(memory, type, ...) tensor_of(memory, type, COUNT(DIMS(__VA_ARGS__)), DIMS(__VA_ARGS__), NULL)
#define STRIDED(memory, type, shape, strides) tensor_of(memory, type, COUNT(shape), shape, strides)
#define SCALAR(memory, type) tensor_of(memory, type, 0, NULL, NULL)
DLTensor tensor_of(const void *memory, DLDataType type, size_t ndim, int64_t *shape, int64_t *strides);

/* Makes a pointer to options. A field that is not an argument has its default. */
#define OPTIONS(...) (&(nds_options){.size = sizeof(nds_options), __VA_ARGS__})

typedef enum operator_name {
  SCATTER_ND,
  SCATTER_UPDATE,
  SCATTER_ELEMENTS,
  SCATTER_PAGED,
  TENSOR_SCATTER,
  GATHER_ND,
  GATHER,
  GATHER_ELEMENTS,
  GATHER_PAGED,
} operator_name;

/* The inputs of a call of any operator. */
typedef struct problem {
  operator_name operator_;
  DLTensor data, indices, updates; /* updates is unused for gathers */
  int64_t axis;                    /* batch_dims for GATHER_ND */
  int32_t circular;
  const nds_options *options;
} problem;

bool is_gather(const problem *problem);
bool has_plan(const problem *problem);
size_t size_of(DLDataType type);         /* bytes of an element */
size_t bytes_of(const DLTensor *tensor); /* bytes of all elements */

/* call and call_with make the call that a problem describes. make_plan and make_plan_with make the plan of
 * this call. call_with and make_plan_with use the tensors of their arguments instead of those of the
 * problem, and pass a null tensor pointer on to the library. */
nds_status call_with(const problem *problem, const DLTensor *data, const DLTensor *indices, const DLTensor *updates,
                     DLTensor *output);
nds_status call(const problem *problem, DLTensor *output);
nds_status make_plan_with(const problem *problem, const DLTensor *data, const DLTensor *indices, nds_plan **plan);
nds_status make_plan(const problem *problem, nds_plan **plan);

/* Makes the call of a problem with a row-major output of this shape, and compares the bytes of the output
 * with `expected`. For a scatter, makes the call again in place: one tensor is then the data and the
 * output. If the operator has plans, also makes a plan. Runs this plan twice with a separate output and,
 * for a scatter, twice in place. The data of the problem must be row-major. */
void check_everywhere(const problem *problem, const DLTensor *shape, const void *expected);

/* Checks that the call of a problem fails with the status `expected`. The call must not change the first
 * `bytes` bytes at the address `memory`. */
void check_refused(const problem *problem, DLTensor *output, nds_status expected, const void *memory, size_t bytes);

/* Checks that making a plan of a problem fails with the status `expected`. The call must set the caller's
 * plan pointer to null. */
void check_plan_refused(const problem *problem, nds_status expected);

/* A small valid call of any operator. Tests change one of its arguments to an invalid one. */
typedef struct base {
  problem problem;
  DLTensor output;
  float data[16], updates[16], result[16];
  int64_t indices[16], shape[2], index_shape[2], update_shape[2];
} base;

void make_base(base *base, operator_name operator_);

/* Returns memory whose bytes are 0. Ends the test program if the allocation fails. */
void *allocate(size_t bytes);

/* Returns the next number of a deterministic pseudo-random sequence. */
uint32_t next_random(uint32_t *state);

/* Returns the status and the facts (such as the tuple, axis and index) of this thread's last failure. */
nds_error_info last_info(void);

/* A call that is large enough to use the threads of a pool. */
typedef struct large {
  problem problem;
  DLTensor output;
  size_t bytes; /* bytes of the output */
  int64_t shape[2], index_shape[2], update_shape[2];
  void *data, *indices, *updates;
} large;

/* Makes a scatter to 3,145,728 float32 elements, or a gather from 3,145,728 float32 elements. Many of its
 * indices are duplicates. */
void make_large(large *large, operator_name operator_);
void free_large(large *large);

/* A thread pool of a host. It counts the calls of its parallel-for function and the tasks that ran. */
typedef struct host {
  nds_pool pool;
  size_t threads;             /* number of threads that on_pthreads starts */
  void (*before)(void);       /* function that each of these threads calls before its tasks, or null */
  void (*after)(void);        /* function that each of these threads calls after its tasks, or null */
  unsigned long calls, tasks; /* totals over all calls */
} host;

typedef int32_t parallel_for(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument);

/* Parallel-for functions without faults. in_turn runs the tasks on the calling thread in ascending order
 * of their indices. backwards runs the tasks on the calling thread in descending order. on_pthreads runs
 * the tasks on new threads. */
parallel_for in_turn, backwards, on_pthreads;

/* A parallel-for function that runs no task and reports success. */
parallel_for runs_none;

host make_host(parallel_for *run, uint32_t workers);
const nds_pool *pool_of(host *host);

/* Runs the function `run` on `threads` threads at the same time. Each thread passes its own number to
 * `run`. */
void on_threads(size_t threads, void (*run)(size_t number, void *shared), void *shared);

/* The test suites. Each file has one suite, except threads.c, which has three suites. */
void test_operators(void);
void test_reductions(void);
void test_types(void);
void test_layouts(void);
void test_writes(void);
void test_moves(void);
void test_plans(void);
void test_sharding(void);
void test_bad_tensors(void);
void test_bad_calls(void);
void test_bad_indices(void);
void test_changing(void);
void test_overlaps(void);
void test_bad_structs(void);
void test_last_error(void);
void test_pools(void);
void test_threads(void);
void test_fork_before_threads(void);
void test_fork(void);
void test_machine(void);
void test_floats(void);
void test_gradients(void);
void test_backward(void);

#endif
