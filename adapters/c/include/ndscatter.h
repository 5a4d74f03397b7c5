// The C interface of ndscatter: scatters and gathers on DLPack tensors.
//
// cbindgen generates this file from the Rust sources. docs/c.md describes how to
// build, link and call the library, and which parts of the interface later
// versions do not change.

#ifndef NDSCATTER_H
#define NDSCATTER_H

#include <stddef.h>
#include <stdint.h>

/* This header includes DLPack's header if the compiler finds DLPack's header and NDS_NO_DLPACK_HEADER is
 * not defined. This header declares DLPack's types, such as DLTensor, only if DLPack's header was not
 * included, neither by this header nor by the program before. */
#if !defined(DLPACK_DLPACK_H_) && !defined(NDS_NO_DLPACK_HEADER) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifndef DLPACK_DLPACK_H_
/* DLPack's types that this header uses, with DLPack's names and layout. */
typedef enum { kDLCPU = 1, kDLCUDAHost = 3, kDLROCMHost = 11 } DLDeviceType;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 } DLDataTypeCode;
typedef struct DLDevice {
  int32_t device_type;
  int32_t device_id;
} DLDevice;
typedef struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;
#endif

// Status code of a call of a C function. Callers must treat an unknown status as a failure.
typedef enum nds_status {
  // The call succeeded.
  NDS_OK = 0,
  // A pointer, shape, size or option is invalid, or two arguments do not fit together.
  NDS_INVALID_ARGUMENT = 1,
  // An index is out of bounds for its axis.
  NDS_INDEX_OUT_OF_BOUNDS = 2,
  // Two tuples have the same destination, and the option reject_duplicates is 1.
  NDS_DUPLICATE_INDEX = 3,
  // The call is valid, but the library does not support it: for example an element type, a
  // device, or an option that the function does not have.
  NDS_UNSUPPORTED = 4,
  // An allocation failed.
  NDS_OUT_OF_MEMORY = 5,
  // The pool of the host failed, or the library has a bug. After this status, the output may be
  // changed. After every other failure, the output is unchanged.
  NDS_INTERNAL = 6,
} nds_status;

// Values of nds_options.reduction: how an update is combined with the value at its destination.
typedef enum nds_reduction {
  // The update replaces the value. The last update of a destination stays.
  NDS_REDUCTION_NONE = 0,
  // value + update
  NDS_REDUCTION_ADD = 1,
  // value - update
  NDS_REDUCTION_SUB = 2,
  // value * update
  NDS_REDUCTION_MUL = 3,
  // The smaller of value and update, or NaN.
  NDS_REDUCTION_MIN = 4,
  // The larger of value and update, or NaN.
  NDS_REDUCTION_MAX = 5,
  // The mean of the value and all updates of a destination.
  NDS_REDUCTION_MEAN = 6,
} nds_reduction;

// Values of nds_options.bounds: treatment of an index out of bounds.
typedef enum nds_bounds {
  // The call fails. For slots of a paged cache, this value and forbid_negative 0 are
  // NDS_BOUNDS_SKIP_NEGATIVE.
  NDS_BOUNDS_ERROR = 0,
  // The tuple of the index is skipped. A gather writes zeros for this tuple.
  NDS_BOUNDS_SKIP = 1,
  // The index is clamped to the nearest valid index.
  NDS_BOUNDS_CLAMP = 2,
  // The tuple of an index below its axis is skipped. The call fails if an index is beyond the end
  // of its axis.
  NDS_BOUNDS_SKIP_NEGATIVE = 3,
} nds_bounds;

// Values of nds_options.accumulate: type in which the values of float16 and bfloat16 are
// accumulated.
typedef enum nds_accumulate {
  // The type of the elements: the value is rounded after every update.
  NDS_ACCUMULATE_NATIVE = 0,
  // float32: the value is rounded once, after all updates.
  NDS_ACCUMULATE_WIDE = 1,
} nds_accumulate;

// Values of nds_options.none_gradient: updates that receive a gradient in a scatter without a
// reduction.
typedef enum nds_none_gradient {
  // The last update of each destination. The gradients of the other updates are 0.
  NDS_NONE_GRADIENT_LAST_WRITE = 0,
  // Every update receives the gradient of its destination.
  NDS_NONE_GRADIENT_EVERY_DUPLICATE = 1,
} nds_none_gradient;

