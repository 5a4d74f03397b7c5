/* Clears the flag RTLD_DEEPBIND of dlopen. TBB sets this flag, and AddressSanitizer refuses it. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlopen(const char *file, int mode) {
    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return next(file, mode & ~RTLD_DEEPBIND);
}
