#include "config/shape.hpp"

#include <array>

#include "config/header.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

// The matrix unit works on 16 columns at a time; more than 256 would not fit in registers on any target.
int read_head_dim(ObjectReader& reader, std::string_view key) {
  constexpr int kMin = 16, kMax = 256, kStep = 16;
  const JsonValue value = reader.at(key);
  const int head_dim = value.integer(kMin, kMax);
  if (head_dim % kStep != 0) value.reject("is not a multiple of 16; allowed are 16, 32, ... 256.");
  return head_dim;
}

constexpr std::array<Choice<DType>, 4> kDTypes = {
    {{"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}, {"fp64", DType::fp64}}};
constexpr std::array<Choice<DType>, 2> kStateDTypes = {{{"fp32", DType::fp32}, {"fp64", DType::fp64}}};

}  // namespace

Shape read_shape(const JsonDocument& document) {
  constexpr int kMaxHeads = 4096;
  constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;
  ObjectReader reader = document.root().object();
  Shape shape;
  shape.name = read_config_header(reader);
  shape.model = read_sentence(reader, "model");
  shape.k_heads = reader.integer("k_heads", 1, kMaxHeads);
  shape.v_heads = reader.integer("v_heads", 1, kMaxHeads);
  shape.head_dim_k = read_head_dim(reader, "head_dim_k");
  shape.head_dim_v = read_head_dim(reader, "head_dim_v");
  shape.dtype = reader.choice("dtype", kDTypes);
  if (const auto value = reader.find("state_dtype")) shape.state_dtype = value->choice(kStateDTypes);
  shape.tokens = reader.integer_or("tokens", std::int64_t{32768}, std::int64_t{1}, kMaxTokens);
  shape.sequences = reader.integer_or("sequences", std::int64_t{1}, std::int64_t{1}, kMaxTokens);
  reader.finish();

  if (shape.v_heads % shape.k_heads != 0)
    fail(ErrorKind::config, "GDR-C09",
         "{}: /v_heads: {} is not a multiple of k_heads {}; each k-head serves the same number of v-heads.",
         document.source(), shape.v_heads, shape.k_heads);
  if (shape.sequences > shape.tokens)
    fail(ErrorKind::config, "GDR-C09", "{}: /sequences: {} sequences cannot share {} tokens; at least one each.",
         document.source(), shape.sequences, shape.tokens);
  return shape;
}

}  // namespace gdr
