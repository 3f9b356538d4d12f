#include "cli/case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "cli/npy.hpp"
#include "config/file.hpp"
#include "config/json.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;
constexpr std::int64_t kMostHeads = 1 << 20;
constexpr std::int64_t kMostDim = 1 << 20;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of case.json; it lists every sequence
constexpr std::array<Choice<StateLayout>, 2> kLayouts = {{{"kv", StateLayout::kv}, {"vk", StateLayout::vk}}};

std::string text(const Dims& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

// cu_seqlens as both case.json and cu_seqlens.npy have it.
void check_cu_seqlens(const std::filesystem::path& path, const OwnedTensor& tensor,
                      const std::vector<JsonValue>& list) {
  if (tensor.dtype() != DType::i32 && tensor.dtype() != DType::i64)
    fail(ErrorKind::config, "GDR-R02", "{}: dtype {}; expected i32 or i64.", path.string(), to_string(tensor.dtype()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::int64_t value = 0;
    if (tensor.dtype() == DType::i32) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, tensor.data() + i * sizeof(narrow), sizeof(narrow));
      value = narrow;
    } else {
      std::memcpy(&value, tensor.data() + i * sizeof(value), sizeof(value));
    }
    const std::int64_t stated = list[i].integer<std::int64_t>(0, kMostTokens);
    if (value != stated)
      fail(ErrorKind::config, "GDR-R02", "{}: element {} is {}; case.json says {} at {}.", path.string(), i, value,
           stated, list[i].path());
  }
}

class CaseReader {
 public:
  CaseReader(const std::filesystem::path& folder, Direction direction) : folder_(folder), direction_(direction) {}

  Case read() {
    const std::filesystem::path path = folder_ / "case.json";
    const JsonDocument document =
        JsonDocument::parse(read_file(path.string(), kMostBytes), path.string(), {.max_bytes = kMostBytes});
    ObjectReader reader = document.root().object();
    read_sizes(reader);
    const bool has_h0 = reader.boolean("has_h0"), has_dht = reader.boolean("has_dht");
    const JsonValue cu = reader.at("cu_seqlens");
    // How oracle.py drew the case; of no use here.
    for (const char* key :
         {"lens", "pad_rows", "seed", "gate_range", "gate_scale", "key_cosine", "fixed_beta", "aux_rounding", "files"})
      reader.find(key);
    reader.finish();

    for (const char* name : {"q", "k", "v", "g", "beta"}) read_input(name);
    if (has_h0) read_input("h0");
    if (direction_ == Direction::bwd) {
      read_input("do");
      if (has_dht) read_input("dht");
    }
    if (!cu.is_null()) {
      read_input("cu_seqlens");
      const std::size_t count = static_cast<std::size_t>(case_.sequences) + 1;
      check_cu_seqlens(folder_ / "cu_seqlens.npy", case_.inputs.at("cu_seqlens"), cu.array(count, count));
    } else if (case_.sequences != case_.batch) {
      fail(ErrorKind::config, "GDR-R02",
           "{}: N is {}; without cu_seqlens every one of the B = {} batch entries is a sequence.", path.string(),
           case_.sequences, case_.batch);
    }
    for (const std::string& name : output_names(direction_)) read_expected(name);
    return std::move(case_);
  }

 private:
  void read_sizes(ObjectReader& reader) {
    case_.batch = reader.integer<std::int64_t>("B", 0, kMostTokens);
    case_.tokens = reader.integer<std::int64_t>("T", 0, kMostTokens);
    case_.sequences = reader.integer<std::int64_t>("N", 0, kMostTokens);
    case_.k_heads = reader.integer<std::int64_t>("Hk", 1, kMostHeads);
    case_.v_heads = reader.integer<std::int64_t>("Hv", 1, kMostHeads);
    case_.dim_k = reader.integer<std::int64_t>("K", 1, kMostDim);
    case_.dim_v = reader.integer<std::int64_t>("V", 1, kMostDim);
    case_.scale = reader.number("scale");
    case_.layout = reader.choice("layout", kLayouts);
  }

  OwnedTensor read_checked(const std::string& file, const std::string& name, bool is_floating) const {
    const std::filesystem::path path = folder_ / (file + ".npy");
    OwnedTensor tensor = read_npy(path);
    const Dims expected = case_.shape_of(name);
    if (!std::equal(tensor.shape().begin(), tensor.shape().end(), expected.begin(), expected.end()))
      fail(ErrorKind::config, "GDR-R02", "{}: shape {}; the sizes in case.json make it {}.", path.string(),
           text(tensor.shape()), text(expected));
    if (is_floating && (tensor.dtype() == DType::i32 || tensor.dtype() == DType::i64))
      fail(ErrorKind::config, "GDR-R02", "{}: dtype {}; expected a floating type.", path.string(),
           to_string(tensor.dtype()));
    return tensor;
  }

  void read_input(const std::string& name) { case_.inputs[name] = read_checked(name, name, name != "cu_seqlens"); }

  void read_expected(const std::string& name) {
    if (std::filesystem::exists(folder_ / ("out_" + name + ".npy")))
      case_.expected[name] = read_checked("out_" + name, name, true);
  }

  const std::filesystem::path& folder_;
  Direction direction_;
  Case case_;
};

}  // namespace

Dims Case::shape_of(const std::string& name) const {
  if (name == "q" || name == "k" || name == "dq" || name == "dk") return {batch, tokens, k_heads, dim_k};
  if (name == "v" || name == "do" || name == "o" || name == "dv") return {batch, tokens, v_heads, dim_v};
  if (name == "g" || name == "beta" || name == "dg" || name == "dbeta") return {batch, tokens, v_heads};
  if (name == "cu_seqlens") return {sequences + 1};
  internal_check(name == "h0" || name == "dht" || name == "dh0" || name == "final_state", "a tensor of no known name");
  if (layout == StateLayout::vk) return {sequences, v_heads, dim_v, dim_k};
  return {sequences, v_heads, dim_k, dim_v};
}

Case read_case(const std::filesystem::path& folder, Direction direction) {
  return CaseReader(folder, direction).read();
}

const std::vector<std::string>& output_names(Direction direction) {
  static const std::vector<std::string> fwd = {"o", "final_state"};
  static const std::vector<std::string> bwd = {"dq", "dk", "dv", "dg", "dbeta", "dh0"};
  return direction == Direction::fwd ? fwd : bwd;
}

}  // namespace gdr
