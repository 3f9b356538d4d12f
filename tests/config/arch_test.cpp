#include "config/arch.hpp"

#include <doctest/doctest.h>

#include "config/registry.hpp"
#include "edit.hpp"
#include "expect_error.hpp"

namespace {

gdr::Arch read(const std::string& text) { return gdr::read_arch(gdr::JsonDocument::parse(text, "a.json")); }

}  // namespace

TEST_CASE("an arch config is read as written") {
  const gdr::Arch arch = read(std::string(gdr::config_text(gdr::ConfigKind::arch, "sm_120")));
  CHECK(arch == gdr::load_arch("sm_120"));
  CHECK(arch.family == "blackwell_rtx");
  CHECK(arch.rates.product == "GeForce RTX 5090");
  CHECK(arch.rates.l2_bytes == 96 * 1024 * 1024);
  CHECK(arch.sources.at("num_sms") == "NVIDIA RTX Blackwell GPU Architecture whitepaper: 170 SMs");
}

TEST_CASE("faulty arch configs") {
  const std::string good(gdr::config_text(gdr::ConfigKind::arch, "sm_90"));
  const std::string features =
      "cp_async, ldmatrix, mma_bf16, mbarrier, mbarrier_try_wait, bulk_copy, tensor_copy, stmatrix, clusters, "
      "setmaxnreg, wgmma, tcgen05, f32x2";
  const gdr::test::EditRow rows[] = {
      {"/schema_version", "2",
       "GDR-C08 a.json: /schema_version: 2 is a schema version that this gdrjit does not read; it reads 1."},
      {"/schema_version", "", "GDR-C05 a.json: top level: key 'schema_version' is missing."},
      {"/about", "\"\"", "GDR-C08 a.json: /about: \"\" is empty; a sentence is needed."},
      {"/name", "\"SM 90\"",
       "GDR-C08 a.json: /name: \"SM 90\" is no name; allowed are 1 to 64 lower-case letters, digits and underscores."},
      {"/family", "", "GDR-C05 a.json: top level: key 'family' is missing."},
      {"/smem", "1",
       "GDR-C06 a.json: top level: key \"smem\" is unknown; allowed are about, compute_capability, family, features, "
       "limits, name, rates, schema_version, sources, targets."},
      {"/compute_capability/minor", "10",
       "GDR-C08 a.json: /compute_capability/minor: 10 is out of range; allowed are whole numbers from 0 to 9."},
      {"/compute_capability", "9.0", "GDR-C07 a.json: /compute_capability: 9.0 is not an object."},
      {"/features/wgmma", "1", "GDR-C07 a.json: /features/wgmma: 1 is not true or false."},
      {"/features/wgmma", "", "GDR-C05 a.json: /features: key 'wgmma' is missing."},
      {"/features/tma", "true",
       "GDR-C06 a.json: /features: key \"tma\" is unknown; allowed are bulk_copy, clusters, cp_async, f32x2, ldmatrix, "
       "mbarrier, mbarrier_try_wait, mma_bf16, setmaxnreg, stmatrix, tcgen05, tensor_copy, wgmma."},
      {"/targets", "[]", "GDR-C08 a.json: /targets: an array of 0 is too short; at least 1 elements are needed."},
      {"/targets/1/lacks/0", "\"registers\"",
       "GDR-C08 a.json: /targets/1/lacks/0: \"registers\" is not known; allowed are " + features + "."},
      {"/targets/1/lacks", "", "GDR-C05 a.json: /targets/1: key 'lacks' is missing."},
      {"/targets/0/lacks", "[\"wgmma\"]",
       "GDR-C09 a.json: /targets/0/lacks: the first target must lack nothing, since features are those of the first "
       "target."},
      {"/limits/smem_per_block_optin_bytes", "233472",
       "GDR-C09 a.json: /limits/smem_per_block_optin_bytes: 233472 bytes and 1024 reserved are more than the 233472 "
       "bytes of an SM."},
      {"/limits/smem_per_block_optin_bytes", "\"228 KB\"",
       "GDR-C07 a.json: /limits/smem_per_block_optin_bytes: \"228 KB\" is not a whole number from 1024 to 16777216."},
      {"/limits/max_registers_per_thread", "0",
       "GDR-C08 a.json: /limits/max_registers_per_thread: 0 is out of range; allowed are whole numbers from 16 to "
       "1024."},
      {"/rates/hbm_bytes_per_second", "4.8e12",
       "GDR-C07 a.json: /rates/hbm_bytes_per_second: 4800000000000.0 is not a whole number from 1 to "
       "1125899906842624."},
      {"/sources/l2_bytes", "", "GDR-C05 a.json: /sources: key 'l2_bytes' is missing."},
      {"/sources/l2_bytes", "\"\"", "GDR-C08 a.json: /sources/l2_bytes: \"\" is empty; a sentence is needed."},
      {"/sources", "null", "GDR-C07 a.json: /sources: null is not an object."},
  };
  for (const gdr::test::EditRow& row : rows) {
    CAPTURE(row.path);
    CAPTURE(row.value);
    const std::string text = gdr::test::edited(good, row.path, row.value);
    CHECK(gdr::test::error_text(gdr::ErrorKind::config, [&] { read(text); }) == row.error);
  }
}
