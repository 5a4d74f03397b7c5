#include "runs.hpp"

#include <openvino/core/extension.hpp>

#include <cstring>

namespace ndscatter {

uint64_t Runs::of(const char* name) {
    for (const Runs* runs = first; name && runs; runs = runs->m_next) {
        if (std::strcmp(runs->m_name, name) == 0) {
            return runs->m_count.load(std::memory_order_relaxed);
        }
    }
    return 0;
}

}  // namespace ndscatter

// Returns the number of successful runs of an operator, and 0 for a name that is not an operator.
OPENVINO_EXTENSION_C_API uint64_t ndscatter_openvino_runs(const char* name) {
    return ndscatter::Runs::of(name);
}
