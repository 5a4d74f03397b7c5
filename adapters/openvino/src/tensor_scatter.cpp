#include "tensor_scatter.hpp"

#include <openvino/core/attribute_visitor.hpp>
#include <optional>

#include "call.hpp"

namespace ndscatter {

TensorScatter::TensorScatter(const ov::OutputVector& inputs, int64_t axis, const std::string& mode)
    : Op(inputs), m_axis(axis), m_mode(mode) {
    constructor_validate_and_infer_types();
}

void TensorScatter::validate_and_infer_types() {
    NODE_VALIDATION_CHECK(this, get_input_size() == 2 || get_input_size() == 3, "TensorScatter has two or three inputs");
    NODE_VALIDATION_CHECK(this, m_mode == "linear" || m_mode == "circular", "TensorScatter has the unknown mode ", m_mode);
    ov::element::Type type;
    NODE_VALIDATION_CHECK(this,
                          ov::element::Type::merge(type, get_input_element_type(0), get_input_element_type(1)),
                          "the cache and the update of TensorScatter have different types");
    NODE_VALIDATION_CHECK(this, type.is_dynamic() || supports(type), "TensorScatter does not support the type ", type);
    set_output_type(0, type, get_input_partial_shape(0));
}

bool TensorScatter::visit_attributes(ov::AttributeVisitor& visitor) {
    visitor.on_attribute("axis", m_axis);
    visitor.on_attribute("mode", m_mode);
    return true;
}

std::shared_ptr<ov::Node> TensorScatter::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    return std::make_shared<TensorScatter>(inputs, m_axis, m_mode);
}

bool TensorScatter::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
    if (!supports(inputs)) {
        return false;
    }
    outputs[0].set_shape(inputs[0].get_shape());
    Described cache(inputs[0]), update(inputs[1]), output(outputs[0]);
    std::optional<Described> positions;
    if (inputs.size() > 2) {
        positions.emplace(inputs[2]);
    }
    Options options(0);
    if (!done(nds_tensor_scatter(cache.get(), update.get(), positions ? positions->get() : nullptr, m_axis, m_mode == "circular", output.get(), options.get()))) {
        return false;
    }
    runs.add();
    return true;
}

}  // namespace ndscatter
