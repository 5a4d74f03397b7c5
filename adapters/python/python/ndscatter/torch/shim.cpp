// Kernels of PyTorch's CPU operators in C++. A kernel passes each call either to the crate's library
// or to the kernel that PyTorch's dispatcher had before.
//
// `python -m ndscatter.torch build` compiles this file against the installed PyTorch. The file knows
// the signatures of PyTorch's operators. The package's library (src/torch) knows their rules, and
// which calls gain. The structs `Call` and `Table` are the structs of src/torch/native.rs.

#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/dlpack.h>
#include <ATen/record_function.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <tuple>

namespace {

// Before 2.14, the kernel in PyTorch's `SafeKernelFunction` has no public accessor. C++ allows the name
// of a private member in an explicit instantiation.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 14
template <c10::KernelFunction c10::SafeKernelFunction::*Member>
struct Accessor {
    friend const c10::KernelFunction& kernel_of(const c10::SafeKernelFunction& safe) { return safe.*Member; }
};
template struct Accessor<&c10::SafeKernelFunction::kernel_>;
const c10::KernelFunction& kernel_of(const c10::SafeKernelFunction&);
#else
const c10::KernelFunction& kernel_of(const c10::SafeKernelFunction& safe) { return safe.kernelFunction(); }
#endif

using at::Scalar;
using at::Tensor;
using c10::DispatchKeySet;
using c10::string_view;
using Indices = c10::List<std::optional<Tensor>>;

constexpr uint32_t ABI = 2;

// Positions in `Function::ALL` of src/torch/call.rs.
enum Function : uint32_t {
    ScatterAdd,
    ScatterReduce,
    Scatter,
    ScatterValue,
    IndexAdd,
    IndexCopy,
    IndexReduce,
    IndexPut,
    EmbeddingDenseBackward,
    IndexFill,
    FlatPut,
    Index,
    IndexSelect,
    Take,
    Gather,
};

// Why the previous kernel runs a call. Positions in `Reason::ALL` of src/torch/counts.rs.
enum Reason : uint32_t {
    Size,
    Slower,
    Dtype,
    Mask,
    Layout,
    Shape,
    Argument,
};

enum Step : uint8_t { Decide, Run, DecideAndRun };

struct Call {
    uint32_t function;
    uint8_t step;
    bool always;
    bool include_self = true;
    bool accumulate = false;
    bool is_new = false;
    uint8_t alpha_type = 1;
    double alpha = 1;
    int64_t dim = 0;
    const char* reduce = nullptr;
    size_t reduce_length = 0;
    const DLTensor* output = nullptr;
    const DLTensor* data = nullptr;
    const DLTensor* const* indices = nullptr;
    size_t indices_length = 0;
    const DLTensor* updates = nullptr;
    int64_t* shape = nullptr;
    size_t rank = 0;
};

// Number of sizes for which `Call::shape` must have room.
constexpr size_t MOST_AXES = 64;

struct Limits {
    size_t rows;
    size_t few;
    size_t many;
};

struct Table {
    uint32_t abi;
    uint32_t call_size;
    int32_t (*attempt)(Call*);
    const char* (*error)();
    void (*decline)(uint32_t function, uint32_t reason);
    const Limits* limits;
};

const Table* table = nullptr;

// Bit `n` is set if calls of operator `n` may run on the crate. If the bit ALWAYS is set, the crate
// also runs the calls that PyTorch's kernels run faster.
std::atomic<uint64_t> enabled{0};
constexpr uint64_t ALWAYS = uint64_t{1} << 63;

// A PyTorch operator with a kernel of this file.
struct Operator {
    std::string name;
    // Name of the operator in traces of PyTorch's profiler, without the name of the overload.
    std::string range;
    uint64_t bit;
    // The kernel that the dispatcher had before this file registered its kernel. The copy keeps the
    // kernel alive, even if the library that registered it is removed.
    c10::OperatorHandle handle;
    c10::KernelFunction previous;
    void (*implement)(torch::Library&, const char*);
};

// All operators, in the order of their bits. A deque, because the kernels keep pointers to items. The
// deque is never freed, because the kernels stay registered until the process ends.
std::deque<Operator>& operators = *new std::deque<Operator>;

// Counts a call that the previous kernel runs, and returns false. Each call of an enabled operator is
// counted once: here, or in `Table::attempt`.
bool decline(uint32_t function, Reason reason) {
    table->decline(function, reason);
    return false;
}

// Whether the storage of a tensor has all of its elements. A program can shrink or free a storage
// without a change of the tensors that use it.
bool has_memory(const Tensor& tensor) {
    size_t last = tensor.storage_offset();
    for (int64_t axis = 0; axis < tensor.dim(); axis++) {
        if (tensor.size(axis) == 0) {
            return true;
        }
        last += static_cast<size_t>(tensor.size(axis) - 1) * static_cast<size_t>(tensor.stride(axis));
    }
    return (last + 1) * tensor.element_size() <= tensor.storage().nbytes();
}

// Whether the strides are those of a new row-major tensor, also along axes of size 1.
bool is_row_major(const Tensor& tensor) {
    int64_t stride = 1;
    for (int64_t axis = tensor.dim() - 1; axis >= 0; axis--) {
        if (tensor.stride(axis) != stride) {
            return false;
        }
        stride *= std::max<int64_t>(tensor.size(axis), 1);
    }
    return true;
}

// Fills the description of a CPU tensor. Declines the call for a tensor that the crate does not support.
// `is_output` is whether the call writes to the tensor. Two tensors may share memory that is copied on
// the first write. For an output, this function makes the copy.
bool describe(const Call& call, const Tensor& tensor, bool is_output, DLTensor& to) {
    if (!tensor.defined() || !tensor.device().is_cpu() || tensor.layout() != at::kStrided || !tensor.has_storage() ||
        !has_memory(tensor)) {
        return decline(call.function, Layout);
    }
    switch (tensor.scalar_type()) {
        case at::kByte: to.dtype = {kDLUInt, 8, 1}; break;
        case at::kChar: to.dtype = {kDLInt, 8, 1}; break;
        case at::kShort: to.dtype = {kDLInt, 16, 1}; break;
        case at::kInt: to.dtype = {kDLInt, 32, 1}; break;
        case at::kLong: to.dtype = {kDLInt, 64, 1}; break;
        case at::kHalf: to.dtype = {kDLFloat, 16, 1}; break;
        case at::kFloat: to.dtype = {kDLFloat, 32, 1}; break;
        case at::kDouble: to.dtype = {kDLFloat, 64, 1}; break;
        case at::kBFloat16: to.dtype = {kDLBfloat, 16, 1}; break;
        case at::kBool: to.dtype = {kDLBool, 8, 1}; break;
        case at::kComplexFloat: to.dtype = {kDLComplex, 64, 1}; break;
        case at::kComplexDouble: to.dtype = {kDLComplex, 128, 1}; break;
        default: return decline(call.function, Dtype);
    }
    to.data = is_output ? tensor.mutable_data_ptr() : const_cast<void*>(tensor.const_data_ptr());
    to.device = {kDLCPU, 0};
    to.ndim = static_cast<int32_t>(tensor.dim());
    to.shape = const_cast<int64_t*>(tensor.sizes().data());
    to.strides = const_cast<int64_t*>(tensor.strides().data());
    to.byte_offset = 0;
    return true;
}

// Performs a step of a call. Returns false if the previous kernel must run the call, which is then counted.
bool attempt(Call& call, Step step) {
    call.step = step;
    const int32_t result = table->attempt(&call);
    TORCH_CHECK(result >= 0, table->error());
    return result == 1;
}

// Runs a call. While a profiler is active, the run is a range in the profiler's trace.
bool run(Call& call, const Operator& op, Step step = Run) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
    if (!callbacks.has_value()) {
        return attempt(call, step);
    }
    // The range begins after the decision, so that a call that gains nothing has no range.
    if (step == DecideAndRun && !attempt(call, Decide)) {
        return false;
    }
    at::RecordFunction range(std::move(*callbacks));
    range.before(op.range.c_str());
    return attempt(call, Run);
}