// Values of nds_options.goal: use of the pool's threads. No result depends on the goal.
typedef enum nds_goal {
  // Calls that run at the same time on the library's pool divide its threads.
  NDS_GOAL_SHARE = 0,
  // The call uses all threads that max_threads allows, also if other calls run.
  NDS_GOAL_LATENCY = 1,
  // The call runs on the calling thread.
  NDS_GOAL_THROUGHPUT = 2,
} nds_goal;

// Values of nds_conversion.format: format of the elements of data.
typedef enum nds_format {
  // The element type of data.
  NDS_FORMAT_OF_DATA = 0,
  // IEEE binary32.
  NDS_FORMAT_FLOAT32 = 1,
  // IEEE binary16.
  NDS_FORMAT_FLOAT16 = 2,
  // The upper 16 bits of a float32.
  NDS_FORMAT_BFLOAT16 = 3,
  // 8-bit float with 4 exponent bits, without infinity. Data may have the type int8 or uint8.
  NDS_FORMAT_FLOAT8_E4M3FN = 4,
  // 8-bit float with 5 exponent bits. Data may have the type int8 or uint8.
  NDS_FORMAT_FLOAT8_E5M2 = 5,
  // Integers -128 to 127.
  NDS_FORMAT_INT8 = 6,
  // Integers 0 to 255.
  NDS_FORMAT_UINT8 = 7,
  // 4-bit integers -8 to 7. Data has the type int8 or uint8. One element of data has two 4-bit
  // integers, the first of them in the low 4 bits.
  NDS_FORMAT_INT4 = 8,
  // 4-bit integers 0 to 15, stored as those of NDS_FORMAT_INT4.
  NDS_FORMAT_UINT4 = 9,
} nds_format;

// Values of nds_conversion.rounding.
typedef enum nds_rounding {
  // To the nearest value, ties to even. A value that is too large becomes infinity, or NaN in
  // float8_e4m3fn.
  NDS_ROUNDING_NEAREST_EVEN = 0,
  // To the nearest value, ties to even. The magnitude of a value that is too large becomes the
  // largest finite value, as in ONNX Cast with saturate.
  NDS_ROUNDING_SATURATE = 1,
  // As NDS_ROUNDING_SATURATE, and NaN becomes the largest finite value, as in vLLM.
  NDS_ROUNDING_SATURATE_NAN = 2,
  // Toward zero, and otherwise as NDS_ROUNDING_SATURATE_NAN.
  NDS_ROUNDING_TRUNCATE = 3,
} nds_rounding;

// Values of nds_conversion.scaling: use of the scale.
typedef enum nds_scaling {
  // value / scale
  NDS_SCALING_DIVIDE = 0,
  // value * (1 / scale)
  NDS_SCALING_RECIPROCAL = 1,
} nds_scaling;

// Values of nds_sharding.rule: division of the rows of a table among parts.
typedef enum nds_sharding_rule {
  // Every part has a block of consecutive rows. A block has rows / parts rows, rounded up. The
  // last blocks may have fewer rows, or none.
  NDS_SHARDING_BLOCKS = 0,
  // Part r % parts has row r, as its row r / parts.
  NDS_SHARDING_MODULO = 1,
  // Each part has the rows from its start to the start of the next part. The last part has all
  // rows from its start to the end of the table.
  NDS_SHARDING_STARTS = 2,
} nds_sharding_rule;

// A kept plan: the part of a scatter or gather that depends only on indices, computed once for
// several runs. A plan is made for one element type, shape and strides of data. Several threads
// may run one plan at the same time.
typedef struct nds_plan nds_plan;

// The tuples of one sender, split by the parts of a table that have their destinations. Several
// threads may use one plan at the same time.
typedef struct nds_sharded_plan nds_sharded_plan;

// Facts of a failure: its status, and the tuple, the axis and the index that caused it. A fact
// that is unknown, or that the kind of failure does not have, is -1. Before a call of
// nds_last_error_info, set `size` to sizeof(nds_error_info).
typedef struct nds_error_info {
  // sizeof(nds_error_info), as the caller's header defines it.
  uint32_t size;
  // Status of the failure: a value of nds_status. NDS_OK before the first failure.
  int32_t status;
  // Number of the failing tuple, counted from 0 in the row-major order of indices. For
  // nds_tensor_scatter: number of the failing sequence, counted from 0. For slots and for
  // moves: position in the list of slots or of moves.
  int64_t tuple;
  // For a duplicate: number of the earlier tuple that has the same destination as `tuple`.
  int64_t other_tuple;
  // Axis of data for which the index is out of range, or along which another tensor is too long.
  int64_t axis;
  // Size of data along that axis. For an invalid position of nds_tensor_scatter, `axis` is -1
  // and this field is the length of the cache. For an invalid slot or row number, `axis` is -1
  // and this field is the number of slots or rows.
  int64_t axis_size;
  // Failing index as the caller passed it, clamped to the range of int64.
  int64_t index;
} nds_error_info;

