// TensorScatter-24 of ONNX, which OpenVINO does not have.

#pragma once

#include <openvino/op/op.hpp>

#include "runs.hpp"

namespace ndscatter {

// Writes rows into a cache. The inputs are the cache, the rows, and optionally the position of the first row of
// each sequence. The output has the type and the shape of the cache.
class TensorScatter : public ov::op::Op {
public:
    OPENVINO_OP("ndscatter.TensorScatter", "ndscatter");

    TensorScatter() = default;
    TensorScatter(const ov::OutputVector& inputs, int64_t axis, const std::string& mode);

    void validate_and_infer_types() override;
    bool visit_attributes(ov::AttributeVisitor& visitor) override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    bool has_evaluate() const override { return true; }
    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

private:
    static inline Runs runs{"TensorScatter"};
    int64_t m_axis = -2;
    // "linear" or "circular".
    std::string m_mode = "linear";
};

}  // namespace ndscatter