// Returns whether the crate may run calls of an operator. `state` is the value of `enabled`.
bool is_enabled(const Operator& op, uint64_t state) {
    return (state & op.bit) != 0;
}

// Whether a call of `elements` elements may run on the crate. The check comes first, so that a small
// call is passed on at little cost. `reason` is the reason that is counted for a call outside of the limits.
bool may_gain(Function function, bool has_rows, size_t elements, uint64_t state, Reason reason = Size) {
    const Limits& limits = table->limits[function];
    const bool gains = has_rows ? elements >= limits.rows : elements <= limits.few || elements >= limits.many;
    return gains || (state & ALWAYS) != 0 || decline(function, reason);
}

// As above, for a call with one index tensor. `Scattering` of src/torch/scattering.rs has the rules.
template <Function function, class Updates>
bool may_gain(const Tensor& self, int64_t dim, const Tensor& index, const Updates& updates, uint64_t state) {
    constexpr bool has_slices = function == IndexAdd || function == IndexCopy || function == IndexReduce;
    const int64_t rank = self.dim();
    bool has_rows = rank > 1 && dim != -1 && dim != rank - 1;
    size_t elements = index.numel();
    if constexpr (has_slices) {
        elements = updates.numel();
    } else {
        has_rows = has_rows && index.dim() > 0 && index.stride(-1) == 0;
    }
    // PyTorch runs calls of single elements in a tensor of rank 2 or more faster at nearly all sizes.
    return may_gain(function, has_rows, elements, state, has_rows || rank < 2 ? Size : Slower);
}