// Thread pool of the host, which runs tasks with the function `parallel_for`.
typedef struct nds_pool {
  // Size of this struct in bytes: sizeof(nds_pool) in the header that the caller was compiled
  // with.
  uint32_t size;
  // Number of tasks that the pool can run at the same time, or 0 if the host does not know it.
  uint32_t workers;
  // Pointer of the host that the library passes to each call of parallel_for.
  void *ctx;
  // Calls task(argument, index) exactly once for each index from 0 to tasks - 1, in any order
  // and on any threads. Returns after all these calls have returned: 0 on success, another value
  // on failure. No task waits for another task.
  int32_t (*parallel_for)(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument);
} nds_pool;

// Options of a call. The caller must set `size`. A field that is 0 or null selects the default of
// its option. A null pointer to nds_options selects all defaults.
typedef struct nds_options {
  // Size of this struct in bytes: sizeof(nds_options) in the header that the caller was compiled
  // with. The library uses the defaults for fields beyond this size.
  uint32_t size;
  // Reduction: a value of nds_reduction.
  int32_t reduction;
  // Treatment of an index out of bounds: a value of nds_bounds.
  int32_t bounds;
  // 0: negative indices count from the end. 1: negative indices are out of bounds. Slots of a
  // paged cache never count from the end: if bounds is NDS_BOUNDS_ERROR and this field is 0,
  // negative slots are skipped, as with NDS_BOUNDS_SKIP_NEGATIVE.
  int32_t forbid_negative;
  // 0: the reduction of a destination includes the value of data at this destination. 1: the
  // reduction excludes this value.
  int32_t exclude_self;
  // Type in which the values of float16 and bfloat16 are accumulated: a value of nds_accumulate.
  int32_t accumulate;
  // 0: several tuples may have the same destination. 1: the call fails if two tuples have the
  // same destination.
  int32_t reject_duplicates;
  // Limit of the threads that run the call. 0: all threads of the pool. 1: only the calling
  // thread. n: at most n threads of the pool.
  int32_t max_threads;
  // Thread pool of the host that runs the call. If null, the thread pool of the library runs the
  // call.
  const struct nds_pool *pool;
  // Updates that receive a gradient in a scatter without a reduction: a value of
  // nds_none_gradient.
  int32_t none_gradient;
  // The library ignores this field. In older headers, these bytes are padding and may have any
  // values.
  int32_t reserved;
  // Use of the pool's threads: a value of nds_goal. No result depends on this field.
  int32_t goal;
} nds_options;

// Division of the rows of a table among parts. Each row has one owner: the part that stores the row.
// The caller must set `size` and `parts`.
typedef struct nds_sharding {
  // Size of this struct in bytes: sizeof(nds_sharding).
  uint32_t size;
  // Rule of the division: a value of nds_sharding_rule.
  int32_t rule;
  // Number of parts, from 1 to 2^32 - 1.
  size_t parts;
  // For NDS_SHARDING_STARTS: the first row of each part, an array of `parts` numbers. The first
  // number is 0, and no number is less than the number before it. For the other rules: null.
  const int64_t *starts;
} nds_sharding;

// The lists of a sharded plan. The plan has a list of entries in the order of the parts. Before a
// call of nds_sharded_plan_lists, set `size` to sizeof(nds_sharded_lists). The lists belong to the
// plan, and are valid until nds_sharded_plan_free.
typedef struct nds_sharded_lists {
  // sizeof(nds_sharded_lists), as the caller's header defines it.
  uint32_t size;
  // If slots is not null: the reduction that combines the updates of an entry, a value of
  // nds_reduction. Otherwise NDS_REDUCTION_NONE.
  int32_t reduction;
  // Number of parts.
  size_t parts;
  // Number of all entries.
  size_t entries;
  // Number of all tuples, with skipped tuples.
  size_t tuples;
  // Number of tuples that the rule for bounds has skipped. No entry has such a tuple.
  size_t skipped;
  // Number of entries of each part.
  const size_t *counts;
  // For each entry, the number of its destination among the slices of its part.
  const int64_t *destinations;
  // For each entry, its tuple. Null if slots is not null.
  const int64_t *order;
  // For each tuple, its entry, or -1 for a skipped tuple. Null if each entry has one tuple: if
  // combine is 0, and in a scatter without a reduction, which sends the last update of a
  // destination.
  const int64_t *slots;
} nds_sharded_lists;

