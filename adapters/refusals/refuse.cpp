// A library for LD_PRELOAD that makes memory allocations of one shared library fail.
//
// Only allocations whose caller lies in the watched library fail. The allocations of Python, numpy and the runtimes
// succeed, because these programs end if an allocation fails. An allocation of any thread counts, so that the threads of a
// pool are covered.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <link.h>
#include <new>

// The allocator of the C library, which also exports its functions under these names.
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
}

namespace {

// Addresses of the code of the watched library.
uintptr_t first_address = 0, end_address = 0;
// The allocation that fails: 1 is the next one. 0: no allocation fails.
std::atomic<unsigned long> countdown{0}, refused{0};
std::atomic<bool> and_all_that_follow{false};

int watch_if_named(dl_phdr_info *info, size_t, void *name) {
    if (strstr(info->dlpi_name, static_cast<const char *>(name)) == nullptr) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto &part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) {
            first_address = info->dlpi_addr + part.p_vaddr;
            end_address = first_address + part.p_memsz;
        }
    }
    return 1;
}

bool refuses(const void *caller) {
    const auto address = reinterpret_cast<uintptr_t>(caller);
    if (countdown == 0 || address < first_address || address >= end_address) {
        return false;
    }
    unsigned long left = countdown;
    while (left > 1 && !countdown.compare_exchange_weak(left, left - 1)) {
    }
    if (left != 1) {
        return false;
    }
    if (!and_all_that_follow && !countdown.compare_exchange_strong(left, 0)) {
        return false;
    }
    refused++;
    errno = ENOMEM;
    return true;
}

}  // namespace

#define REFUSES refuses(__builtin_return_address(0))

extern "C" {

// Watches the loaded library whose path contains `name`. Returns 0 if there is none.
int refusals_watch(const char *name) {
    return dl_iterate_phdr(watch_if_named, const_cast<char *>(name));
}

// Makes allocation number `number` fail, counted from now. With `follow`, all later allocations fail too.
void refusals_start(unsigned long number, int follow) {
    refused = 0;
    and_all_that_follow = follow != 0;
    countdown = number;
}

// Ends the failures. Returns how many allocations have failed.
unsigned long refusals_stop(void) {
    countdown = 0;
    return refused;
}

void *malloc(size_t bytes) {
    return REFUSES ? nullptr : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    return REFUSES ? nullptr : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    return REFUSES ? nullptr : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return REFUSES ? nullptr : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    void *made = REFUSES ? nullptr : __libc_memalign(alignment, bytes);
    if (made == nullptr) {
        return ENOMEM;
    }
    *memory = made;
    return 0;
}

}  // extern "C"

// C++ code does not call malloc itself.
void *operator new(size_t bytes) {
    void *made = REFUSES ? nullptr : __libc_malloc(bytes);
    if (made == nullptr) {
        throw std::bad_alloc();
    }
    return made;
}
