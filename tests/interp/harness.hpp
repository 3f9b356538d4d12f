// Small kernels made by hand for the interpreter's tests: placement, barriers, tensors with known contents.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interp/interp.hpp"
#include "schedule/builder.hpp"

namespace harness {

using Tensors = std::map<std::string, gdr::HostTensor>;

// A tensor whose element number n (row-major) is value(n), rounded to dtype.
gdr::HostTensor tensor(gdr::DType dtype, std::vector<std::int64_t> shape,
                       const std::function<double(std::int64_t)>& value);
// Reproducible values in [-1, 1).
gdr::HostTensor noise(gdr::DType dtype, std::vector<std::int64_t> shape, unsigned seed);
std::vector<double> values(const gdr::HostTensor& tensor);
double rounded(double value, gdr::DType dtype);

// Offsets one after the other (128-byte aligned), room for the barriers behind them, and a name.
void place(gdr::Kernel& kernel);

// For kernels of one role: after every op of the body a barrier, so that ops run as if one by one. Copies are waited
// for; every other op ends in a meeting of all warps.
void serialise(gdr::Kernel& kernel);

// Adds the op to the kernel and a step for it at `position` of the role's body (-1: at the end).
void insert(gdr::Kernel& kernel, const std::string& role, int position, gdr::Op op);
gdr::Op arrive(const std::string& barrier, bool after_copies = false);
gdr::Op wait(const std::string& barrier, int distance = 0);
gdr::Op sync(const std::string& barrier);
void mbarrier(gdr::Kernel& kernel, const std::string& name, int arrivals, int stages = 1);

// A plan of kernels over these tensors, `chunk` rows a chunk.
gdr::Plan plan_of(int chunk, std::vector<gdr::TensorSpec> tensors, std::vector<gdr::Kernel> kernels);

// One sequence of `tokens` tokens, one head.
gdr::LaunchShape one_sequence(std::int64_t tokens);

gdr::TensorSpec chunk_tensor(const std::string& name, gdr::TensorKind kind, int rows, int cols, gdr::DType dtype);
gdr::TensorSpec token_tensor(const std::string& name, gdr::TensorKind kind, int chunk, int cols, gdr::DType dtype);
gdr::TensorSpec sequence_tensor(const std::string& name, gdr::TensorKind kind, int rows, int cols, gdr::DType dtype);

// All orders and landings with a few seeds each: the outputs must not depend on them. Returns the tensors afterwards.
Tensors run_everywhere(const gdr::Plan& plan, const gdr::LaunchShape& shape, const Tensors& inputs, bool exact = false);
// One run with the given options.
Tensors run(const gdr::Plan& plan, const gdr::LaunchShape& shape, const Tensors& inputs,
            const gdr::InterpOptions& options = {});

// Two roles: `loader` copies chunk after chunk of x into a tile of `stages` slots, `adder` adds them up in registers,
// beginning with h0, and writes the running sum of every chunk to y and the last one to h1. Barriers: x_arrived,
// x_free.
constexpr int kPipelineRows = 16, kPipelineCols = 32;
std::vector<gdr::TensorSpec> pipeline_tensors();
gdr::Kernel pipeline(int stages, gdr::LoopKind loop = gdr::LoopKind::chunks_ascending);
Tensors pipeline_inputs(std::int64_t tokens, int sequences = 1);

// The text of the fault that some run of `seeds` runs under every order and landing reports; "" if none does.
std::string fault_of(const gdr::Plan& plan, const gdr::LaunchShape& shape, const Tensors& inputs, int seeds = 8);

// Both lists, element by element, exactly.
void check_equal(const std::vector<double>& found, const std::vector<double>& wanted);
void check_near(const std::vector<double>& found, const std::vector<double>& wanted, double relative);

}  // namespace harness
