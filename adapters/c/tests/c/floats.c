/* Tests of calls from threads whose floating-point mode is not the default mode. The results must have the
 * same bits as in the default floating-point mode. Each call must restore the floating-point mode of the
 * calling thread. Each task must restore the floating-point mode of the host's thread that runs the task. */

#include "check.h"

#include <stdlib.h>

#ifdef __x86_64__
#include <xmmintrin.h>

typedef unsigned mode;

/* Control bits of the register MXCSR: flush-to-zero, the rounding mode, the masks of exceptions, and
 * denormals-are-zero. The mask CONTROL selects all control bits of MXCSR, but not its status flags of
 * exceptions. */
enum { FLUSH = 0x8000, TO_ZERO = 0x6000, UP = 0x4000, DOWN = 0x2000, MASKED = 0x1f80, DENORMALS = 0x0040, CONTROL = 0xffc0 };

static const mode MODES[] = {
    MASKED,
    MASKED | FLUSH,
    MASKED | DENORMALS,
    MASKED | FLUSH | DENORMALS | TO_ZERO,
    MASKED | UP,
    MASKED | DOWN,
    0, /* all exceptions are unmasked, so each one traps */
};

static mode current_mode(void) {
  return _mm_getcsr() & CONTROL;
}

static void set_mode(mode mode) {
  _mm_setcsr(mode);
}
#else
#include <fenv.h>

typedef int mode;

static const mode MODES[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};

static mode current_mode(void) {
  return fegetround();
}

static void set_mode(mode mode) {
  fesetround(mode);
}
#endif

/* A reduction of two numbers, and its result in the default floating-point mode. Another mode may change
 * the result. */
typedef struct sensitive {
  const char *reason;
  uint8_t code, bits;
  int32_t reduction;
  uint64_t data, update, expected;
} sensitive;

static const sensitive SENSITIVE[] = {
    {"float32: subnormals add", kDLFloat, 32, ADD, 0x00000001, 0x00000001, 0x00000002},
    {"float32: a product becomes subnormal", kDLFloat, 32, MUL, 0x00800000, 0x3f000000, 0x00400000},
    {"float32: a subnormal is less than another", kDLFloat, 32, MIN, 0x00000002, 0x00000001, 0x00000001},
    {"float32: a subnormal is more than zero", kDLFloat, 32, MAX, 0x00000000, 0x00000001, 0x00000001},
    {"float32: 1 + 3/4 ulp", kDLFloat, 32, ADD, 0x3f800000, 0x33c00000, 0x3f800001},
    {"float32: 1 + 1/4 ulp", kDLFloat, 32, ADD, 0x3f800000, 0x33000000, 0x3f800000},
    {"float32: -1 - 1/4 ulp", kDLFloat, 32, SUB, 0xbf800000, 0x33000000, 0xbf800000},
    {"float32: 3 * 0.1", kDLFloat, 32, MUL, 0x40400000, 0x3dcccccd, 0x3e99999a},
    {"float32: the mean of two subnormals", kDLFloat, 32, MEAN, 0x00000003, 0x00000001, 0x00000002},
    {"float64: subnormals add", kDLFloat, 64, ADD, 1, 1, 2},
    {"float64: 1 + 3/4 ulp", kDLFloat, 64, ADD, 0x3ff0000000000000, 0x3ca8000000000000, 0x3ff0000000000001},
    {"float64: 1 + 1/4 ulp", kDLFloat, 64, ADD, 0x3ff0000000000000, 0x3c90000000000000, 0x3ff0000000000000},
    {"float16: subnormals add", kDLFloat, 16, ADD, 1, 1, 2},
    {"float16: 1 + 3/4 ulp", kDLFloat, 16, ADD, 0x3c00, 0x1200, 0x3c01},
    {"float16: 1 + 1/4 ulp", kDLFloat, 16, ADD, 0x3c00, 0x0c00, 0x3c00},
    {"bfloat16: subnormals add", kDLBfloat, 16, ADD, 1, 1, 2},
    {"bfloat16: 1 + 3/4 ulp", kDLBfloat, 16, ADD, 0x3f80, 0x3bc0, 0x3f81},
    {"bfloat16: 1 + 1/4 ulp", kDLBfloat, 16, ADD, 0x3f80, 0x3b00, 0x3f80},
    {"complex64: subnormals add", kDLComplex, 64, ADD, 0x0000000100000001, 0x0000000100000001, 0x0000000200000002},
    {"moved bytes are not interpreted", kDLFloat, 32, NONE, 0x00000001, 0x7fa00001, 0x7fa00001},
};

