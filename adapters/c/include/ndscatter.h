// The C interface of ndscatter: scatters and gathers on DLPack tensors.
//
// cbindgen generates this file from the Rust sources. docs/c.md describes how to
// build, link and call the library, and what later versions keep.

#ifndef NDSCATTER_H
#define NDSCATTER_H

#include <stddef.h>
#include <stdint.h>

/* Uses DLPack's header if it is installed, or was included before from any path. */
#if !defined(DLPACK_DLPACK_H_) && !defined(NDS_NO_DLPACK_HEADER) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifndef DLPACK_DLPACK_H_
/* The types of DLPack that this header uses, with DLPack's names and layout. */
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

// Outcome of a call. Treat an unknown status as a failure.
typedef enum nds_status {
  // The call succeeded.
  NDS_OK = 0,
  // A pointer, shape, size or option is invalid, or arguments do not fit together.
  NDS_INVALID_ARGUMENT = 1,
  // An index is outside its axis.
  NDS_INDEX_OUT_OF_BOUNDS = 2,
  // Two tuples have the same destination, and reject_duplicates is set.
  NDS_DUPLICATE_INDEX = 3,
  // The request is valid but not supported: a type, a device, or an option that the function
  // does not have.
  NDS_UNSUPPORTED = 4,
  // An allocation failed.
  NDS_OUT_OF_MEMORY = 5,
  // A pool failed, or the library has a bug. Only this failure may leave the output changed.
  NDS_INTERNAL = 6,
} nds_status;

// A kept plan: everything that depends only on indices, for data of one element type, shape and
// strides. Several threads may run a plan at the same time.
typedef struct nds_plan nds_plan;

// Facts of a failure: its status, and the tuple, the axis and the index that caused it. An unknown
// fact is -1. Set `size` to sizeof(nds_error_info) before the call of nds_last_error_info.
typedef struct nds_error_info {
  // sizeof(nds_error_info) in the caller's header.
  uint32_t size;
  // Status of the failure.
  int32_t status;
  // Number of the failing tuple of indices, in row-major order. For nds_tensor_scatter: the
  // number of the sequence.
  int64_t tuple;
  // Number of the earlier tuple with the same destination.
  int64_t other_tuple;
  // Axis of data.
  int64_t axis;
  // Number of elements of data along that axis.
  int64_t axis_size;
  // Index as the caller passed it, clamped to int64.
  int64_t index;
} nds_error_info;

// A parallel-for function of the host.
typedef struct nds_pool {
  // sizeof(nds_pool) in the caller's header.
  uint32_t size;
  // Number of tasks that can run at once, or 0 if the host does not know it.
  uint32_t workers;
  // Pointer that the library passes to parallel_for.
  void *ctx;
  // Calls task(argument, index) once for each index below `tasks`, on any threads. Returns 0
  // after all tasks have returned, and another value on failure. Tasks do not wait for one
  // another.
  int32_t (*parallel_for)(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument);
} nds_pool;

// Options of a call. Set `size`. A field that is 0 or null has its default. A null pointer to
// options selects all defaults.
typedef struct nds_options {
  // sizeof(nds_options) in the caller's header. Fields beyond it have their defaults.
  uint32_t size;
  // Reduction: 0 none, 1 add, 2 sub, 3 mul, 4 min, 5 max, 6 mean.
  int32_t reduction;
  // Treatment of indices out of bounds: 0 error, 1 skip, 2 clamp.
  int32_t bounds;
  // 0: negative indices count from the end. 1: negative indices are out of bounds.
  int32_t forbid_negative;
  // 0: the existing value takes part in the reduction. 1: it does not.
  int32_t exclude_self;
  // Accumulator of float16 and bfloat16: 0 the element type, 1 float32.
  int32_t accumulate;
  // 0: duplicates are allowed. 1: two tuples with the same destination are an error.
  int32_t reject_duplicates;
  // 0: all threads of the pool. 1: the calling thread. n: at most n threads of the pool.
  int32_t max_threads;
  // Pool of the host. Null: the pool of the library.
  const struct nds_pool *pool;
  // Gradient of a scatter without a reduction: 0 for the last update of a destination, 1 for
  // every duplicate.
  int32_t none_gradient;
  // Never read. Callers with an older header have padding here, which may hold any bytes.
  int32_t reserved;
  // 0: concurrent calls share the pool's threads. 1, latency: the call uses all threads that it
  // may use. 2, throughput: the call runs on the calling thread. No result depends on the goal.
  int32_t goal;
} nds_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, for example "0.2.0".
const char *nds_version(void);

// Returns the version of this interface: 1.
uint32_t nds_abi_version(void);

