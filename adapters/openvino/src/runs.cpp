#include "runs.hpp"

#include <openvino/core/extension.hpp>

#include <cstring>

namespace ndscatter {

Runs runs[6] = {{"ScatterNDUpdate"}, {"ScatterUpdate"}, {"ScatterElementsUpdate"}, {"GatherND"}, {"GatherElements"}, {"TensorScatter"}};

}  // namespace ndscatter

// Returns the number of successful runs of an operator, and 0 for a name that is not an operator.
extern "C" OPENVINO_CORE_EXPORTS uint64_t ndscatter_openvino_runs(const char* name) {
    for (const auto& entry : ndscatter::runs) {
        if (name && std::strcmp(entry.name, name) == 0) {
            return entry.count.load(std::memory_order_relaxed);
        }
    }
    return 0;
}
