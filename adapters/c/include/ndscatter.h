// The C interface of ndscatter: scatters and gathers on DLPack tensors.
//
// Generated; the comments are those of the Rust sources. How to build, link
// and call it, and what stays as it is: docs/c.md.

#ifndef NDSCATTER_H
#define NDSCATTER_H

#include <stddef.h>
#include <stdint.h>

/* DLPack's own header where it is, or has been included, whatever its path. */
#if !defined(DLPACK_DLPACK_H_) && !defined(NDS_NO_DLPACK_HEADER) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifndef DLPACK_DLPACK_H_
/* What is used of DLPack, with its names and its layout. */
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

// What a call came to. Treat an unknown one as a failure.
typedef enum nds_status {
  // Done.
  NDS_OK = 0,
  // Pointers, shapes, sizes or options that do not fit together.
  NDS_INVALID_ARGUMENT = 1,
  // An index lies outside its axis.
  NDS_INDEX_OUT_OF_BOUNDS = 2,
  // Two tuples have one destination, and reject_duplicates is set.
  NDS_DUPLICATE_INDEX = 3,
  // Legal, but not served: a type, a device, an option of another operator.
  NDS_UNSUPPORTED = 4,
  // An allocation failed.
  NDS_OUT_OF_MEMORY = 5,
  // A pool failed, or the library has a bug. The one status after which the
  // output may have changed.
  NDS_INTERNAL = 6,
} nds_status;

// All that depends on indices alone, for data of one element type, shape and
// strides. It may be run from many threads at once.
typedef struct nds_plan nds_plan;

// Facts of a failure, -1 where unknown. Set `size` to sizeof(nds_error_info)
// before asking for them.
typedef struct nds_error_info {
  // sizeof(nds_error_info) as the caller knows it.
  uint32_t size;
  // The status of the failure.
  int32_t status;
  // The tuple of indices at fault, counted in row-major order; of
  // nds_tensor_scatter the sequence.
  int64_t tuple;
  // The earlier tuple that it repeats.
  int64_t other_tuple;
  // The axis of data.
  int64_t axis;
  // How many elements data has along that axis.
  int64_t axis_size;
  // The index as given, clamped to int64.
  int64_t index;
} nds_error_info;

// A host's parallel-for.
typedef struct nds_pool {
  // sizeof(nds_pool) as the caller knows it.
  uint32_t size;
  // How many tasks can run at once; 0 if that is not known.
  uint32_t workers;
  // Handed to parallel_for.
  void *ctx;
  // Calls task(argument, index) with every index below `tasks`, each once,
  // on any threads, and returns 0 when all have returned. Tasks do not wait
  // for one another.
  int32_t (*parallel_for)(void *ctx, size_t tasks, void (*task)(void *argument, size_t index), void *argument);
} nds_pool;

// Options of a call. All zero but for `size` is the default, and so is a null
// pointer to options.
typedef struct nds_options {
  // sizeof(nds_options) as the caller knows it; fields beyond it take their default.
  uint32_t size;
  // 0 none, 1 add, 2 sub, 3 mul, 4 min, 5 max, 6 mean.
  int32_t reduction;
  // 0 error, 1 skip, 2 clamp.
  int32_t bounds;
  // 0: negative indices count from the end; 1: they are out of bounds.
  int32_t forbid_negative;
  // 0: the value that is there takes part in the reduction; 1: it does not.
  int32_t exclude_self;
  // Of float16 and bfloat16: 0 in their own type, 1 in float32.
  int32_t accumulate;
  // 1: two tuples with one destination are an error.
  int32_t reject_duplicates;
  // 0: the pool's; 1: the calling thread; n: at most n, and at most the pool's.
  int32_t max_threads;
  // Null: the library's own threads.
  const struct nds_pool *pool;
  // For gradients of a scatter without a reduction: 0 the update that stays, 1
  // every duplicate.
  int32_t none_gradient;
  // Never read: callers of an older header have padding here, with anything in it.
  int32_t reserved;
  // 0: calls side by side share the pool's threads out; 1 latency: this one takes all
  // that it may; 2 throughput: it runs on the calling thread. No result depends on it.
  int32_t goal;
} nds_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, as in "0.2.0".
const char *nds_version(void);