// How a write converts its updates to the elements of data. The caller must set `size`. A field
// that is 0 or null selects its default. The updates are float32, float16 or bfloat16.
typedef struct nds_conversion {
  // sizeof(nds_conversion), as the caller's header defines it.
  uint32_t size;
  // Format of the elements of data: a value of nds_format.
  int32_t format;
  // Rounding: a value of nds_rounding.
  int32_t rounding;
  // Use of scale: a value of nds_scaling.
  int32_t scaling;
  // Scale: positive float32 numbers in a tensor that broadcasts to the shape of updates. Null:
  // no scale.
  const DLTensor *scale;
  // Zero point of an integer format: int32 numbers in a tensor that broadcasts to the shape of
  // updates. Null: no zero point.
  const DLTensor *zero_point;
} nds_conversion;

// One write of a call: the updates that the call writes to data, in place. The caller must set
// `size`, data and updates.
typedef struct nds_write {
  // sizeof(nds_write), as the caller's header defines it. It is also the distance in bytes
  // between two writes of an array.
  uint32_t size;
  // Tensor that the write changes.
  DLTensor *data;
  // Values that the write stores in data.
  const DLTensor *updates;
  // Conversion of updates to the elements of data. Null: updates have the element type of data.
  const struct nds_conversion *conversion;
} nds_write;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library as a string, for example "0.2.0".
const char *nds_version(void);

// Returns the version number of this C interface, which is 1.
uint32_t nds_abi_version(void);

// Returns the message of the last failure of the calling thread, or "" before the first failure.
// The pointer is never null. The pointer is valid until the next failure of the thread or until
// the thread ends. Calls that succeed do not change the message.
const char *nds_last_error(void);

// Writes the facts of the last failure of the calling thread (its status, tuple, axis and index)
// to *info. Fails if info is null or info->size is invalid.
enum nds_status nds_last_error_info(struct nds_error_info *info);

// Computes the gradients of nds_scatter_nd with respect to data and updates, and multiplies both
// gradients by scale. The tensor grad_output is the gradient with respect to the output of
// nds_scatter_nd. The tensor grad_data has the shape of data, and grad_updates has the shape of
// updates. If grad_data or grad_updates is null, the call does not compute this gradient. If both
// are null, the status is NDS_INVALID_ARGUMENT. The call computes grad_data in place if grad_data
// has the address, shape and strides of grad_output. Only floats and complex numbers have
// gradients.
//
// For the reductions mul, min and max, the tensor updates must not be null. For mul, min and max
// with the option exclude_self 0, the tensor data must not be null. For min and max, the tensor
// output must not be null. In all other cases, data, updates and output may be null. If
// nds_scatter_nd ran in place, the argument data must hold the values that data had before
// nds_scatter_nd ran.
enum nds_status nds_scatter_nd_backward(const DLTensor *grad_output,
                                        const DLTensor *data,
                                        const DLTensor *indices,
                                        const DLTensor *updates,
                                        const DLTensor *output,
                                        double scale,
                                        DLTensor *grad_data,
                                        DLTensor *grad_updates,
                                        const struct nds_options *options);

// Computes the gradients of nds_scatter_update. The description of nds_scatter_nd_backward also
// applies to this function.
enum nds_status nds_scatter_update_backward(const DLTensor *grad_output,
                                            const DLTensor *data,
                                            const DLTensor *indices,
                                            const DLTensor *updates,
                                            int64_t axis,
                                            const DLTensor *output,
                                            double scale,
                                            DLTensor *grad_data,
                                            DLTensor *grad_updates,
                                            const struct nds_options *options);

