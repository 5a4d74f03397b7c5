#include "call.hpp"

#include <algorithm>
#include <openvino/core/parallel.hpp>

namespace ndscatter {

namespace {

// The code of an element type in DLPack, or -1.
int code_of(ov::element::Type type) {
    switch (type) {
        case ov::element::Type_t::boolean: return kDLBool;
        case ov::element::Type_t::bf16: return kDLBfloat;
        case ov::element::Type_t::f16:
        case ov::element::Type_t::f32:
        case ov::element::Type_t::f64: return kDLFloat;
        case ov::element::Type_t::i8:
        case ov::element::Type_t::i16:
        case ov::element::Type_t::i32:
        case ov::element::Type_t::i64: return kDLInt;
        case ov::element::Type_t::u8:
        case ov::element::Type_t::u16:
        case ov::element::Type_t::u32:
        case ov::element::Type_t::u64: return kDLUInt;
        default: return -1;
    }
}

// Runs tasks on the threads of OpenVINO. An exception must not cross the caller, which is not C++.
int32_t run_tasks(void*, size_t tasks, void (*task)(void*, size_t), void* argument) noexcept {
    try {
        ov::parallel_for(tasks, [&](size_t index) {
            task(argument, index);
        });
        return 0;
    } catch (...) {
        return 1;
    }
}

}  // namespace

bool supports(ov::element::Type type) {
    return code_of(type) >= 0;
}

bool supports(const ov::TensorVector& tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [](const ov::Tensor& tensor) {
        return supports(tensor.get_element_type());
    });
}

Described::Described(const ov::Tensor& tensor) {
    const auto type = tensor.get_element_type();
    for (const size_t size : tensor.get_shape()) {
        m_shape.push_back(static_cast<int64_t>(size));
    }
    for (const size_t bytes : tensor.get_strides()) {
        m_strides.push_back(static_cast<int64_t>(bytes / type.size()));
    }
    m_tensor.data = tensor.get_size() == 0 ? nullptr : const_cast<void*>(tensor.data());
    m_tensor.device = {kDLCPU, 0};
    m_tensor.ndim = static_cast<int32_t>(m_shape.size());
    m_tensor.dtype = {static_cast<uint8_t>(code_of(type)), static_cast<uint8_t>(type.bitwidth()), 1};
    m_tensor.shape = m_shape.data();
    m_tensor.strides = m_strides.data();
}

Options::Options(int32_t reduction) {
    m_pool.size = sizeof m_pool;
    // The threads of the stream in which the infer request runs.
    m_pool.workers = static_cast<uint32_t>(parallel_get_max_threads());
    m_pool.parallel_for = run_tasks;
    m_options.size = sizeof m_options;
    m_options.reduction = reduction;
    m_options.pool = &m_pool;
}

bool read_scalar(const ov::Tensor& tensor, int64_t& value) {
    if (tensor.get_size() != 1) {
        return false;
    }
    switch (tensor.get_element_type()) {
        case ov::element::Type_t::i8: value = *tensor.data<const int8_t>(); return true;
        case ov::element::Type_t::i16: value = *tensor.data<const int16_t>(); return true;
        case ov::element::Type_t::i32: value = *tensor.data<const int32_t>(); return true;
        case ov::element::Type_t::i64: value = *tensor.data<const int64_t>(); return true;
        case ov::element::Type_t::u8: value = *tensor.data<const uint8_t>(); return true;
        case ov::element::Type_t::u16: value = *tensor.data<const uint16_t>(); return true;
        case ov::element::Type_t::u32: value = *tensor.data<const uint32_t>(); return true;
        case ov::element::Type_t::u64: value = static_cast<int64_t>(*tensor.data<const uint64_t>()); return true;
        default: return false;
    }
}

bool done(nds_status status) {
    if (status == NDS_UNSUPPORTED) {
        return false;
    }
    if (status != NDS_OK) {
        OPENVINO_THROW("ndscatter: ", nds_last_error());
    }
    return true;
}

}  // namespace ndscatter
