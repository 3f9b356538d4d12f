// The shipped configurations against the facts of the design, written out a second time.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

#include "config/registry.hpp"
#include "expect_error.hpp"

using gdr::Arch;
using gdr::ConfigKind;

TEST_CASE("shipped architectures: limits") {
  struct Row {
    std::string name;
    int major, minor;
    std::int64_t optin, per_sm, two_blocks;  // bytes of shared memory: a block, an SM, a block if two share an SM
    int threads_per_sm;
  };
  const Row rows[] = {
      {"sm_80", 8, 0, 166'912, 167'936, 82'944, 2048},    {"sm_86", 8, 6, 101'376, 102'400, 50'176, 1536},
      {"sm_89", 8, 9, 101'376, 102'400, 50'176, 1536},    {"sm_90", 9, 0, 232'448, 233'472, 115'712, 2048},
      {"sm_100", 10, 0, 232'448, 233'472, 115'712, 2048}, {"sm_120", 12, 0, 101'376, 102'400, 50'176, 1536},
      {"sm_121", 12, 1, 101'376, 102'400, 50'176, 1536},
  };
  const gdr::Budget all = gdr::load_budget("default");
  const gdr::Budget two_blocks = gdr::load_budget("two_blocks");
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    names.push_back(row.name);
    const Arch arch = gdr::load_arch(row.name);
    CHECK(arch.name == row.name);
    CHECK(arch.compute_capability_major == row.major);
    CHECK(arch.compute_capability_minor == row.minor);
    CHECK(arch.smem_per_block_optin_bytes == row.optin);
    CHECK(arch.smem_per_sm_bytes == row.per_sm);
    CHECK(arch.smem_reserved_per_block_bytes == 1024);
    CHECK(arch.registers_per_sm == 65536);
    CHECK(arch.max_registers_per_thread == 255);
    CHECK(arch.register_allocation_unit == 256);
    CHECK(arch.max_threads_per_block == 1024);
    CHECK(arch.max_threads_per_sm == row.threads_per_sm);
    CHECK(gdr::smem_limit_bytes(all, arch) == row.optin);
    CHECK(gdr::smem_limit_bytes(two_blocks, arch) == row.two_blocks);
    CHECK(arch.sources.size() == 17);
  }
  CHECK(gdr::config_names(ConfigKind::arch) == names);
}

TEST_CASE("shipped architectures: features and targets") {
  struct Row {
    std::string name;
    std::set<std::string> features;                                      // besides what every target has
    std::vector<std::pair<std::string, std::set<std::string>>> targets;  // and what they lack
  };
  const std::set<std::string> common = {"cp_async", "ldmatrix", "mma_bf16", "mbarrier"};
  const std::set<std::string> from_90 = {"mbarrier_try_wait", "bulk_copy", "tensor_copy",
                                         "stmatrix",          "clusters",  "setmaxnreg"};
  const auto plus = [](std::set<std::string> set, std::initializer_list<std::string> more) {
    set.insert(more.begin(), more.end());
    return set;
  };
  const Row rows[] = {
      {"sm_80", {}, {{"sm_80", {}}}},
      {"sm_86", {}, {{"sm_86", {}}}},
      {"sm_89", {}, {{"sm_89", {}}}},
      {"sm_90", plus(from_90, {"wgmma"}), {{"sm_90a", {}}, {"sm_90", {"setmaxnreg", "wgmma"}}}},
      {"sm_100",
       plus(from_90, {"tcgen05", "f32x2"}),
       {{"sm_100f", {}}, {"sm_100a", {}}, {"sm_100", {"setmaxnreg", "tcgen05"}}}},
      {"sm_120", plus(from_90, {"f32x2"}), {{"sm_120f", {}}, {"sm_120a", {}}, {"sm_120", {"setmaxnreg"}}}},
      {"sm_121", plus(from_90, {"f32x2"}), {{"sm_121f", {}}, {"sm_121a", {}}, {"sm_121", {"setmaxnreg"}}}},
  };
  const auto names_of = [](const gdr::Features& features) {
    std::set<std::string> names;
    for (const gdr::FeatureName& feature : gdr::feature_names())
      if (features.*feature.field) names.emplace(feature.name);
    return names;
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Arch arch = gdr::load_arch(row.name);
    std::set<std::string> expected = row.features;
    expected.insert(common.begin(), common.end());
    CHECK(names_of(arch.features) == expected);
    REQUIRE(arch.targets.size() == row.targets.size());
    for (std::size_t i = 0; i < row.targets.size(); ++i) {
      const std::string& name = row.targets[i].first;
      CAPTURE(name);
      CHECK(arch.targets[i].name == name);
      std::set<std::string> has = expected;
      for (const std::string& lack : row.targets[i].second) has.erase(lack);
      CHECK(names_of(arch.targets[i].features) == has);
    }
  }
}