// Whether the options of a call are those of a `mean`. PyTorch divides all elements of the output by
// their numbers of updates, so the number of updates does not decide whether the crate is faster.
template <class... Rest>
bool is_mean(const Rest&...) { return false; }
bool is_mean(string_view reduce, bool) { return reduce == "mean"; }

// Options of the functions `scatter` .. `index_reduce`, which follow the updates.
void set_options(Call&) {}
void set_options(Call& call, string_view reduce) {
    call.reduce = reduce.data();
    call.reduce_length = reduce.size();
}
void set_options(Call& call, string_view reduce, bool include_self) {
    set_options(call, reduce);
    call.include_self = include_self;
}
void set_options(Call& call, const Scalar& alpha) {
    call.alpha_type = alpha.isBoolean() ? 0 : alpha.isIntegral(false) ? 1 : alpha.isFloatingPoint() ? 2 : 3;
    call.alpha = alpha.isComplex() ? 0 : alpha.toDouble();
}

// Whether a finite value is too large for a type of floats. PyTorch's `scatter` raises an error for
// such a value, and a new tensor of the value would be infinite.
bool overflows(const Scalar& value, at::ScalarType type) {
    double largest = 0;
    switch (type) {
        case at::kHalf: largest = std::numeric_limits<c10::Half>::max(); break;
        case at::kBFloat16: largest = std::numeric_limits<c10::BFloat16>::max(); break;
        case at::kFloat:
        case at::kComplexFloat: largest = std::numeric_limits<float>::max(); break;
        case at::kDouble:
        case at::kComplexDouble: largest = std::numeric_limits<double>::max(); break;
        default: return false;
    }
    const auto number = value.toComplexDouble();
    const auto is_too_large = [&](double part) { return std::abs(part) > largest && !std::isinf(part); };
    return is_too_large(number.real()) || is_too_large(number.imag());
}

// The tensors of a call with one index tensor, and their descriptions.
struct OneIndex {
    const Operator& op;
    Call call;
    DLTensor output, data, index, updates;
    const DLTensor* indices[1] = {&index};
    Tensor value;

    OneIndex(Function function, const Operator& op, uint64_t state, int64_t dim) : op(op), call{function, Decide, false} {
        call.always = (state & ALWAYS) != 0;
        call.dim = dim;
        call.indices = indices;
        call.indices_length = 1;
    }

    // Decides whether the crate runs the call. `self` is the argument of this name.
    template <class Updates>
    bool gains(const Tensor& self, const Tensor& at, const Updates& values) {
        if (!describe(call, self, false, output) || !describe(call, at, false, index)) {
            return false;
        }
        call.output = &output;
        if constexpr (std::is_same_v<Updates, Tensor>) {
            if (!describe(call, values, false, updates)) {
                return false;
            }
            call.updates = &updates;
        }
        return attempt(call, Decide);
    }