// Computes the gradients of nds_scatter_elements. The description of nds_scatter_nd_backward also
// applies to this function.
enum nds_status nds_scatter_elements_backward(const DLTensor *grad_output,
                                              const DLTensor *data,
                                              const DLTensor *indices,
                                              const DLTensor *updates,
                                              int64_t axis,
                                              const DLTensor *output,
                                              double scale,
                                              DLTensor *grad_data,
                                              DLTensor *grad_updates,
                                              const struct nds_options *options);

// Computes the gradients of nds_tensor_scatter with respect to past_cache and update, and
// multiplies both gradients by scale. The tensor grad_past is 0 at the rows that
// nds_tensor_scatter wrote. The call reads the shape of the tensor update, but not its elements.
// If grad_past or grad_update is null, the call does not compute this gradient. If both are null,
// the status is NDS_INVALID_ARGUMENT.
enum nds_status nds_tensor_scatter_backward(const DLTensor *grad_output,
                                            const DLTensor *update,
                                            const DLTensor *write_indices,
                                            int64_t axis,
                                            int32_t circular,
                                            double scale,
                                            DLTensor *grad_past,
                                            DLTensor *grad_update,
                                            const struct nds_options *options);

// Sets the machine description with which all later calls of the process choose their schedules.
// The path names a regular file of at most 64 KiB that contains the description. A null path
// restores the description that the library itself detects. If the library cannot use the file,
// the status is NDS_INVALID_ARGUMENT and the description does not change. No result of a scatter
// or gather depends on the machine description.
enum nds_status nds_set_machine_file(const char *path);

// Moves rows of each of the count tensors, in place. The row that to names gets the old contents
// of the row that from names, as if all rows were read first. The rows are the slices along axis.
// The tensors have the same number of rows, and may have different element types, shapes and
// strides. The lists from and to have one shape and any integer types. Row numbers never count
// from the end. If several moves have the same destination, the last of them stays. The call uses
// the options bounds (not NDS_BOUNDS_CLAMP), reject_duplicates, max_threads, pool and goal. With
// NDS_BOUNDS_SKIP, a move with a row number that is out of bounds is not made. With
// NDS_BOUNDS_SKIP_NEGATIVE, a move with a negative row number is not made, and a row number that
// is too large is an error.
enum nds_status nds_move_rows(const DLTensor *from,
                              const DLTensor *to,
                              int64_t axis,
                              DLTensor *const *tensors,
                              size_t count,
                              const struct nds_options *options);

// Moves slots of paged caches of shape [blocks, block_size, ..], in place. The rows of a tensor are
// its slots: slot s is the slice [s / block_size, s % block_size, ..]. The description of
// nds_move_rows also applies to this function.
enum nds_status nds_move_slots(const DLTensor *from,
                               const DLTensor *to,
                               DLTensor *const *tensors,
                               size_t count,
                               const struct nds_options *options);

// Writes a copy of data to output and applies updates to output (ONNX ScatterND). Each tuple along
// the last dim of indices selects one slice of output, and one slice of updates changes it. The
// call is in place if output has the address, shape and strides of data. The DLTensor struct, the
// shape and the strides of every tensor must be stored outside the memory that a function writes.
enum nds_status nds_scatter_nd(const DLTensor *data,
                               const DLTensor *indices,
                               const DLTensor *updates,
                               DLTensor *output,
                               const struct nds_options *options);

// Writes a copy of data to output and applies updates to output (OpenVINO ScatterUpdate, torch
// index_add_). Each index selects one slice of output along axis, and one slice of updates changes
// it.
enum nds_status nds_scatter_update(const DLTensor *data,
                                   const DLTensor *indices,
                                   const DLTensor *updates,
                                   int64_t axis,
                                   DLTensor *output,
                                   const struct nds_options *options);

// Writes a copy of data to output and applies updates to output (ONNX ScatterElements, torch
// scatter_reduce_). Each element of updates changes one element of output. The index at the same
// position as the element of updates is the position of the element of output along axis. Along
// every other axis, the element of output has the position of the element of updates.
enum nds_status nds_scatter_elements(const DLTensor *data,
                                     const DLTensor *indices,
                                     const DLTensor *updates,
                                     int64_t axis,
                                     DLTensor *output,
                                     const struct nds_options *options);