// Returns the message of the last failure of the calling thread, or "" before the first failure.
// The pointer is never null. The pointer is valid until the next failure of the thread or until
// the thread ends. Calls that succeed do not change the message.
const char *nds_last_error(void);

// Writes the facts of the last failure of the calling thread to *info.
enum nds_status nds_last_error_info(struct nds_error_info *info);

// Computes the gradients of nds_scatter_nd for data and updates, and multiplies both gradients by
// scale. The tensor grad_output is the gradient of the output of nds_scatter_nd. The tensor
// grad_data has the shape of data, and grad_updates has the shape of updates. One of grad_data and
// grad_updates may be null and is then not computed. The tensor grad_data may have the address,
// shape and strides of grad_output. Only floats and complex numbers have gradients.
//
// For the reductions mul, min and max, the tensor updates is required. For the same reductions,
// the tensor data is required if the option exclude_self is 0. For min and max, the tensor output
// is required. Any of these three tensors that is not required may be null. After a call of
// nds_scatter_nd in place, pass the values that data had before that call.
enum nds_status nds_scatter_nd_backward(const DLTensor *grad_output,
                                        const DLTensor *data,
                                        const DLTensor *indices,
                                        const DLTensor *updates,
                                        const DLTensor *output,
                                        double scale,
                                        DLTensor *grad_data,
                                        DLTensor *grad_updates,
                                        const struct nds_options *options);

// Computes the gradients of nds_scatter_update. The rules of nds_scatter_nd_backward hold.
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

// Computes the gradients of nds_scatter_elements. The rules of nds_scatter_nd_backward hold.
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

// Computes the gradients of nds_tensor_scatter for past_cache and update, each multiplied by
// scale. grad_past is 0 for the rows that the forward call wrote. Only the shape of update is
// read. One of grad_past and grad_update may be null and is then not computed.
enum nds_status nds_tensor_scatter_backward(const DLTensor *grad_output,
                                            const DLTensor *update,
                                            const DLTensor *write_indices,
                                            int64_t axis,
                                            int32_t circular,
                                            double scale,
                                            DLTensor *grad_past,
                                            DLTensor *grad_update,
                                            const struct nds_options *options);

// Sets the machine description that chooses schedules, for all later calls of the process. The
// path names a regular file of at most 64 KiB. A null path restores the machine that the library
// detects. An unusable file is an NDS_INVALID_ARGUMENT and changes nothing. No result depends on
// the machine description.
enum nds_status nds_set_machine_file(const char *path);

// Writes a copy of data to output and applies updates to it (ONNX ScatterND). Each tuple along the
// last dim of indices addresses the slice of output that one slice of updates changes. The call is
// in place if output has the address, shape and strides of data. No struct, shape or strides of
// any tensor may lie in the memory that a function writes.
enum nds_status nds_scatter_nd(const DLTensor *data,
                               const DLTensor *indices,
                               const DLTensor *updates,
                               DLTensor *output,
                               const struct nds_options *options);

// Writes a copy of data to output and applies updates to it (OpenVINO ScatterUpdate, torch
// index_add_). Each index addresses one slice of output along axis.
enum nds_status nds_scatter_update(const DLTensor *data,
                                   const DLTensor *indices,
                                   const DLTensor *updates,
                                   int64_t axis,
                                   DLTensor *output,
                                   const struct nds_options *options);

// Writes a copy of data to output and applies updates to it (ONNX ScatterElements, torch
// scatter_reduce_). Each index is the position, along axis, of the element of output that one
// element of updates changes.
enum nds_status nds_scatter_elements(const DLTensor *data,
                                     const DLTensor *indices,
                                     const DLTensor *updates,
                                     int64_t axis,
                                     DLTensor *output,
                                     const struct nds_options *options);

// Writes a copy of past_cache to output and the rows of update into it (ONNX TensorScatter).
// write_indices holds the position along axis where the rows of each sequence begin. A null
// write_indices selects position 0 for all sequences. circular is 0 or 1: with 1, positions wrap
// around. With bounds 1, a sequence with a negative position is skipped.
enum nds_status nds_tensor_scatter(const DLTensor *past_cache,
                                   const DLTensor *update,
                                   const DLTensor *write_indices,
                                   int64_t axis,
                                   int32_t circular,
                                   DLTensor *output,
                                   const struct nds_options *options);

// Copies to output the slices of data that the tuples along the last dim of indices address (ONNX
// GatherND). The first batch_dims dims of indices are those of data.
enum nds_status nds_gather_nd(const DLTensor *data,
                              const DLTensor *indices,
                              int64_t batch_dims,
                              DLTensor *output,
                              const struct nds_options *options);

