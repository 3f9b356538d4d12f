#include "config/arch.hpp"

#include <string>
#include <utility>

#include "config/header.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

constexpr std::int64_t kMaxSmemBytes = std::int64_t{1} << 24;

Features read_features(ObjectReader reader) {
  Features features;
  for (const FeatureName& feature : feature_names()) features.*feature.field = reader.boolean(feature.name);
  reader.finish();
  return features;
}

std::vector<CompileTarget> read_targets(const std::vector<JsonValue>& values, const Features& features) {
  std::vector<Choice<bool Features::*>> choices;
  for (const FeatureName& feature : feature_names()) choices.push_back({feature.name, feature.field});
  std::vector<CompileTarget> targets;
  for (const JsonValue& value : values) {
    ObjectReader reader = value.object();
    CompileTarget target{read_config_name(reader), features};
    for (const JsonValue& lack : reader.array("lacks"))
      target.features.*lack.choice(std::span<const Choice<bool Features::*>>(choices)) = false;
    reader.finish();
    targets.push_back(std::move(target));
  }
  return targets;
}

void read_limits(ObjectReader reader, Arch& arch) {
  arch.smem_per_block_optin_bytes = reader.integer("smem_per_block_optin_bytes", std::int64_t{1024}, kMaxSmemBytes);
  arch.smem_per_sm_bytes = reader.integer("smem_per_sm_bytes", std::int64_t{1024}, kMaxSmemBytes);
  arch.smem_reserved_per_block_bytes =
      reader.integer("smem_reserved_per_block_bytes", std::int64_t{0}, std::int64_t{65536});
  arch.registers_per_sm = reader.integer("registers_per_sm", 1024, 1 << 20);
  arch.max_registers_per_thread = reader.integer("max_registers_per_thread", 16, 1024);
  arch.register_allocation_unit = reader.integer("register_allocation_unit", 1, 4096);
  arch.max_threads_per_block = reader.integer("max_threads_per_block", 32, 4096);
  arch.max_threads_per_sm = reader.integer("max_threads_per_sm", 32, 16384);
  arch.max_blocks_per_sm = reader.integer("max_blocks_per_sm", 1, 256);
  reader.finish();
}

ArchRates read_rates(ObjectReader reader) {
  ArchRates rates;
  rates.product = reader.string("product");
  rates.num_sms = reader.integer("num_sms", 1, 100000);
  rates.sm_clock_mhz = reader.integer("sm_clock_mhz", 1, 100000);
  rates.bf16_mma_flops_per_clock_per_sm = reader.integer("bf16_mma_flops_per_clock_per_sm", 1, 1 << 20);
  rates.smem_bytes_per_clock_per_sm = reader.integer("smem_bytes_per_clock_per_sm", 1, 1 << 20);
  rates.hbm_bytes_per_second = reader.integer("hbm_bytes_per_second", std::int64_t{1}, std::int64_t{1} << 50);
  rates.l2_bytes = reader.integer("l2_bytes", std::int64_t{1}, std::int64_t{1} << 40);
  reader.finish();
  return rates;
}

// Every figure above has its source, and nothing else has one.
std::map<std::string, std::string> read_sources(ObjectReader reader) {
  constexpr std::string_view kFigures[] = {
      "targets",
      "features",
      "smem_per_block_optin_bytes",
      "smem_per_sm_bytes",
      "smem_reserved_per_block_bytes",
      "registers_per_sm",
      "max_registers_per_thread",
      "register_allocation_unit",
      "max_threads_per_block",
      "max_threads_per_sm",
      "max_blocks_per_sm",
      "num_sms",
      "sm_clock_mhz",
      "bf16_mma_flops_per_clock_per_sm",
      "smem_bytes_per_clock_per_sm",
      "hbm_bytes_per_second",
      "l2_bytes",
  };
  std::map<std::string, std::string> sources;
  for (const std::string_view figure : kFigures) sources.emplace(figure, read_sentence(reader, figure));
  reader.finish();
  return sources;
}

}  // namespace

const std::array<FeatureName, 13>& feature_names() {
  static constexpr std::array<FeatureName, 13> kNames = {{{"cp_async", &Features::cp_async},
                                                          {"ldmatrix", &Features::ldmatrix},
                                                          {"mma_bf16", &Features::mma_bf16},
                                                          {"mbarrier", &Features::mbarrier},
                                                          {"mbarrier_try_wait", &Features::mbarrier_try_wait},
                                                          {"bulk_copy", &Features::bulk_copy},
                                                          {"tensor_copy", &Features::tensor_copy},
                                                          {"stmatrix", &Features::stmatrix},
                                                          {"clusters", &Features::clusters},
                                                          {"setmaxnreg", &Features::setmaxnreg},
                                                          {"wgmma", &Features::wgmma},
                                                          {"tcgen05", &Features::tcgen05},
                                                          {"f32x2", &Features::f32x2}}};
  return kNames;
}

Arch read_arch(const JsonDocument& document) {
  ObjectReader reader = document.root().object();
  Arch arch;
  arch.name = read_config_header(reader);
  arch.family = reader.string("family");
  ObjectReader capability = reader.object("compute_capability");
  arch.compute_capability_major = capability.integer("major", 1, 99);
  arch.compute_capability_minor = capability.integer("minor", 0, 9);
  capability.finish();
  arch.features = read_features(reader.object("features"));
  arch.targets = read_targets(reader.array("targets", 1, 8), arch.features);
  read_limits(reader.object("limits"), arch);
  arch.rates = read_rates(reader.object("rates"));
  arch.sources = read_sources(reader.object("sources"));
  reader.finish();

  if (arch.targets.front().features != arch.features)
    fail(ErrorKind::config, "GDR-C09",
         "{}: /targets/0/lacks: the first target must lack nothing, since features are those of the first target.",
         document.source());
  if (arch.smem_per_block_optin_bytes + arch.smem_reserved_per_block_bytes > arch.smem_per_sm_bytes)
    fail(ErrorKind::config, "GDR-C09",
         "{}: /limits/smem_per_block_optin_bytes: {} bytes and {} reserved are more than the {} bytes of an SM.",
         document.source(), arch.smem_per_block_optin_bytes, arch.smem_reserved_per_block_bytes,
         arch.smem_per_sm_bytes);
  return arch;
}

}  // namespace gdr