// Writes a copy of past_cache to output, and then the rows of update to output (ONNX
// TensorScatter). The tensor write_indices holds one position along axis for each sequence, where
// the first row of update for this sequence is written. If write_indices is null, this position is
// 0 for all sequences. If circular is 1, positions wrap around at the end of axis. If circular is
// 0, they do not. With the option NDS_BOUNDS_SKIP, a sequence with a negative position is skipped.
enum nds_status nds_tensor_scatter(const DLTensor *past_cache,
                                   const DLTensor *update,
                                   const DLTensor *write_indices,
                                   int64_t axis,
                                   int32_t circular,
                                   DLTensor *output,
                                   const struct nds_options *options);

// Writes a copy of data to output and applies updates to output. The tensor data is a paged cache
// of shape [blocks, block_size, ..], and each index is a slot: slot s is the slice
// [s / block_size, s % block_size, ..]. The shape of updates is the shape of indices, followed by
// the shape of data without its first two dims. With the default options, negative slots are
// skipped, and the call fails if a slot is too large.
enum nds_status nds_scatter_paged(const DLTensor *data,
                                  const DLTensor *indices,
                                  const DLTensor *updates,
                                  DLTensor *output,
                                  const struct nds_options *options);

// Copies slices of data to output (ONNX GatherND). Each tuple along the last dim of indices
// selects one slice of data. The first batch_dims dims of data and of indices are batch dims and
// must have equal sizes.
enum nds_status nds_gather_nd(const DLTensor *data,
                              const DLTensor *indices,
                              int64_t batch_dims,
                              DLTensor *output,
                              const struct nds_options *options);

// Copies slices of data to output (ONNX Gather). Each index selects one slice of data along axis.
enum nds_status nds_gather(const DLTensor *data,
                           const DLTensor *indices,
                           int64_t axis,
                           DLTensor *output,
                           const struct nds_options *options);

// Copies elements of data to output (ONNX GatherElements). Each index selects one element of data:
// the index is the position of this element along axis. Along every other axis, the element of
// data has the position of the index.
enum nds_status nds_gather_elements(const DLTensor *data,
                                    const DLTensor *indices,
                                    int64_t axis,
                                    DLTensor *output,
                                    const struct nds_options *options);

// Copies the slots of a paged cache to output. The descriptions of data, of indices and of the
// options of nds_scatter_paged also apply to this function. For a slot that is skipped, the call
// writes bytes of 0.
enum nds_status nds_gather_paged(const DLTensor *data,
                                 const DLTensor *indices,
                                 DLTensor *output,
                                 const struct nds_options *options);

// Computes the gradient of nds_gather_nd with respect to data. The tensor grad_output is the
// gradient with respect to the output of nds_gather_nd. The tensor grad_data has the shape of
// data. Each element of grad_data is a sum multiplied by scale. The sum contains the gradient of
// every output element that nds_gather_nd copied from this element of data. Each sum begins at 0
// and adds these gradients in the order of indices. Sums of float16 and bfloat16 are computed in
// float32. Only floats and complex numbers have gradients.
enum nds_status nds_gather_nd_backward(const DLTensor *grad_output,
                                       const DLTensor *indices,
                                       int64_t batch_dims,
                                       double scale,
                                       DLTensor *grad_data,
                                       const struct nds_options *options);

// Computes the gradient of nds_gather with respect to data, for example of an embedding table. The
// description of nds_gather_nd_backward also applies to this function.
enum nds_status nds_gather_backward(const DLTensor *grad_output,
                                    const DLTensor *indices,
                                    int64_t axis,
                                    double scale,
                                    DLTensor *grad_data,
                                    const struct nds_options *options);

// Computes the gradient of nds_gather_elements with respect to data. The description of
// nds_gather_nd_backward also applies to this function.
enum nds_status nds_gather_elements_backward(const DLTensor *grad_output,
                                             const DLTensor *indices,
                                             int64_t axis,
                                             double scale,
                                             DLTensor *grad_data,
                                             const struct nds_options *options);

// Makes a plan that runs nds_scatter_nd. The call reads the shape, strides and element type of
// data, but not its elements. The output of each run must have the same shape and strides as data
// has here.
enum nds_status nds_plan_scatter_nd(const DLTensor *data,
                                    const DLTensor *indices,
                                    const struct nds_options *options,
                                    struct nds_plan **plan);

// Makes a plan that runs nds_scatter_update. The description of nds_plan_scatter_nd also applies
// to this function.
enum nds_status nds_plan_scatter_update(const DLTensor *data,
                                        const DLTensor *indices,
                                        int64_t axis,
                                        const struct nds_options *options,
                                        struct nds_plan **plan);

