// The number of runs of each operator on ndscatter's kernels, since the process began.

#pragma once

#include <atomic>
#include <cstdint>

namespace ndscatter {

// The counter of one operator, a static variable. The constructor adds the counter to the list of all counters,
// while the dynamic linker loads the library.
class Runs {
public:
    // `name` is the name of the operator in OpenVINO. TensorScatter is an operator of ONNX.
    explicit Runs(const char* name) : m_name(name), m_next(first) { first = this; }
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;

    void add() { m_count.fetch_add(1, std::memory_order_relaxed); }

    // Returns the number of runs of an operator, and 0 for a name that is not an operator.
    static uint64_t of(const char* name);

private:
    static inline Runs* first = nullptr;

    const char* m_name;
    Runs* m_next;
    std::atomic<uint64_t> m_count{0};
};

}  // namespace ndscatter