    // As `gains`, for a result of another shape than `self`. `like` has the type of the result.
    bool gains_new(int64_t (&shape)[2], int64_t (&strides)[2], const Tensor& like, const Tensor& at) {
        if (!describe(call, like, false, output) || !describe(call, like, false, updates) || !describe(call, at, false, index)) {
            return false;
        }
        output.ndim = 2;
        output.shape = shape;
        output.strides = strides;
        call.output = &output;
        call.updates = &updates;
        return attempt(call, Decide);
    }

    const Tensor& updates_of(const Tensor& values) { return values; }
    const Tensor& updates_of(const Scalar&) { return value; }

    // Runs the call. `initial` has the initial values of `to`, or is `to` itself. The output is described
    // first: if this copies its memory, an input that is a view of the output gets another address.
    template <class Updates>
    bool run(const Tensor& to, const Tensor& initial, const Tensor& at, const Updates& values) {
        if (!describe(call, to, true, output) || !describe(call, at, false, index)) {
            return false;
        }
        if constexpr (std::is_same_v<Updates, Scalar>) {
            // PyTorch's kernel raises the error for a value that the type does not have.
            if ((values.isComplex() && !to.is_complex()) || overflows(values, to.scalar_type())) {
                return decline(call.function, Argument);
            }
            try {
                value = at::detail::scalar_tensor_static(values, to.scalar_type(), at::kCPU);
            } catch (const std::exception&) {
                return decline(call.function, Argument);
            }
        }
        if (!describe(call, updates_of(values), false, updates)) {
            return false;
        }
        call.updates = &updates;
        if (!initial.is_same(to)) {
            if (!describe(call, initial, false, data)) {
                return false;
            }
            call.data = &data;
        }
        return ::run(call, op);
    }
};

Tensor new_tensor(at::IntArrayRef shape, const Tensor& like) {
    return at::detail::empty_cpu(shape, like.options().memory_format(std::nullopt));
}

// The kernels of the three forms of a function. The functional form returns a new tensor. The form in
// place writes to `self`. The third form has an argument `out`. `Updates` is `Scalar` for `scatter` with
// a number, and `Tensor` otherwise. `Rest` are the types of the options that follow the updates.
template <Function function, class Updates, class... Rest>
struct Forms {
    static inline Operator *functional_op, *in_place_op, *out_op;

    static Tensor functional(DispatchKeySet keys, const Tensor& self, int64_t dim, const Tensor& index, const Updates& updates, Rest... rest) {
        const uint64_t state = enabled.load(std::memory_order_acquire);
        if (is_enabled(*functional_op, state) && (is_mean(rest...) || may_gain<function>(self, dim, index, updates, state))) {
            OneIndex call(function, *functional_op, state, dim);
            set_options(call.call, rest...);
            if (call.gains(self, index, updates)) {
                // The result is row-major, as PyTorch's own results are.
                Tensor result = new_tensor(self.sizes(), self);
                if (call.run(result, self, index, updates)) {
                    return result;
                }
            }
        }
        return functional_op->previous.call<Tensor, const Tensor&, int64_t, const Tensor&, const Updates&, Rest...>(
            functional_op->handle, keys, self, dim, index, updates, rest...);
    }

    static Tensor& in_place(DispatchKeySet keys, Tensor& self, int64_t dim, const Tensor& index, const Updates& updates, Rest... rest) {
        const uint64_t state = enabled.load(std::memory_order_acquire);
        if (is_enabled(*in_place_op, state) && (is_mean(rest...) || may_gain<function>(self, dim, index, updates, state))) {
            OneIndex call(function, *in_place_op, state, dim);
            set_options(call.call, rest...);
            if (call.gains(self, index, updates) && call.run(self, self, index, updates)) {
                return self;
            }
        }
        return in_place_op->previous.call<Tensor&, Tensor&, int64_t, const Tensor&, const Updates&, Rest...>(
            in_place_op->handle, keys, self, dim, index, updates, rest...);
    }