// Makes a plan that runs nds_scatter_elements. The description of nds_plan_scatter_nd also applies
// to this function.
enum nds_status nds_plan_scatter_elements(const DLTensor *data,
                                          const DLTensor *indices,
                                          int64_t axis,
                                          const struct nds_options *options,
                                          struct nds_plan **plan);

// Makes a plan that runs nds_scatter_paged. The description of nds_plan_scatter_nd also applies to
// this function.
enum nds_status nds_plan_scatter_paged(const DLTensor *data,
                                       const DLTensor *indices,
                                       const struct nds_options *options,
                                       struct nds_plan **plan);

// Makes a plan that runs nds_gather_nd. The call reads the shape, strides and element type of
// data, but not its elements. The tensor data of each run must have the same shape and strides as
// data has here.
enum nds_status nds_plan_gather_nd(const DLTensor *data,
                                   const DLTensor *indices,
                                   int64_t batch_dims,
                                   const struct nds_options *options,
                                   struct nds_plan **plan);

// Makes a plan that runs nds_gather. The description of nds_plan_gather_nd also applies to this
// function.
enum nds_status nds_plan_gather(const DLTensor *data,
                                const DLTensor *indices,
                                int64_t axis,
                                const struct nds_options *options,
                                struct nds_plan **plan);

// Makes a plan that runs nds_gather_elements. The description of nds_plan_gather_nd also applies
// to this function.
enum nds_status nds_plan_gather_elements(const DLTensor *data,
                                         const DLTensor *indices,
                                         int64_t axis,
                                         const struct nds_options *options,
                                         struct nds_plan **plan);

// Makes a plan that runs nds_gather_paged. The description of nds_plan_gather_nd also applies to
// this function.
enum nds_status nds_plan_gather_paged(const DLTensor *data,
                                      const DLTensor *indices,
                                      const struct nds_options *options,
                                      struct nds_plan **plan);

// Runs a plan. The argument updates must be null for a plan of a gather, and must not be null for
// a plan of a scatter. The run uses only the options max_threads, pool and goal of this call. The
// other options are those with which the plan was made.
enum nds_status nds_plan_run(const struct nds_plan *plan,
                             const DLTensor *data,
                             const DLTensor *updates,
                             DLTensor *output,
                             const struct nds_options *options);

// Writes a text to buffer that explains how the plan would run with the library's pool and an
// output that is not data. Before the call, *length must be the size of buffer in bytes. The call
// sets *length to the length of the text in bytes, including the NUL that ends the text. If the
// size of buffer is less than this length, the call writes nothing to buffer and the status is
// NDS_INVALID_ARGUMENT.
enum nds_status nds_plan_explain(const struct nds_plan *plan, char *buffer, size_t *length);

// Frees a plan. During and after this call, no thread may run the plan. If plan is null, the call
// does nothing.
void nds_plan_free(struct nds_plan *plan);

// Writes the number of rows that the part `part` has of a table of `rows` rows to *count. The number
// is 0 if there is no such part.
enum nds_status nds_sharding_rows(const struct nds_sharding *sharding,
                                  int64_t part,
                                  int64_t rows,
                                  int64_t *count);

// Writes the part that has the row `row` of a table of `rows` rows to *part, and the position of the
// row in this part to *local.
enum nds_status nds_sharding_owner(const struct nds_sharding *sharding,
                                   int64_t row,
                                   int64_t rows,
                                   int64_t *part,
                                   int64_t *local);

// Writes the row of the table that is row `local` of the part `part` to *row. The table has `rows`
// rows.
enum nds_status nds_sharding_row(const struct nds_sharding *sharding,
                                 int64_t part,
                                 int64_t local,
                                 int64_t rows,
                                 int64_t *row);

// Splits the tuples of nds_scatter_update along axis 0 by the parts of a table. The tensor data
// describes the whole table: the call reads its shape, and data->data may be null. If combine is 0,
// the plan has one entry for each tuple that is not skipped. If combine is 1, the plan has one entry
// for each destination, and the updates of a destination are combined before they are sent. For
// floats and complex numbers, this changes the rounding errors of NDS_REDUCTION_ADD,
// NDS_REDUCTION_SUB and NDS_REDUCTION_MUL. NDS_REDUCTION_MEAN, and NDS_REDUCTION_SUB of booleans,
// cannot be combined.
enum nds_status nds_shard_scatter_update(const DLTensor *data,
                                         const DLTensor *indices,
                                         const struct nds_sharding *sharding,
                                         int32_t combine,
                                         const struct nds_options *options,
                                         struct nds_sharded_plan **plan);