// The version of this interface: 1.
uint32_t nds_abi_version(void);

// What failed last on the calling thread, in words; "" if nothing has. Never
// null. Valid until the thread's next failure or its end; calls that succeed
// do not change it.
const char *nds_last_error(void);

// The facts of what failed last on the calling thread.
enum nds_status nds_last_error_info(struct nds_error_info *info);

// The gradients of nds_scatter_nd, given that of its output: into grad_data, of the shape
// of data, and into grad_updates, of that of updates, each times scale. data may be null
// but for mul, min and max with self, updates but for mul, min and max, output but for min
// and max; after a call in place data is what it held before. A gradient that is not wanted
// is null. grad_data may have the address, shape and strides of grad_output. Only floats
// and complex numbers have gradients.
enum nds_status nds_scatter_nd_backward(const DLTensor *grad_output,
                                        const DLTensor *data,
                                        const DLTensor *indices,
                                        const DLTensor *updates,
                                        const DLTensor *output,
                                        double scale,
                                        DLTensor *grad_data,
                                        DLTensor *grad_updates,
                                        const struct nds_options *options);

// The same of nds_scatter_update.
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

// The same of nds_scatter_elements.
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

// The gradients of nds_tensor_scatter: for the cache, 0 where it was written, and for
// update, of which the shape alone is read.
enum nds_status nds_tensor_scatter_backward(const DLTensor *grad_output,
                                            const DLTensor *update,
                                            const DLTensor *write_indices,
                                            int64_t axis,
                                            int32_t circular,
                                            double scale,
                                            DLTensor *grad_past,
                                            DLTensor *grad_update,
                                            const struct nds_options *options);

// From now on schedules are chosen as for the machine in a file, for all calls
// of the process; null is this machine as the library finds it. No result
// depends on it. The file must be a regular file of at most 64 KiB. A file that
// cannot be used is an NDS_INVALID_ARGUMENT, and changes nothing.
enum nds_status nds_set_machine_file(const char *path);

// Writes slices of updates into a copy of data, in output, at the places that
// the tuples along the last dim of indices name: ONNX ScatterND. An output
// with the address, shape and strides of data is written in place. No struct,
// shape or strides of any tensor may lie in the memory of output, here and in
// all functions that write one.
enum nds_status nds_scatter_nd(const DLTensor *data,
                               const DLTensor *indices,
                               const DLTensor *updates,
                               DLTensor *output,
                               const struct nds_options *options);

// Slices along one axis: OpenVINO ScatterUpdate, torch index_add_.
enum nds_status nds_scatter_update(const DLTensor *data,
                                   const DLTensor *indices,
                                   const DLTensor *updates,
                                   int64_t axis,
                                   DLTensor *output,
                                   const struct nds_options *options);

// Element by element: ONNX ScatterElements, torch scatter_reduce_.
enum nds_status nds_scatter_elements(const DLTensor *data,
                                     const DLTensor *indices,
                                     const DLTensor *updates,
                                     int64_t axis,
                                     DLTensor *output,
                                     const struct nds_options *options);

// Rows written into a cache, for each sequence from its own position on: ONNX
// TensorScatter. write_indices may be null: all sequences from position 0 on.
// With bounds 1 a sequence whose position is negative is left out.
enum nds_status nds_tensor_scatter(const DLTensor *past_cache,
                                   const DLTensor *update,
                                   const DLTensor *write_indices,
                                   int64_t axis,
                                   int32_t circular,
                                   DLTensor *output,
                                   const struct nds_options *options);