TEST_CASE("shipped architectures: rates of the reference products") {
  struct Row {
    std::string name;
    int num_sms;
    double bf16_tflops;  // dense, published (sm_90, sm_100: what mma.sync is taken to reach)
    double hbm_gb_per_second;
  };
  const Row rows[] = {{"sm_80", 108, 312, 2039}, {"sm_86", 82, 71.2, 936},   {"sm_89", 128, 165.2, 1008},
                      {"sm_90", 132, 618, 4800}, {"sm_100", 148, 561, 8000}, {"sm_120", 170, 209.5, 1792},
                      {"sm_121", 48, 59.4, 273}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const gdr::ArchRates rates = gdr::load_arch(row.name).rates;
    CHECK(rates.num_sms == row.num_sms);
    const double flops = 1e6 * rates.sm_clock_mhz * rates.num_sms * rates.bf16_mma_flops_per_clock_per_sm;
    CHECK(flops / 1e12 == doctest::Approx(row.bf16_tflops).epsilon(0.003));
    CHECK(static_cast<double>(rates.hbm_bytes_per_second) / 1e9 == row.hbm_gb_per_second);
    CHECK(rates.smem_bytes_per_clock_per_sm == 128);
  }
}

TEST_CASE("shipped shapes: all head counts of the design occur, with K = V = 128") {
  std::set<std::pair<int, int>> heads;
  for (const std::string_view name : gdr::config_names(ConfigKind::shape)) {
    CAPTURE(std::string(name));
    const gdr::Shape shape = gdr::load_shape(std::string(name));
    CHECK(shape.name == name);
    CHECK(shape.head_dim_k == 128);
    CHECK(shape.head_dim_v == 128);
    CHECK(shape.dtype == gdr::DType::bf16);
    CHECK(shape.state_dtype == gdr::DType::fp32);
    CHECK(shape.tokens == 32768);
    CHECK(shape.sequences == 1);
    heads.emplace(shape.k_heads, shape.v_heads);
  }
  for (const auto& pair : {std::pair{16, 64}, {16, 48}, {16, 32}, {8, 32}, {8, 16}, {4, 8}, {2, 8}, {2, 4}}) {
    CAPTURE(pair.first);
    CAPTURE(pair.second);
    CHECK(heads.count(pair) == 1);
  }
  const gdr::Shape next = gdr::load_shape("qwen3_next");
  CHECK(next.model == "Qwen3-Next-80B-A3B");
  CHECK(next.k_heads == 16);
  CHECK(next.v_heads == 32);
  CHECK(next.group() == 2);
  CHECK(gdr::load_shape("qwen3_next_tp8").k_heads == 2);
  CHECK(gdr::load_shape("qwen3_5_27b").group() == 3);
}

TEST_CASE("shipped budgets: each is named as its file and some architecture grants it") {
  const std::vector<std::string_view> names = gdr::config_names(ConfigKind::budget);
  CHECK(names == std::vector<std::string_view>{"default", "sm_120", "two_blocks"});
  for (const std::string_view name : names) CHECK(gdr::load_budget(std::string(name)).name == name);
  CHECK(gdr::smem_limit_bytes(gdr::load_budget("sm_120"), gdr::load_arch("sm_90")) == 101'376);
  CHECK(gdr::smem_limit_bytes(gdr::load_budget("sm_120"), gdr::load_arch("sm_120")) == 101'376);
}
