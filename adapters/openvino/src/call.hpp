// A call of ndscatter's C interface with OpenVINO's tensors, threads and exceptions.
//
// This file does not know OpenVINO's operators.

#pragma once

#include <ndscatter.h>

#include <openvino/core/except.hpp>
#include <openvino/runtime/tensor.hpp>
#include <vector>

namespace ndscatter {

// Whether ndscatter supports an element type.
bool supports(ov::element::Type type);

// The description of a tensor for the C interface. The tensor must outlive the description.
class Described {
public:
    explicit Described(const ov::Tensor& tensor);
    Described(const Described&) = delete;
    Described& operator=(const Described&) = delete;

    DLTensor* get() { return &m_tensor; }

private:
    std::vector<int64_t> m_shape, m_strides;
    DLTensor m_tensor{};
};

// The options of a call that runs on the threads of OpenVINO.
class Options {
public:
    explicit Options(int32_t reduction);
    Options(const Options&) = delete;
    Options& operator=(const Options&) = delete;

    nds_options* operator->() { return &m_options; }
    const nds_options* get() const { return &m_options; }

private:
    nds_pool m_pool{};
    nds_options m_options{};
};

// Reads the only element of a tensor of integers. Returns false if the tensor has another type or size.
bool read_scalar(const ov::Tensor& tensor, int64_t& value);

// Returns whether a call has run. Returns false if ndscatter does not support the call. Throws an exception
// with the message of ndscatter if the call failed.
bool done(nds_status status);

// Whether ndscatter supports the element types of all tensors.
bool supports(const ov::TensorVector& tensors);

}  // namespace ndscatter