// Splits the tuples of nds_scatter_nd by the parts of a table. The description of
// nds_shard_scatter_update also applies to this function.
enum nds_status nds_shard_scatter_nd(const DLTensor *data,
                                     const DLTensor *indices,
                                     const struct nds_sharding *sharding,
                                     int32_t combine,
                                     const struct nds_options *options,
                                     struct nds_sharded_plan **plan);

// Splits the slots of nds_scatter_paged by the parts of a table. The rows of the table are its
// blocks. The description of nds_shard_scatter_update also applies to this function.
enum nds_status nds_shard_scatter_paged(const DLTensor *data,
                                        const DLTensor *indices,
                                        const struct nds_sharding *sharding,
                                        int32_t combine,
                                        const struct nds_options *options,
                                        struct nds_sharded_plan **plan);

// Splits the tuples of nds_gather along axis 0 by the parts of a table. The tensor data describes the
// whole table: the call reads its shape, and data->data may be null. If combine is 0, the plan has
// one entry for each tuple that is not skipped. If combine is 1, the plan has one entry for each
// destination, and several tuples use one answer. This does not change the result.
enum nds_status nds_shard_gather(const DLTensor *data,
                                 const DLTensor *indices,
                                 const struct nds_sharding *sharding,
                                 int32_t combine,
                                 const struct nds_options *options,
                                 struct nds_sharded_plan **plan);

// Splits the tuples of nds_gather_nd by the parts of a table. The description of nds_shard_gather
// also applies to this function.
enum nds_status nds_shard_gather_nd(const DLTensor *data,
                                    const DLTensor *indices,
                                    const struct nds_sharding *sharding,
                                    int32_t combine,
                                    const struct nds_options *options,
                                    struct nds_sharded_plan **plan);

// Splits the slots of nds_gather_paged by the parts of a table. The rows of the table are its
// blocks. The description of nds_shard_gather also applies to this function.
enum nds_status nds_shard_gather_paged(const DLTensor *data,
                                       const DLTensor *indices,
                                       const struct nds_sharding *sharding,
                                       int32_t combine,
                                       const struct nds_options *options,
                                       struct nds_sharded_plan **plan);

// Writes the sizes of a sharded plan and pointers to its lists to *lists.
enum nds_status nds_sharded_plan_lists(const struct nds_sharded_plan *plan, struct nds_sharded_lists *lists);

// Frees a sharded plan. During and after this call, no thread may use the plan or its lists. If plan
// is null, the call does nothing.
void nds_sharded_plan_free(struct nds_sharded_plan *plan);

// Writes updates to slots of paged caches, in place. Each of the count writes has its own data,
// updates and conversion. All writes have the same indices, which are slots. The shapes are those
// of nds_scatter_paged. Two 4-bit integers are one element of data, so the last dim of such updates
// is twice as long as the last dim of data. No reduction is allowed. If several updates have the
// same destination, the last of them stays. All writes are checked before the first byte is
// written. The data of a write must not share memory with another tensor of the call.
enum nds_status nds_write_paged(const DLTensor *indices,
                                const struct nds_write *writes,
                                size_t count,
                                const struct nds_options *options);

// Writes updates to slices along axis, in place, as nds_scatter_update does without a reduction.
// The description of the writes of nds_write_paged also applies to this function.
enum nds_status nds_write_update(const DLTensor *indices,
                                 int64_t axis,
                                 const struct nds_write *writes,
                                 size_t count,
                                 const struct nds_options *options);

// Writes updates to slices that tuples select, in place, as nds_scatter_nd does without a
// reduction. The description of the writes of nds_write_paged also applies to this function.
enum nds_status nds_write_nd(const DLTensor *indices,
                             const struct nds_write *writes,
                             size_t count,
                             const struct nds_options *options);

// Runs writes with the indices of the plan of a scatter. The data of each write must have the shape
// and the strides for which the plan was made, and may have any element type. The description of
// the writes of nds_write_paged also applies to this function. The call uses only the options
// max_threads, pool and goal.
enum nds_status nds_plan_write(const struct nds_plan *plan,
                               const struct nds_write *writes,
                               size_t count,
                               const struct nds_options *options);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NDSCATTER_H */