// The slices that the tuples along the last dim of indices name: ONNX GatherND.
enum nds_status nds_gather_nd(const DLTensor *data,
                              const DLTensor *indices,
                              int64_t batch_dims,
                              DLTensor *output,
                              const struct nds_options *options);

// Slices along one axis: ONNX Gather.
enum nds_status nds_gather(const DLTensor *data,
                           const DLTensor *indices,
                           int64_t axis,
                           DLTensor *output,
                           const struct nds_options *options);

// Element by element: ONNX GatherElements.
enum nds_status nds_gather_elements(const DLTensor *data,
                                    const DLTensor *indices,
                                    int64_t axis,
                                    DLTensor *output,
                                    const struct nds_options *options);

// The gradient for data of nds_gather_nd, given that of its output: into grad_data, of
// the shape of data, the sums of what was gathered from each place, from zero and in
// the order of indices, times scale. float16 and bfloat16 are summed in float32. Only
// floats and complex numbers have gradients.
enum nds_status nds_gather_nd_backward(const DLTensor *grad_output,
                                       const DLTensor *indices,
                                       int64_t batch_dims,
                                       double scale,
                                       DLTensor *grad_data,
                                       const struct nds_options *options);

// The same of nds_gather: the gradient of an embedding.
enum nds_status nds_gather_backward(const DLTensor *grad_output,
                                    const DLTensor *indices,
                                    int64_t axis,
                                    double scale,
                                    DLTensor *grad_data,
                                    const struct nds_options *options);

// The same of nds_gather_elements.
enum nds_status nds_gather_elements_backward(const DLTensor *grad_output,
                                             const DLTensor *indices,
                                             int64_t axis,
                                             double scale,
                                             DLTensor *grad_data,
                                             const struct nds_options *options);

// A plan of nds_scatter_nd. The values of data are not read; its strides are
// those that output will have.
enum nds_status nds_plan_scatter_nd(const DLTensor *data,
                                    const DLTensor *indices,
                                    const struct nds_options *options,
                                    struct nds_plan **plan);

// A plan of nds_scatter_update.
enum nds_status nds_plan_scatter_update(const DLTensor *data,
                                        const DLTensor *indices,
                                        int64_t axis,
                                        const struct nds_options *options,
                                        struct nds_plan **plan);

// A plan of nds_scatter_elements.
enum nds_status nds_plan_scatter_elements(const DLTensor *data,
                                          const DLTensor *indices,
                                          int64_t axis,
                                          const struct nds_options *options,
                                          struct nds_plan **plan);

// A plan of nds_gather_nd. Its strides are those that data will have.
enum nds_status nds_plan_gather_nd(const DLTensor *data,
                                   const DLTensor *indices,
                                   int64_t batch_dims,
                                   const struct nds_options *options,
                                   struct nds_plan **plan);

// A plan of nds_gather.
enum nds_status nds_plan_gather(const DLTensor *data,
                                const DLTensor *indices,
                                int64_t axis,
                                const struct nds_options *options,
                                struct nds_plan **plan);

// A plan of nds_gather_elements.
enum nds_status nds_plan_gather_elements(const DLTensor *data,
                                         const DLTensor *indices,
                                         int64_t axis,
                                         const struct nds_options *options,
                                         struct nds_plan **plan);

// Runs a plan. updates is null for a gather. Of options only max_threads and
// pool are followed; the others are those that the plan was made with.
enum nds_status nds_plan_run(const struct nds_plan *plan,
                             const DLTensor *data,
                             const DLTensor *updates,
                             DLTensor *output,
                             const struct nds_options *options);

// What a run of the plan does, in words: one out of place, on the library's
// pool. *length is the capacity of buffer, and becomes the length of the text
// with its NUL; if that is more, nothing is written and the status is
// NDS_INVALID_ARGUMENT.
enum nds_status nds_plan_explain(const struct nds_plan *plan, char *buffer, size_t *length);

// Frees a plan that nobody runs any more. Null is nothing to free.
void nds_plan_free(struct nds_plan *plan);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NDSCATTER_H */
