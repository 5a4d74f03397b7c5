/* What all files of the test share: checks that say what went wrong, and
 * short ways to write tensors and options down.
 *
 * Knows the interface. Knows nothing of what its functions should answer. */

#ifndef CHECK_H
#define CHECK_H

#include <ndscatter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Names the case of a table that this thread is at; printed on failure. */
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

/* Types of elements. kDLBool came with DLPack 0.8; its number is 6. */
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
/* Of which only the size is known: an 8-bit float, and eight 4-bit floats. */
#define FLOAT8 TYPE(10, 8)
#define FLOAT4X8 ((DLDataType){17, 4, 8})

/* Numbers of the fields of nds_options. */
enum { NONE, ADD, SUB, MUL, MIN, MAX, MEAN };
enum { BOUNDS_ERROR, SKIP, CLAMP };

/* A tensor of this shape; row-major unless strides are given, or of rank 0. */
#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define TENSOR(memory, type, ...) tensor_of(memory, type, COUNT(DIMS(__VA_ARGS__)), DIMS(__VA_ARGS__), NULL)
#define STRIDED(memory, type, shape, strides) tensor_of(memory, type, COUNT(shape), shape, strides)
#define SCALAR(memory, type) tensor_of(memory, type, 0, NULL, NULL)
DLTensor tensor_of(const void *memory, DLDataType type, size_t ndim, int64_t *shape, int64_t *strides);

/* A pointer to options that differ from the defaults in the fields named. */
#define OPTIONS(...) (&(nds_options){.size = sizeof(nds_options), __VA_ARGS__})

typedef enum operator_name {
  SCATTER_ND,
  SCATTER_UPDATE,
  SCATTER_ELEMENTS,
  TENSOR_SCATTER,
  GATHER_ND,
  GATHER,
  GATHER_ELEMENTS,
} operator_name;

/* The inputs of a call of any operator. */
typedef struct problem {
  operator_name operator_;
  DLTensor data, indices, updates; /* no updates for gathers */
  int64_t axis;                    /* or batch_dims */
  int32_t circular;
  const nds_options *options;
} problem;

bool is_gather(const problem *problem);
bool has_plan(const problem *problem);
size_t size_of(DLDataType type);         /* of an element */
size_t bytes_of(const DLTensor *tensor); /* of its elements */

/* The call that a problem describes; null for a tensor that is left out. */
nds_status call_with(const problem *problem, const DLTensor *data, const DLTensor *indices, const DLTensor *updates,
                     DLTensor *output);
nds_status call(const problem *problem, DLTensor *output);
nds_status make_plan_with(const problem *problem, const DLTensor *data, const DLTensor *indices, nds_plan **plan);
nds_status make_plan(const problem *problem, nds_plan **plan);

/* Runs a problem into a row-major output of this shape and compares its bytes;
 * a scatter also in place; both also by a plan, twice. Data is row-major. */
void check_everywhere(const problem *problem, const DLTensor *shape, const void *expected);

/* The call fails with this status and leaves these bytes as they were; making
 * the plan fails, and the plan becomes null. */
void check_refused(const problem *problem, DLTensor *output, nds_status expected, const void *memory, size_t bytes);
void check_plan_refused(const problem *problem, nds_status expected);

/* A small call of any operator that would succeed, to be spoilt. */
typedef struct base {
  problem problem;
  DLTensor output;
  float data[16], updates[16], result[16];
  int64_t indices[16], shape[2], index_shape[2], update_shape[2];
} base;

void make_base(base *base, operator_name operator_);

/* Memory that is there, or the test ends. */
void *allocate(size_t bytes);

/* Pseudo-random numbers, the same in every run. */
uint32_t next_random(uint32_t *state);

/* The facts of this thread's last failure. */
nds_error_info last_info(void);

/* Large enough calls that the threads of a pool are used. */
typedef struct large {
  problem problem;
  DLTensor output;
  size_t bytes; /* of the output */
  int64_t shape[2], index_shape[2], update_shape[2];
  void *data, *indices, *updates;
} large;

/* Updates, with many duplicates, of three million float32; or some of these
 * gathered. */
void make_large(large *large, operator_name operator_);
void free_large(large *large);

/* A host's parallel-for, and what it has been asked for. */
typedef struct host {
  nds_pool pool;
  size_t threads;           /* of on_pthreads */
  void (*before)(void);     /* each of its threads calls it before its tasks, */
  void (*after)(void);      /* and this one after them; or null */
  unsigned long calls, tasks; /* in all */
} host;

typedef int32_t parallel_for(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument);

/* One that is sound: on the calling thread, forwards and backwards, and on
 * threads that it starts. */
parallel_for in_turn, backwards, on_pthreads;

host make_host(parallel_for *run, uint32_t workers);
const nds_pool *pool_of(host *host);

/* Runs a function on so many threads at once, each with its number. */
void on_threads(size_t threads, void (*run)(size_t number, void *shared), void *shared);

/* The suites, one a file. */
void test_operators(void);
void test_reductions(void);
void test_types(void);
void test_layouts(void);
void test_plans(void);
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
