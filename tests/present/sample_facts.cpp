#include "sample_facts.hpp"

namespace gdr::test {

PlanFacts sample_facts() {
  KernelFacts kernel;
  kernel.kernel_key = "00112233445566778899aabbccddeeff";
  kernel.blocks = 32;
  kernel.flops = 12'345'678'901;
  kernel.hbm_bytes = 987'654'321;
  kernel.l2_bytes = 1'234'567'890;
  kernel.workspace_bytes = 123'456'789;
  kernel.floor_us = 551.2345678;
  kernel.predicted_us = 1234.5678;
  kernel.cycles_per_iteration = 7700.25;
  kernel.lower_bound_bytes = 22272;
  kernel.packing_is_optimal = true;
  kernel.direct_port_bytes = 40000;
  kernel.registers_note = "loader 24, state 120, pairs 72";

  PlanFacts facts;
  facts.shape = "small";
  facts.budget = "tight";
  facts.request_key = "ffeeddccbbaa99887766554433221100";
  facts.workload = {4096, 2, 4, 8};
  facts.kernels = {kernel};
  facts.candidates = {{"sample c32, split in 2", Verdict::chosen, 22328, 120, 1234.5678, "fits and is fastest"},
                      {"sample c16, split in 2", Verdict::runner_up, 12000, 110, 2100, "slower"},
                      {"sample c32, whole", Verdict::refused, 28000, 120, 0, "3,424 bytes too many"}};
  facts.passes = {{"pack", 1500, "22,272 bytes"}, {"verify", 0, "no faults"}};
  return facts;
}

}  // namespace gdr::test
