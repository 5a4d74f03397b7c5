// The number of runs of each operator on ndscatter's kernels, since the process began.

#pragma once

#include <atomic>
#include <cstdint>

namespace ndscatter {

struct Runs {
    // The name of the operator in OpenVINO. TensorScatter is an operator of ONNX.
    const char* name;
    std::atomic<uint64_t> count{0};
};

// One entry per operator, in the order of the enumeration.
enum class Counted { nd_update, update, elements_update, gather_nd, gather_elements, tensor_scatter };
extern Runs runs[6];

inline void count_run(Counted counted) {
    runs[static_cast<int>(counted)].count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ndscatter
