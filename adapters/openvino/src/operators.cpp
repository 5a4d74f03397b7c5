#include "operators.hpp"

#include <algorithm>

namespace ndscatter {

nds_status NdUpdate::run(const Base& node, const ov::TensorVector& inputs, DLTensor* output) {
    static_assert(static_cast<int>(Base::Reduction::NONE) == 0 && static_cast<int>(Base::Reduction::SUM) == 1 &&
                      static_cast<int>(Base::Reduction::SUB) == 2 && static_cast<int>(Base::Reduction::PROD) == 3 &&
                      static_cast<int>(Base::Reduction::MIN) == 4 && static_cast<int>(Base::Reduction::MAX) == 5,
                  "the numbers are those of nds_options");
    Options options(static_cast<int32_t>(node.get_reduction()));
    Described data(inputs[0]), indices(inputs[1]), updates(inputs[2]);
    return nds_scatter_nd(data.get(), indices.get(), updates.get(), output, options.get());
}

nds_status Update::run(const Base&, const ov::TensorVector& inputs, DLTensor* output) {
    Options options(0);
    // OpenVINO's specification and its kernel refuse negative indices.
    options->forbid_negative = 1;
    Described data(inputs[0]), indices(inputs[1]), updates(inputs[2]);
    int64_t axis;
    if (!read_scalar(inputs[3], axis)) {
        return NDS_UNSUPPORTED;
    }
    return nds_scatter_update(data.get(), indices.get(), updates.get(), axis, output, options.get());
}

namespace {

int32_t number_of(ElementsUpdate::Base::Reduction reduction) {
    using Reduction = ElementsUpdate::Base::Reduction;
    switch (reduction) {
        case Reduction::NONE: return 0;
        case Reduction::SUM: return 1;
        case Reduction::PROD: return 3;
        case Reduction::MIN: return 4;
        case Reduction::MAX: return 5;
        case Reduction::MEAN: return 6;
    }
    OPENVINO_THROW("ndscatter: unknown reduction");
}

}  // namespace

void ElementsUpdate::copy_attributes(const Base& from, Base& to) {
    to.set_reduction(from.get_reduction());
    to.set_use_init_val(from.get_use_init_val());
}

nds_status ElementsUpdate::run(const Base& node, const ov::TensorVector& inputs, DLTensor* output) {
    Options options(number_of(node.get_reduction()));
    options->exclude_self = !node.get_use_init_val();
    Described data(inputs[0]), indices(inputs[1]), updates(inputs[2]);
    int64_t axis;
    if (!read_scalar(inputs[3], axis)) {
        return NDS_UNSUPPORTED;
    }
    return nds_scatter_elements(data.get(), indices.get(), updates.get(), axis, output, options.get());
}

ov::Shape GatherNd::output_shape(const Base& node, const ov::TensorVector& inputs) {
    const auto& data = inputs[0].get_shape();
    ov::Shape shape = inputs[1].get_shape();
    OPENVINO_ASSERT(!shape.empty(), "ndscatter: the indices of GatherND must have at least one axis");
    const size_t indexed = node.get_batch_dims() + shape.back();
    shape.pop_back();
    shape.insert(shape.end(), data.begin() + std::min(indexed, data.size()), data.end());
    return shape;
}

nds_status GatherNd::run(const Base& node, const ov::TensorVector& inputs, DLTensor* output) {
    Options options(0);
    Described data(inputs[0]), indices(inputs[1]);
    return nds_gather_nd(data.get(), indices.get(), static_cast<int64_t>(node.get_batch_dims()), output, options.get());
}

nds_status GatherElements::run(const Base& node, const ov::TensorVector& inputs, DLTensor* output) {
    Options options(0);
    Described data(inputs[0]), indices(inputs[1]);
    return nds_gather_elements(data.get(), indices.get(), node.get_axis(), output, options.get());
}

}  // namespace ndscatter
