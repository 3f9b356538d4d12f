#include "interp/interp.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "interp/execute.hpp"

namespace gdr {
namespace interp {
namespace {

struct BlockResult {
  std::vector<Traffic> traffic;
  std::int64_t steps = 0;
  std::exception_ptr error;
};

// A seed for each block, so that what it does does not depend on the thread it runs on.
std::uint64_t seed_of(std::uint64_t seed, int kernel, std::size_t block) {
  Random random(seed);
  Random mixed(random.next() ^ (static_cast<std::uint64_t>(kernel) << 32) ^ static_cast<std::uint64_t>(block));
  return mixed.next();
}

template <typename Real>
BlockResult run_block(const Context& context, int kernel_index, std::uint64_t seed, TensorStore<Real>& tensors) {
  BlockResult result;
  try {
    Executor<Real> executor(context, kernel_index, tensors);
    Machine machine(context, seed, executor);
    machine.run();
    result.traffic = executor.traffic();
    result.steps = machine.num_steps();
  } catch (...) {
    result.error = std::current_exception();
  }
  return result;
}

template <typename Real>
std::vector<BlockResult> run_blocks(const Program& program, const std::vector<Block>& blocks, int kernel_index,
                                    const InterpOptions& options, TensorStore<Real>& tensors) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed_of(options.seed, kernel_index, blocks.size()));
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);

  std::vector<BlockResult> results(blocks.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < order.size(); at = next++) {
      const std::size_t block = order[at];
      results[block] = run_block({&program, &blocks[block], &options}, kernel_index,
                                 seed_of(options.seed, kernel_index, block), tensors);
      if (results[block].error) next = order.size();
    }
  };
  std::vector<std::thread> helpers;
  for (int index = 1; index < options.threads; ++index) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return results;
}

template <typename Real>
KernelStatistics run_kernel(const Plan& plan, int kernel_index, const Launch& launch, const InterpOptions& options,
                            TensorStore<Real>& tensors) {
  const Kernel& kernel = plan.kernels[static_cast<std::size_t>(kernel_index)];
  const Program program = compile(plan, kernel, launch);
  const std::vector<Block> blocks = blocks_of(plan, kernel, launch);
  KernelStatistics statistics;
  statistics.name = kernel.name;
  statistics.blocks = static_cast<std::int64_t>(blocks.size());
  for (const Block& block : blocks) {
    statistics.iterations += block.count;
    if (block.count + 1 > kMaxTime)
      fail(ErrorKind::config, "GDR-I01", "interp: a sequence of {} chunks; at most {} are allowed.", block.count,
           kMaxTime - 1);
  }
  for (BlockResult& result : run_blocks(program, blocks, kernel_index, options, tensors)) {
    if (result.error) std::rethrow_exception(result.error);
    statistics.steps += result.steps;
    for (std::size_t tensor = 0; tensor < result.traffic.size(); ++tensor) {
      if (result.traffic[tensor] == Traffic{}) continue;
      Traffic& sum = statistics.traffic[plan.tensors[tensor].name];
      sum.read_bytes += result.traffic[tensor].read_bytes;
      sum.written_bytes += result.traffic[tensor].written_bytes;
    }
  }
  return statistics;
}

template <typename Real>
InterpResult run_plan(const Plan& plan, const Launch& launch, std::map<std::string, HostTensor>& tensors,
                      const InterpOptions& options) {
  TensorStore<Real> store(plan, launch, tensors);
  InterpResult result;
  for (int index = 0; index < static_cast<int>(plan.kernels.size()); ++index)
    result.kernels.push_back(run_kernel(plan, index, launch, options, store));
  store.finish(launch, options.check);
  store.give_back(launch, tensors);
  return result;
}

}  // namespace
}  // namespace interp

InterpResult interpret(const Plan& plan, const LaunchShape& shape, std::map<std::string, HostTensor>& tensors,
                       const InterpOptions& options) {
  if (plan.kernels.size() > interp::kMaxKernels)
    fail(ErrorKind::check_failed, "GDR-I02", "interp: a plan of {} kernels; at most {} are allowed.",
         plan.kernels.size(), interp::kMaxKernels);
  if (options.threads < 1 || (options.observer && options.threads != 1))
    fail(ErrorKind::config, "GDR-I01", "interp: {} threads; at least 1 is needed, and exactly 1 with an observer.",
         options.threads);
  const interp::Launch launch = interp::make_launch(plan, shape);
  return options.exact ? interp::run_plan<double>(plan, launch, tensors, options)
                       : interp::run_plan<float>(plan, launch, tensors, options);
}

}  // namespace gdr