    static Tensor& out(DispatchKeySet keys, const Tensor& self, int64_t dim, const Tensor& index, const Updates& updates, Rest... rest, Tensor& to) {
        const uint64_t state = enabled.load(std::memory_order_acquire);
        // An output of another shape must be resized. The previous kernel does this.
        if (is_enabled(*out_op, state) && (is_mean(rest...) || may_gain<function>(self, dim, index, updates, state)) &&
            (to.sizes() == self.sizes() || decline(function, Shape))) {
            OneIndex call(function, *out_op, state, dim);
            set_options(call.call, rest...);
            if (call.gains(self, index, updates) && call.run(to, self, index, updates)) {
                return to;
            }
        }
        return out_op->previous.call<Tensor&, const Tensor&, int64_t, const Tensor&, const Updates&, Rest..., Tensor&>(
            out_op->handle, keys, self, dim, index, updates, rest..., to);
    }
};

// The index tensors of `index_put` and `index`, and their descriptions.
struct ListOfIndices {
    // A call with more index tensors runs on the previous kernel.
    static constexpr size_t MOST = 8;
    // Null for an axis without an index. The list of the caller keeps the tensors alive.
    const Tensor* tensors[MOST];
    DLTensor described[MOST];
    const DLTensor* pointers[MOST];
    size_t length = 0;

    // Reads the index tensors. Declines the call if the crate does not support one of them, or if the
    // call is outside of the limits.
    bool read(Function function, const Tensor& self, const Indices& indices, uint64_t state) {
        if (indices.size() > MOST || indices.size() > static_cast<size_t>(self.dim())) {
            return decline(function, Shape);
        }
        size_t axis = 0, count = 0, indexed = 1;
        for (auto item = indices.begin(); item != indices.end(); ++item, ++axis) {
            // `indices.get(axis)` would copy the tensor, and count the copy.
            const c10::IValue& value = (*item).get();
            const Tensor* index = value.isTensor() && value.toTensor().defined() ? &value.toTensor() : nullptr;
            tensors[axis] = index;
            if (index != nullptr) {
                const at::ScalarType type = index->scalar_type();
                if (type != at::kLong && type != at::kInt) {
                    return decline(function, type == at::kBool || type == at::kByte ? Mask : Dtype);
                }
                count = std::max(count, static_cast<size_t>(index->numel()));
                indexed *= static_cast<size_t>(self.size(axis));
            }
        }
        const size_t slice = static_cast<size_t>(self.numel()) / std::max<size_t>(indexed, 1);
        if (!may_gain(function, slice > 1, count * slice, state)) {
            return false;
        }
        length = indices.size();
        return true;
    }

    // Fills `call` after `read`. Declines the call if the crate does not support an index tensor.
    bool fill(Call& call) {
        for (size_t axis = 0; axis < length; axis++) {
            pointers[axis] = nullptr;
            if (tensors[axis] != nullptr) {
                pointers[axis] = &described[axis];
                if (!describe(call, *tensors[axis], false, described[axis])) {
                    return false;
                }
            }
        }
        call.indices = pointers;
        call.indices_length = length;
        return true;
    }

    // Whether all index tensors are row-major.
    bool are_row_major() const {
        return std::all_of(tensors, tensors + length, [](const Tensor* tensor) {
            return tensor == nullptr || is_row_major(*tensor);
        });
    }
};

Operator* index_put_op;

Tensor& index_put(DispatchKeySet keys, Tensor& self, const Indices& indices, const Tensor& values, bool accumulate, bool unsafe) {
    const uint64_t state = enabled.load(std::memory_order_acquire);
    const Operator& op = *index_put_op;
    if (is_enabled(op, state)) {
        ListOfIndices list;
        DLTensor output, updates;
        Call call{IndexPut, DecideAndRun, (state & ALWAYS) != 0};
        call.accumulate = accumulate;
        call.output = &output;
        call.updates = &updates;
        if (list.read(IndexPut, self, indices, state) && describe(call, self, true, output) && list.fill(call) &&
            describe(call, values, false, updates) && run(call, op, DecideAndRun)) {
            return self;
        }
    }
    return op.previous.call<Tensor&, Tensor&, const Indices&, const Tensor&, bool, bool>(
        op.handle, keys, self, indices, values, accumulate, unsafe);
}

Operator* put_op;

