/* The test program of the C interface.
 * It tests every function, every kind of invalid call, pools, threads, forks and floating-point modes.
 * At the first failing check, it prints a message and exits with status 1. */

#include "check.h"

#include <stdio.h>

typedef struct suite {
  const char *name;
  void (*run)(void);
} suite;

/* The first suite must run before any suite starts threads. */
static const suite SUITES[] = {
    {"fork before threads", test_fork_before_threads},
    {"operators", test_operators},
    {"reductions", test_reductions},
    {"types", test_types},
    {"layouts", test_layouts},
    {"writes", test_writes},
    {"moves", test_moves},
    {"plans", test_plans},
    {"sharding", test_sharding},
    {"bad tensors", test_bad_tensors},
    {"bad calls", test_bad_calls},
    {"bad indices", test_bad_indices},
    {"changing indices", test_changing},
    {"overlaps", test_overlaps},
    {"bad structs", test_bad_structs},
    {"last error", test_last_error},
    {"pools", test_pools},
    {"threads", test_threads},
    {"fork", test_fork},
    {"machine", test_machine},
    {"floats", test_floats},
    {"gradients", test_gradients},
    {"backward", test_backward},
};

/* Options of AddressSanitizer and ThreadSanitizer: a failed allocation returns null, as without them. The
 * children of test_fork start threads, which ThreadSanitizer does not allow by default. */
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void) {
  return "allocator_may_return_null=1:die_after_fork=0";
}

int main(void) {
  for (size_t i = 0; i < COUNT(SUITES); i++) {
    unsigned long before = checks_made();
    set_case("%s", "");
    SUITES[i].run();
    printf("%-20s %6lu checks\n", SUITES[i].name, checks_made() - before);
    fflush(stdout);
  }
  printf("%lu checks passed (ndscatter %s)\n", checks_made(), nds_version());
  return 0;
}
