// Writes the tokens of one decode step to a KV cache. Then makes a plan of a gather
// and runs the plan twice. The tasks of these runs run on threads of this program.
//
//   c++ -std=c++17 example.cpp $(pkg-config --cflags --libs ndscatter-c) -pthread -o example

#include <ndscatter.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

// Returns a row-major tensor that describes `values`. The tensor copies neither
// `values` nor `shape`, so both vectors must outlive the tensor.
template <class T>
DLTensor tensor(std::vector<T> &values, std::vector<int64_t> &shape) {
  DLTensor result{}; // null strides: row-major
  result.data = values.data();
  result.device.device_type = kDLCPU;
  result.ndim = static_cast<int32_t>(shape.size());
  result.dtype.code = static_cast<uint8_t>(std::is_floating_point<T>::value ? kDLFloat : kDLInt);
  result.dtype.bits = 8 * sizeof(T);
  result.dtype.lanes = 1;
  result.shape = shape.data();
  return result;
}

// Throws an exception with the library's message if `status` is a failure.
void check(nds_status status) {
  if (status != NDS_OK) throw std::runtime_error(nds_last_error());
}

void expect(bool holds, const char *what) {
  if (!holds) throw std::runtime_error(what);
}

struct FreePlan {
  void operator()(nds_plan *plan) const { nds_plan_free(plan); }
};
using Plan = std::unique_ptr<nds_plan, FreePlan>;

// A parallel-for of the host, which is this program. A real host would use its
// existing threads. This example starts new threads. The threads and the calling
// thread take tasks until none is left.
struct Host {
  uint32_t workers;
  size_t tasks_run;

  // Runs each task once and returns after all tasks have returned. The library calls
  // this function. The function must not throw, because the library is not C++ code.
  static int32_t parallel_for(void *ctx, size_t tasks, void (*task)(void *, size_t), void *argument) noexcept {
    auto &host = *static_cast<Host *>(ctx);
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t index; (index = next.fetch_add(1)) < tasks;) task(argument, index);
    };
    std::vector<std::thread> helpers;
    try {
      helpers.reserve(host.workers);
      while (helpers.size() + 1 < std::min<size_t>(host.workers, tasks)) helpers.emplace_back(work);
    } catch (const std::exception &) {
      // No further thread can be started. The calling thread and the threads that
      // were started run all tasks.
    }
    work();
    for (auto &helper : helpers) helper.join();
    host.tasks_run += tasks;
    return 0;
  }
};

// Writes one token of each sequence to the cache, in place: the token of
// sequence 0 at position 2, and the token of sequence 1 at position 0.
void decode_step() {
  std::vector<int64_t> cache_shape{2, 1, 3, 2}, token_shape{2, 1, 1, 2}, batch{2};
  std::vector<float> cache_values(12), token_values{1, 2, 3, 4};
  std::vector<int64_t> positions{2, 0};
  DLTensor cache = tensor(cache_values, cache_shape);
  const DLTensor token = tensor(token_values, token_shape), write_indices = tensor(positions, batch);
  check(nds_tensor_scatter(&cache, &token, &write_indices, /*axis*/ 2, /*circular*/ 0, &cache, nullptr));
  expect(cache_values == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}, "the cache is wrong");
}

// Gathers the same rows of a table twice, with one plan. The values of the table
// change between the two gathers.
void gather_on_host_threads() {
  const size_t rows = 10000, width = 64, lookups = 20000;
  std::vector<int64_t> table_shape{rows, width}, ids_shape{lookups}, output_shape{lookups, width};
  std::vector<float> table_values(rows * width), output_values(lookups * width);
  std::vector<int32_t> ids_values(lookups);
  for (size_t i = 0; i < lookups; i++) ids_values[i] = static_cast<int32_t>(i * 7919 % rows);
  const DLTensor table = tensor(table_values, table_shape), ids = tensor(ids_values, ids_shape);
  DLTensor output = tensor(output_values, output_shape);

  Host host{4, 0};
  const nds_pool pool{sizeof(nds_pool), host.workers, &host, Host::parallel_for};
  nds_options options{}; // all fields zero: the defaults
  options.size = sizeof options;
  options.pool = &pool;

  nds_plan *made = nullptr;
  check(nds_plan_gather(&table, &ids, /*axis*/ 0, &options, &made));
  const Plan plan(made);
  for (const float first : {0.0F, 1.0F}) {
    std::iota(table_values.begin(), table_values.end(), first);
    check(nds_plan_run(plan.get(), &table, nullptr, &output, &options));
    for (size_t i = 0; i < output_values.size(); i++) {
      const size_t row = static_cast<size_t>(ids_values[i / width]);
      expect(output_values[i] == table_values[row * width + i % width], "the gather is wrong");
    }
  }
  std::printf("%zu tasks ran on %u threads of the host\n", host.tasks_run, host.workers);
}

int main() {
  try {
    decode_step();
    gather_on_host_threads();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