Tensor& put(DispatchKeySet keys, Tensor& self, const Tensor& index, const Tensor& values, bool accumulate) {
    const uint64_t state = enabled.load(std::memory_order_acquire);
    const Operator& op = *put_op;
    if (is_enabled(op, state) && (accumulate || decline(FlatPut, Argument)) && may_gain(FlatPut, false, index.numel(), state)) {
        OneIndex call(FlatPut, op, state, 0);
        call.call.accumulate = accumulate;
        if (call.gains(self, index, values) && call.run(self, self, index, values)) {
            return self;
        }
    }
    return op.previous.call<Tensor&, Tensor&, const Tensor&, const Tensor&, bool>(
        op.handle, keys, self, index, values, accumulate);
}

// Returns the number of elements that a call with one index per slice moves. Returns the elements of
// the index if `self` has no axis `dim`.
size_t moved_elements(const Tensor& self, int64_t dim, const Tensor& index) {
    const int64_t rank = self.dim(), axis = dim < 0 ? dim + rank : dim;
    const int64_t size = axis >= 0 && axis < rank ? self.size(axis) : 0;
    const auto slice = static_cast<size_t>(size > 0 ? self.numel() / size : 1);
    return slice * static_cast<size_t>(index.numel());
}

// `index_fill_` with a number or a tensor of rank 0.
template <class Value>
struct IndexFills {
    static inline Operator* op;

    static Tensor& in_place(DispatchKeySet keys, Tensor& self, int64_t dim, const Tensor& index, const Value& value) {
        const uint64_t state = enabled.load(std::memory_order_acquire);
        bool fits = is_enabled(*op, state) && may_gain(IndexFill, true, moved_elements(self, dim, index), state);
        if constexpr (std::is_same_v<Value, Tensor>) {
            fits = fits && (value.dim() == 0 || decline(IndexFill, Shape));
        }
        if (fits) {
            OneIndex call(IndexFill, *op, state, dim);
            if (call.gains(self, index, value) && call.run(self, self, index, value)) {
                return self;
            }
        }
        return op->previous.call<Tensor&, Tensor&, int64_t, const Tensor&, const Value&>(
            op->handle, keys, self, dim, index, value);
    }
};

// Runs a gather on the crate. `call` has the indices. `table` describes `self`. If `to` is null, the
// result is a new tensor. Returns an undefined tensor if the previous kernel must run the call.
Tensor gather_on_crate(Call& call, const Operator& op, const Tensor& self, const Tensor* to) {
    DLTensor table, output;
    int64_t sizes[MOST_AXES];
    if (!describe(call, self, false, table)) {
        return Tensor();
    }
    call.output = &table;
    call.shape = sizes;
    if (!attempt(call, Decide)) {
        return Tensor();
    }
    const at::IntArrayRef shape(sizes, call.rank);
    // An output of another shape must be resized. The previous kernel does this.
    if (to != nullptr && (to->sizes() != shape || to->scalar_type() != self.scalar_type())) {
        decline(call.function, to->sizes() != shape ? Shape : Dtype);
        return Tensor();
    }
    const Tensor result = to != nullptr ? *to : new_tensor(shape, self);
    if (!describe(call, result, true, output)) {
        return Tensor();
    }
    call.data = &table;
    call.output = &output;
    call.is_new = to == nullptr;
    call.shape = nullptr;
    return run(call, op) ? result : Tensor();
}

Operator *index_op, *index_out_op;

Tensor index_on_crate(const Operator& op, const Tensor& self, const Indices& indices, const Tensor* to) {
    const uint64_t state = enabled.load(std::memory_order_acquire);
    ListOfIndices list;
    Call call{Index, Decide, (state & ALWAYS) != 0};
    if (!is_enabled(op, state) || !list.read(Index, self, indices, state)) {
        return Tensor();
    }
    // The strides of PyTorch's result follow those of `self` and of the index tensors. The result of the
    // crate is row-major.
    if (to == nullptr && !(is_row_major(self) && list.are_row_major())) {
        decline(Index, Layout);
        return Tensor();
    }
    return list.fill(call) ? gather_on_crate(call, op, self, to) : Tensor();
}

Tensor index(DispatchKeySet keys, const Tensor& self, const Indices& indices) {
    Tensor result = index_on_crate(*index_op, self, indices, nullptr);
    return result.defined() ? result : index_op->previous.call<Tensor, const Tensor&, const Indices&>(index_op->handle, keys, self, indices);
}

