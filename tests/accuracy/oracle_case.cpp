#include "oracle_case.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/case.hpp"

namespace gdr::test {
namespace {

const std::filesystem::path kFolder = GDR_ORACLE_CASES;

Values numbers(const OwnedTensor& tensor) {
  const OwnedTensor wide = tensor.cast(DType::fp64);
  Values result(static_cast<std::size_t>(wide.num_elems()));
  std::memcpy(result.data(), wide.data(), wide.num_bytes());
  return result;
}

}  // namespace

std::string why_no_oracle_cases() {
  if (std::ifstream reason(kFolder / "skipped.txt"); reason)
    return {std::istreambuf_iterator<char>(reason), std::istreambuf_iterator<char>()};
  REQUIRE_MESSAGE(std::filesystem::exists(kFolder / "made_by.txt"),
                  "no cases in " << kFolder.string() << ": run `ctest -R accuracy`, which makes them first");
  return "";
}

OracleCase oracle_case(const std::string& row, int seed) {
  const std::filesystem::path folder = kFolder / row / std::to_string(seed);
  const gdr::Case read = read_case(folder, Direction::bwd);
  OracleCase result;
  Case& c = result.c;
  c.name = row;
  const OwnedTensor& cu_seqlens = read.inputs.at("cu_seqlens");
  REQUIRE(cu_seqlens.dtype() == DType::i32);
  std::vector<std::int32_t> bounds(static_cast<std::size_t>(cu_seqlens.num_elems()));
  std::memcpy(bounds.data(), cu_seqlens.data(), cu_seqlens.num_bytes());
  for (std::size_t n = 0; n + 1 < bounds.size(); ++n) c.lengths.push_back(bounds[n + 1] - bounds[n]);
  c.k_heads = static_cast<int>(read.k_heads);
  c.group = static_cast<int>(read.v_heads / read.k_heads);
  c.dim_k = static_cast<int>(read.dim_k);
  c.dim_v = static_cast<int>(read.dim_v);
  c.pad = 0;
  REQUIRE(read.layout == StateLayout::kv);
  REQUIRE(read.scale == doctest::Approx(c.launch().scale).epsilon(1e-15));

  const Problem p = c.problem();
  for (const auto& [name, tensor] : read.inputs) {
    if (name == "cu_seqlens") continue;
    const bool is_gate = name == "g" || name == "beta", is_state = name == "h0" || name == "dht";
    std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (is_gate) shape.push_back(1);
    if (!is_state) shape.erase(shape.begin());  // batch, which is 1
    const DType dtype = is_gate ? p.gate_dtype : is_state ? p.state_dtype : p.dtype;
    result.inputs[name] = host_tensor(dtype, shape, numbers(tensor));
    REQUIRE(values(result.inputs.at(name)) == numbers(tensor));  // the oracle's numbers, not rounded once more
  }
  for (const auto& [name, tensor] : read.expected) result.expected[name] = numbers(tensor);
  result.expected["ht"] = numbers(read_case(folder, Direction::fwd).expected.at("final_state"));
  return result;
}

}  // namespace gdr::test