/* Rows are longer than a vector register, so the vector loops and the scalar remainder of a kernel run. */
enum { COLUMNS = 37 };

static void fill(uint8_t *row, size_t size, uint64_t value) {
  for (size_t i = 0; i < COLUMNS * size; i++) {
    row[i] = (uint8_t)(value >> (8 * (i % size)));
  }
}

static void check_sensitive(const sensitive *s) {
  _Alignas(16) uint8_t data[COLUMNS * 8], update[COLUMNS * 8], expected[COLUMNS * 8];
  size_t size = s->bits / 8u;
  fill(data, size, s->data);
  fill(update, size, s->update);
  fill(expected, size, s->expected);
  const int64_t index[] = {0};
  DLDataType type = TYPE(s->code, s->bits);
  DLTensor shape = TENSOR(data, type, 1, COLUMNS);
  problem p = {
      .operator_ = SCATTER_ND,
      .data = shape,
      .indices = TENSOR(index, I64, 1, 1),
      .updates = TENSOR(update, type, 1, COLUMNS),
      .options = OPTIONS(.reduction = s->reduction),
  };
  check_everywhere(&p, &shape, expected);
}

static void small_calls(mode caller) {
  mode before = current_mode();
  for (size_t i = 0; i < COUNT(SENSITIVE); i++) {
    set_case("mode 0x%x, %s", (unsigned)caller, SENSITIVE[i].reason);
    set_mode(caller);
    mode taken = current_mode(); /* read back, because valgrind implements only the rounding bits */
    check_sensitive(&SENSITIVE[i]);
    mode after = current_mode();
    set_mode(before);
    CHECK_INT((long long)taken, (long long)after);
  }
}

/* A call that fails must also restore the floating-point mode. */
static void failing_call(mode caller) {
  mode before = current_mode();
  base base;
  make_base(&base, SCATTER_ND);
  base.indices[0] = 99;
  set_mode(caller);
  mode taken = current_mode();
  nds_status status = call(&base.problem, &base.output);
  mode after = current_mode();
  set_mode(before);
  CHECK_INT(NDS_INDEX_OUT_OF_BOUNDS, status);
  CHECK_INT((long long)taken, (long long)after);
}

static mode mode_of_hosts;
static _Thread_local mode taken_by_thread;

static void take_mode(void) {
  set_mode(mode_of_hosts);
  taken_by_thread = current_mode();
}

static void expect_mode(void) {
  mode after = current_mode();
  set_mode(MODES[0]);
  CHECK_INT((long long)taken_by_thread, (long long)after);
}

/* Adds the updates of a large scatter on the threads of the library's pool or of a host's pool, and
 * compares the output with `expected`. */
static void large_call(large *large, const void *expected, mode caller, bool on_host) {
  host host = make_host(on_pthreads, 3);
  host.before = take_mode;
  host.after = expect_mode;
  mode_of_hosts = caller;
  large->problem.options = OPTIONS(.reduction = ADD, .pool = on_host ? pool_of(&host) : NULL);
  memset(large->output.data, 0x5a, large->bytes);
  mode before = current_mode();
  set_mode(caller);
  mode taken = current_mode();
  nds_status status = call(&large->problem, &large->output);
  mode after = current_mode();
  set_mode(before);
  set_case("mode 0x%x, %s", (unsigned)caller, on_host ? "threads of the host" : "threads of the library");
  CHECK_OK(status);
  CHECK(!on_host || host.calls > 0);
  CHECK_INT((long long)taken, (long long)after);
  CHECK_BYTES(expected, large->output.data, large->bytes);
}

static void large_calls(void) {
  large large;
  make_large(&large, SCATTER_ND);
  float *updates = large.updates;
  for (size_t i = 0; i < 1000; i++) {
    updates[i * 7] = 1e-40f * (float)(i + 1); /* some of these values are subnormal */
  }
  large.problem.options = OPTIONS(.reduction = ADD, .max_threads = 1);
  CHECK_OK(call(&large.problem, &large.output));
  void *expected = allocate(large.bytes);
  memcpy(expected, large.output.data, large.bytes);
  for (size_t i = 0; i < COUNT(MODES); i++) {
    large_call(&large, expected, MODES[i], false);
    large_call(&large, expected, MODES[i], true);
  }
  free(expected);
  free_large(&large);
}

void test_floats(void) {
  for (size_t i = 0; i < COUNT(MODES); i++) {
    small_calls(MODES[i]);
    failing_call(MODES[i]);
  }
  large_calls();
}