Tensor& index_out(DispatchKeySet keys, const Tensor& self, const Indices& indices, Tensor& to) {
    if (index_on_crate(*index_out_op, self, indices, &to).defined()) {
        return to;
    }
    return index_out_op->previous.call<Tensor&, const Tensor&, const Indices&, Tensor&>(index_out_op->handle, keys, self, indices, to);
}

Tensor gather_one_index(const Operator& op, Function function, const Tensor& self, int64_t dim, const Tensor& at, const Tensor* to) {
    const uint64_t state = enabled.load(std::memory_order_acquire);
    const bool has_rows = function == IndexSelect ? self.dim() > 1 : function == Gather && at.dim() > 1 && at.stride(-1) == 0;
    const size_t count = function == IndexSelect ? moved_elements(self, dim, at) : static_cast<size_t>(at.numel());
    if (!is_enabled(op, state) || !may_gain(function, has_rows, count, state)) {
        return Tensor();
    }
    OneIndex call(function, op, state, dim);
    return describe(call.call, at, false, call.index) ? gather_on_crate(call.call, op, self, to) : Tensor();
}

// The two forms of `index_select`, `take` and `gather`. `Dim` has the type of `dim`, and is empty for
// `take`. `Rest` has the type of the option `sparse_grad` of `gather`. The result does not depend on
// this option.
template <Function function, class Dim, class Rest>
struct Gathers;

template <Function function, class... Dim, class... Rest>
struct Gathers<function, std::tuple<Dim...>, std::tuple<Rest...>> {
    static inline Operator *functional_op, *out_op;

    static int64_t axis() { return 0; }
    static int64_t axis(int64_t dim) { return dim; }

    static Tensor functional(DispatchKeySet keys, const Tensor& self, Dim... dim, const Tensor& index, Rest... rest) {
        Tensor result = gather_one_index(*functional_op, function, self, axis(dim...), index, nullptr);
        return result.defined() ? result : functional_op->previous.call<Tensor, const Tensor&, Dim..., const Tensor&, Rest...>(
            functional_op->handle, keys, self, dim..., index, rest...);
    }

    static Tensor& out(DispatchKeySet keys, const Tensor& self, Dim... dim, const Tensor& index, Rest... rest, Tensor& to) {
        if (gather_one_index(*out_op, function, self, axis(dim...), index, &to).defined()) {
            return to;
        }
        return out_op->previous.call<Tensor&, const Tensor&, Dim..., const Tensor&, Rest..., Tensor&>(
            out_op->handle, keys, self, dim..., index, rest..., to);
    }
};

Operator* embedding_op;

Tensor embedding_dense_backward(DispatchKeySet keys, const Tensor& gradient, const Tensor& indices, c10::SymInt rows, c10::SymInt padding, bool scale) {
    const uint64_t state = enabled.load(std::memory_order_acquire);
    const Operator& op = *embedding_op;
    const auto count = rows.maybe_as_int(), skipped = padding.maybe_as_int();
    if (is_enabled(op, state) && may_gain(EmbeddingDenseBackward, true, gradient.numel(), state) &&
        ((!scale && count && *count >= 0 && skipped && gradient.dim() > 0) || decline(EmbeddingDenseBackward, Argument))) {
        OneIndex call(EmbeddingDenseBackward, op, state, *skipped);
        int64_t shape[2] = {*count, gradient.size(-1)}, strides[2] = {gradient.size(-1), 1};
        if (call.gains_new(shape, strides, gradient, indices)) {
            Tensor result = new_tensor(shape, gradient);
            if (call.run(result, result, indices, gradient)) {
                return result;
            }
        }
    }
    return op.previous.call<Tensor, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, bool>(
        op.handle, keys, gradient, indices, rows, padding, scale);
}

template <auto Kernel>
void implement(torch::Library& library, const char* name) {
    library.impl(name, c10::CompileTimeFunctionPointer<std::remove_pointer_t<decltype(Kernel)>, Kernel>());
}

// Adds an operator to the list. Its kernel is registered later.
template <auto Kernel>
Operator* add(const std::string& name, const std::string& overload) {
    auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str());
    c10::KernelFunction previous = kernel_of(handle.getComputedKernelForDispatchKey(c10::DispatchKey::CPU));
    const uint64_t bit = uint64_t{1} << operators.size();
    const std::string full = overload.empty() ? name : name + "." + overload;
    operators.push_back({full, "ndscatter::" + name, bit, handle, std::move(previous), implement<Kernel>});
    return &operators.back();
}

