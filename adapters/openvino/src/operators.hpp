// OpenVINO's scatters and gathers, computed by ndscatter.
//
// This file knows the operators: their inputs, attributes and rules. It does not know how a model is read.

#pragma once

#include <openvino/op/gather_elements.hpp>
#include <openvino/op/gather_nd.hpp>
#include <openvino/op/scatter_elements_update.hpp>
#include <openvino/op/scatter_nd_update.hpp>
#include <openvino/op/scatter_update.hpp>

#include "call.hpp"
#include "runs.hpp"

namespace ndscatter {

// The structs below are the rules of one operator each. `name` is the type of the node in models.
// `runs` counts the runs of the operator.
//
// A node with static shapes that moves fewer than `static_bytes` bytes stays with OpenVINO's kernel. A call of
// ndscatter takes 1 us longer, because the CPU plugin makes a tensor for each input of an extension's node.
// Measured on a Zen 5 with two threads (bench/run.py --small).

// What all scatters have in common.
struct OfScatter {
    // The tensors whose bytes a call moves.
    static ov::OutputVector moved(ov::Node& node) { return {node.input_value(0), node.input_value(2)}; }
    static ov::Shape output_shape(const ov::Node&, const ov::TensorVector& inputs) { return inputs[0].get_shape(); }
};

// What all gathers have in common.
struct OfGather {
    static ov::OutputVector moved(ov::Node& node) { return {node.output(0)}; }
};

// ScatterNDUpdate-15, and with the reduction `none` ScatterNDUpdate-4.
struct NdUpdate : OfScatter {
    using Base = ov::op::v15::ScatterNDUpdate;
    static constexpr const char* name = "ndscatter.ScatterNDUpdate";
    static inline Runs runs{"ScatterNDUpdate"};
    static constexpr size_t static_bytes = size_t{1} << 20;
    static void copy_attributes(const Base& from, Base& to) { to.set_reduction(from.get_reduction()); }
    static nds_status run(const Base& node, const ov::TensorVector& inputs, DLTensor* output);
};

// ScatterUpdate-3.
struct Update : OfScatter {
    using Base = ov::op::v3::ScatterUpdate;
    static constexpr const char* name = "ndscatter.ScatterUpdate";
    static inline Runs runs{"ScatterUpdate"};
    static constexpr size_t static_bytes = size_t{1} << 20;
    static void copy_attributes(const Base&, Base&) {}
    static nds_status run(const Base& node, const ov::TensorVector& inputs, DLTensor* output);
};

// ScatterElementsUpdate-12, and with the reduction `none` ScatterElementsUpdate-3.
struct ElementsUpdate : OfScatter {
    using Base = ov::op::v12::ScatterElementsUpdate;
    static constexpr const char* name = "ndscatter.ScatterElementsUpdate";
    static inline Runs runs{"ScatterElementsUpdate"};
    static constexpr size_t static_bytes = size_t{128} << 10;
    static void copy_attributes(const Base& from, Base& to);
    static nds_status run(const Base& node, const ov::TensorVector& inputs, DLTensor* output);
};

// GatherND-8.
struct GatherNd : OfGather {
    using Base = ov::op::v8::GatherND;
    static constexpr const char* name = "ndscatter.GatherND";
    static inline Runs runs{"GatherND"};
    static constexpr size_t static_bytes = size_t{512} << 10;
    static ov::Shape output_shape(const Base& node, const ov::TensorVector& inputs);
    static void copy_attributes(const Base& from, Base& to) { to.set_batch_dims(from.get_batch_dims()); }
    static nds_status run(const Base& node, const ov::TensorVector& inputs, DLTensor* output);
};

// GatherElements-6.
struct GatherElements : OfGather {
    using Base = ov::op::v6::GatherElements;
    static constexpr const char* name = "ndscatter.GatherElements";
    static inline Runs runs{"GatherElements"};
    static constexpr size_t static_bytes = size_t{128} << 10;
    static ov::Shape output_shape(const Base&, const ov::TensorVector& inputs) { return inputs[1].get_shape(); }
    static void copy_attributes(const Base& from, Base& to) { to.set_axis(from.get_axis()); }
    static nds_status run(const Base& node, const ov::TensorVector& inputs, DLTensor* output);
};

// An operator of OpenVINO that runs on ndscatter. OpenVINO does not know its name. The CPU plugin therefore
// calls `evaluate`. `Rules` is one of the structs above. `Rules::Base` is OpenVINO's operator, which infers
// shapes, bounds and symbols, and visits the attributes.
template <class Rules>
class Operator : public Rules::Base {
public:
    using Base = typename Rules::Base;

    static const ov::DiscreteTypeInfo& get_type_info_static() {
        // The parent is not `Base`. A pass of OpenVINO would otherwise treat the node as OpenVINO's
        // operator, and replace it by another version of this operator.
        static const ov::DiscreteTypeInfo info = [] {
            ov::DiscreteTypeInfo made(Rules::name, "ndscatter", &ov::op::Op::get_type_info_static());
            made.hash();
            return made;
        }();
        return info;
    }
    const ov::DiscreteTypeInfo& get_type_info() const override { return get_type_info_static(); }

    Operator() = default;

    // Makes a node with the attributes of `like`.
    Operator(const ov::OutputVector& inputs, const Base& like) {
        Rules::copy_attributes(like, *this);
        this->set_arguments(inputs);
        this->constructor_validate_and_infer_types();
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
        return std::make_shared<Operator>(inputs, *this);
    }

    bool has_evaluate() const override { return supports(this->get_input_element_type(0)) || Base::has_evaluate(); }

    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
        if (supports(inputs)) {
            outputs[0].set_shape(Rules::output_shape(*this, inputs));
            Described output(outputs[0]);
            if (done(Rules::run(*this, inputs, output.get()))) {
                Rules::runs.add();
                return true;
            }
        }
        // The reference implementation of OpenVINO. OpenVINO has none for gathers.
        return Base::evaluate(outputs, inputs);
    }
};

}  // namespace ndscatter