// Copies to output the slices of data along axis that indices address (ONNX Gather).
enum nds_status nds_gather(const DLTensor *data,
                           const DLTensor *indices,
                           int64_t axis,
                           DLTensor *output,
                           const struct nds_options *options);

// Copies to output the elements of data whose positions along axis are indices (ONNX
// GatherElements).
enum nds_status nds_gather_elements(const DLTensor *data,
                                    const DLTensor *indices,
                                    int64_t axis,
                                    DLTensor *output,
                                    const struct nds_options *options);

// Computes the gradient of nds_gather_nd for data. grad_output is the gradient of the output of
// nds_gather_nd, and grad_data has the shape of data. Each element of grad_data is the sum of the
// gradients of all output elements that the gather read from this element of data, multiplied by
// scale. Sums begin at 0 and follow the order of indices. float16 and bfloat16 are summed in
// float32. Only floats and complex numbers have gradients.
enum nds_status nds_gather_nd_backward(const DLTensor *grad_output,
                                       const DLTensor *indices,
                                       int64_t batch_dims,
                                       double scale,
                                       DLTensor *grad_data,
                                       const struct nds_options *options);

// Computes the gradient of nds_gather for data, for example of an embedding. The rules of
// nds_gather_nd_backward hold.
enum nds_status nds_gather_backward(const DLTensor *grad_output,
                                    const DLTensor *indices,
                                    int64_t axis,
                                    double scale,
                                    DLTensor *grad_data,
                                    const struct nds_options *options);

// Computes the gradient of nds_gather_elements for data. The rules of nds_gather_nd_backward hold.
enum nds_status nds_gather_elements_backward(const DLTensor *grad_output,
                                             const DLTensor *indices,
                                             int64_t axis,
                                             double scale,
                                             DLTensor *grad_data,
                                             const struct nds_options *options);

// Makes a plan of nds_scatter_nd. The values of data are not read. The shape and strides of data
// must be those of the output of each run.
enum nds_status nds_plan_scatter_nd(const DLTensor *data,
                                    const DLTensor *indices,
                                    const struct nds_options *options,
                                    struct nds_plan **plan);

// Makes a plan of nds_scatter_update. The rules of nds_plan_scatter_nd hold.
enum nds_status nds_plan_scatter_update(const DLTensor *data,
                                        const DLTensor *indices,
                                        int64_t axis,
                                        const struct nds_options *options,
                                        struct nds_plan **plan);

// Makes a plan of nds_scatter_elements. The rules of nds_plan_scatter_nd hold.
enum nds_status nds_plan_scatter_elements(const DLTensor *data,
                                          const DLTensor *indices,
                                          int64_t axis,
                                          const struct nds_options *options,
                                          struct nds_plan **plan);

// Makes a plan of nds_gather_nd. The values of data are not read. The shape and strides of data
// must be those of data in each run.
enum nds_status nds_plan_gather_nd(const DLTensor *data,
                                   const DLTensor *indices,
                                   int64_t batch_dims,
                                   const struct nds_options *options,
                                   struct nds_plan **plan);

// Makes a plan of nds_gather. The rules of nds_plan_gather_nd hold.
enum nds_status nds_plan_gather(const DLTensor *data,
                                const DLTensor *indices,
                                int64_t axis,
                                const struct nds_options *options,
                                struct nds_plan **plan);

// Makes a plan of nds_gather_elements. The rules of nds_plan_gather_nd hold.
enum nds_status nds_plan_gather_elements(const DLTensor *data,
                                         const DLTensor *indices,
                                         int64_t axis,
                                         const struct nds_options *options,
                                         struct nds_plan **plan);

// Runs a plan. updates is null for a plan of a gather. The run follows only the options
// max_threads, pool and goal. For all other options the plan keeps the values that it was made
// with.
enum nds_status nds_plan_run(const struct nds_plan *plan,
                             const DLTensor *data,
                             const DLTensor *updates,
                             DLTensor *output,
                             const struct nds_options *options);

// Writes a text to buffer that describes a run of the plan out of place on the library's pool.
// Before the call, *length is the capacity of buffer in bytes. The call sets *length to the length
// of the text, including its NUL. If this length exceeds the capacity, nothing is written to
// buffer and the status is NDS_INVALID_ARGUMENT.
enum nds_status nds_plan_explain(const struct nds_plan *plan, char *buffer, size_t *length);

// Frees a plan. No run of the plan may be active. A null plan has no effect.
void nds_plan_free(struct nds_plan *plan);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NDSCATTER_H */
