// The entry point of the extension: the operators that it replaces while OpenVINO reads a model.
//
// This file knows how OpenVINO reads IR and ONNX models, and which operators stay with OpenVINO.

#include <openvino/core/extension.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/constant.hpp>

#include <limits>

#include "operators.hpp"
#include "tensor_scatter.hpp"

namespace ndscatter {
namespace {

// The smallest number of bytes of data and updates for which ndscatter runs a node with dynamic shapes. The CPU
// plugin clones such a node for each inference, because it does not know how to infer the shape of an
// extension's node. This takes 6 us on a Zen 5 (bench/run.py --small).
constexpr size_t DYNAMIC_BYTES = size_t{1} << 20;

// Returns the largest number of bytes that a tensor can have.
size_t most_bytes(const ov::Output<ov::Node>& tensor) {
    constexpr size_t most = std::numeric_limits<size_t>::max();
    const auto& shape = tensor.get_partial_shape();
    size_t bytes = tensor.get_element_type().is_dynamic() ? sizeof(float) : tensor.get_element_type().size();
    if (shape.rank().is_dynamic()) {
        return most;
    }
    for (const auto& size : shape) {
        const auto length = static_cast<size_t>(size.get_max_length());
        if (size.get_max_length() < 0 || (length != 0 && bytes > most / length)) {
            return most;
        }
        bytes *= length;
    }
    return bytes;
}

// Whether ndscatter runs a node of OpenVINO.
template <class Rules>
bool is_replaced(ov::Node& node) {
    const auto type = node.get_input_element_type(0);
    if (!type.is_dynamic() && !supports(type)) {
        return false;
    }
    // A vector of integers can be a shape. OpenVINO computes shapes while it compiles a model, and its passes
    // look for OpenVINO's own operators.
    const bool may_be_shape = type == ov::element::i64 || type == ov::element::i32;
    const auto rank = node.get_input_partial_shape(0).rank();
    if (may_be_shape && rank.is_static() && rank.get_length() <= 1) {
        return false;
    }
    bool is_static = true;
    size_t bytes = 0;
    for (const auto& tensor : Rules::moved(node)) {
        is_static = is_static && tensor.get_partial_shape().is_static();
        const size_t most = most_bytes(tensor);
        bytes = most > std::numeric_limits<size_t>::max() - bytes ? std::numeric_limits<size_t>::max() : bytes + most;
    }
    return bytes >= (is_static ? Rules::static_bytes : DYNAMIC_BYTES);
}

// Returns the node that computes the operator `builtin` of OpenVINO: the same node, or a node of ndscatter.
template <class Rules, class Builtin>
std::shared_ptr<ov::Node> replacement(const std::shared_ptr<Builtin>& builtin) {
    if (!is_replaced<Rules>(*builtin)) {
        return builtin;
    }
    const auto inputs = builtin->input_values();
    // Older versions of an operator have no attributes. They are the newest version with its defaults.
    if constexpr (std::is_same_v<Builtin, typename Rules::Base>) {
        return std::make_shared<Operator<Rules>>(inputs, *builtin);
    } else {
        return std::make_shared<Operator<Rules>>(inputs, typename Rules::Base());
    }
}

// Answers for an operator of OpenVINO while an IR model is read. OpenVINO asks extensions first.
template <class Rules, class Builtin = typename Rules::Base>
class Replaced : public ov::BaseOpExtension {
public:
    // `name` and `opset` name the operator in a model.
    Replaced(const char* name, const char* opset) : m_info(name, opset) {}

    const ov::DiscreteTypeInfo& get_type_info() const override { return m_info; }

    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }

    ov::OutputVector create(const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        const auto builtin = std::make_shared<Builtin>();
        builtin->set_arguments(inputs);
        if (builtin->visit_attributes(visitor)) {
            builtin->constructor_validate_and_infer_types();
        }
        return replacement<Rules>(builtin)->outputs();
    }

private:
    ov::DiscreteTypeInfo m_info;
};

template <class Reduction>
Reduction reduction_of(const ov::frontend::NodeContext& node) {
    const auto name = node.get_attribute<std::string>("reduction", "none");
    if (name == "none") return Reduction::NONE;
    if (name == "add") return Reduction::SUM;
    if (name == "mul") return Reduction::PROD;
    if (name == "min") return Reduction::MIN;
    if (name == "max") return Reduction::MAX;
    OPENVINO_THROW("ndscatter: ", node.get_op_type(), " has the unknown reduction ", name);
}

ov::OutputVector scatter_nd(const ov::frontend::NodeContext& node) {
    using Builtin = NdUpdate::Base;
    const auto reduction = reduction_of<Builtin::Reduction>(node);
    return replacement<NdUpdate>(std::make_shared<Builtin>(node.get_input(0), node.get_input(1), node.get_input(2), reduction))->outputs();
}

ov::OutputVector scatter_elements(const ov::frontend::NodeContext& node) {
    using Builtin = ElementsUpdate::Base;
    const auto reduction = reduction_of<Builtin::Reduction>(node);
    const auto axis = ov::op::v0::Constant::create(ov::element::i64, ov::Shape{}, {node.get_attribute<int64_t>("axis", 0)});
    return replacement<ElementsUpdate>(std::make_shared<Builtin>(node.get_input(0), node.get_input(1), node.get_input(2), axis, reduction))->outputs();
}

ov::OutputVector gather_nd(const ov::frontend::NodeContext& node) {
    const auto batch_dims = node.get_attribute<int64_t>("batch_dims", 0);
    return replacement<GatherNd>(std::make_shared<GatherNd::Base>(node.get_input(0), node.get_input(1), batch_dims))->outputs();
}

ov::OutputVector gather_elements(const ov::frontend::NodeContext& node) {
    const auto axis = node.get_attribute<int64_t>("axis", 0);
    return replacement<GatherElements>(std::make_shared<GatherElements::Base>(node.get_input(0), node.get_input(1), axis))->outputs();
}

ov::OutputVector tensor_scatter(const ov::frontend::NodeContext& node) {
    ov::OutputVector inputs;
    for (size_t input = 0; input < node.get_input_size(); input++) {
        // An optional input with an empty name is a `NullNode`.
        const auto found = node.get_input(static_cast<int>(input));
        if (std::string(found.get_node()->get_type_name()) != "NullNode") {
            inputs.push_back(found);
        }
    }
    const auto mode = node.get_attribute<std::string>("mode", "linear");
    return std::make_shared<TensorScatter>(inputs, node.get_attribute<int64_t>("axis", -2), mode)->outputs();
}

std::vector<ov::Extension::Ptr> extensions() {
    namespace op = ov::op;
    using Onnx = ov::frontend::onnx::ConversionExtension;
    return {
        std::make_shared<Replaced<NdUpdate, op::v3::ScatterNDUpdate>>("ScatterNDUpdate", "opset3"),
        std::make_shared<Replaced<NdUpdate, op::v3::ScatterNDUpdate>>("ScatterNDUpdate", "opset4"),
        std::make_shared<Replaced<NdUpdate>>("ScatterNDUpdate", "opset15"),
        std::make_shared<Replaced<Update>>("ScatterUpdate", "opset3"),
        std::make_shared<Replaced<ElementsUpdate, op::v3::ScatterElementsUpdate>>("ScatterElementsUpdate", "opset3"),
        std::make_shared<Replaced<ElementsUpdate>>("ScatterElementsUpdate", "opset12"),
        std::make_shared<Replaced<GatherNd>>("GatherND", "opset8"),
        std::make_shared<Replaced<GatherElements>>("GatherElements", "opset6"),
        // The operators of models that were saved or cached after the replacement.
        std::make_shared<Replaced<NdUpdate>>(NdUpdate::name, "ndscatter"),
        std::make_shared<Replaced<Update>>(Update::name, "ndscatter"),
        std::make_shared<Replaced<ElementsUpdate>>(ElementsUpdate::name, "ndscatter"),
        std::make_shared<Replaced<GatherNd>>(GatherNd::name, "ndscatter"),
        std::make_shared<Replaced<GatherElements>>(GatherElements::name, "ndscatter"),
        std::make_shared<ov::OpExtension<TensorScatter>>(),
        std::make_shared<Onnx>("ScatterND", scatter_nd),
        std::make_shared<Onnx>("ScatterElements", scatter_elements),
        std::make_shared<Onnx>("Scatter", scatter_elements),
        std::make_shared<Onnx>("TensorScatter", tensor_scatter),
        std::make_shared<Onnx>("GatherND", gather_nd),
        std::make_shared<Onnx>("GatherElements", gather_elements),
    };
}

}  // namespace
}  // namespace ndscatter

OPENVINO_CREATE_EXTENSIONS(ndscatter::extensions())