template <Function function, class Updates, class... Rest>
void add_forms(const std::string& name, const std::string& overload) {
    using Kernels = Forms<function, Updates, Rest...>;
    Kernels::functional_op = add<&Kernels::functional>(name, overload);
    Kernels::in_place_op = add<&Kernels::in_place>(name + "_", overload);
    Kernels::out_op = add<&Kernels::out>(name, overload.empty() ? "out" : overload + "_out");
}

template <Function function, class Dim, class Rest = std::tuple<>>
void add_gathers(const std::string& name) {
    using Kernels = Gathers<function, Dim, Rest>;
    Kernels::functional_op = add<&Kernels::functional>(name, "");
    Kernels::out_op = add<&Kernels::out>(name, "out");
}

void add_all() {
    add_forms<ScatterAdd, Tensor>("scatter_add", "");
    add_forms<ScatterReduce, Tensor, string_view, bool>("scatter_reduce", "two");
    add_forms<Scatter, Tensor>("scatter", "src");
    add_forms<Scatter, Tensor, string_view>("scatter", "reduce");
    add_forms<ScatterValue, Scalar>("scatter", "value");
    add_forms<ScatterValue, Scalar, string_view>("scatter", "value_reduce");
    add_forms<IndexAdd, Tensor, const Scalar&>("index_add", "");
    add_forms<IndexCopy, Tensor>("index_copy", "");
    add_forms<IndexReduce, Tensor, string_view, bool>("index_reduce", "");
    index_put_op = add<&index_put>("_index_put_impl_", "");
    put_op = add<&put>("put_", "");
    IndexFills<Scalar>::op = add<&IndexFills<Scalar>::in_place>("index_fill_", "int_Scalar");
    IndexFills<Tensor>::op = add<&IndexFills<Tensor>::in_place>("index_fill_", "int_Tensor");
    index_op = add<&index>("index", "Tensor");
    index_out_op = add<&index_out>("index", "Tensor_out");
    add_gathers<IndexSelect, std::tuple<int64_t>>("index_select");
    add_gathers<Take, std::tuple<>>("take");
    add_gathers<Gather, std::tuple<int64_t>, std::tuple<bool>>("gather");
    embedding_op = add<&embedding_dense_backward>("embedding_dense_backward", "");
}

// Ignores warnings. PyTorch warns if a kernel is replaced, and the replacement is intended.
struct Quiet : c10::WarningHandler {
    void process(const c10::Warning&) override {}
};

// Text of the error of `ndscatter_torch_connect`.
std::string failure;
}  // namespace

#pragma GCC visibility push(default)
extern "C" {
// Registers all kernels. Until `ndscatter_torch_switch`, they pass every call to the previous
// kernels. The kernels remain registered until the process ends: PyTorch changes its table of
// kernels without a lock, so a kernel cannot be removed while other threads call PyTorch.
// Returns null, or the text of an error. After an error, no kernel is registered.
const char* ndscatter_torch_connect(const void* functions) {
    try {
        const auto* given = static_cast<const Table*>(functions);
        TORCH_CHECK(given->abi == ABI && given->call_size == sizeof(Call), "the library is of another version of ndscatter");
        if (table != nullptr) {
            return nullptr;
        }
        operators.clear();
        add_all();
        Quiet quiet;
        c10::WarningUtils::WarningHandlerGuard guard(&quiet);
        auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
        table = given;
        for (const Operator& op : operators) {
            op.implement(*library, op.name.c_str());
        }
        library.release();
        return nullptr;
    } catch (const std::exception& error) {
        table = nullptr;
        failure = error.what();
        return failure.c_str();
    }
}

// Sets which operators run on the crate. The bits are in the order of `ndscatter_torch_operator`.
void ndscatter_torch_switch(uint64_t state) {
    enabled.store(state, std::memory_order_release);
}

// Returns the name of operator `number`, or null if there is none.
const char* ndscatter_torch_operator(size_t number) {
    return number < operators.size() ? operators[number].name.c_str() : nullptr;
}
}
#pragma GCC visibility pop
