// One fault at a time in a correct kernel: each is found, under its code, with the names that a person needs.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "draft.hpp"
#include "rows.hpp"
#include "verify/verify.hpp"

using namespace gdr;
using namespace gdr::testing;

namespace {

Plan one_stage() { return pipeline(1); }
Plan two_stages() { return pipeline(2); }

}  // namespace

TEST_CASE("synchronisation faults are found") {
  const Row rows[] = {
      {"consumer does not wait for the tile",
       two_stages,
       [](Plan& p) { drop(p, "x_arrived.wait.consumer"); },
       "GDR-V10",
       {"`s_from_x` (role consumer", "reads x bytes", "`x_in` (role loader", "may still be copying",
        "an arrive of role loader with after_copies"}},
      {"loader does not wait for the slot",
       two_stages,
       [](Plan& p) { drop(p, "x_free.wait.loader"); },
       "GDR-V10",
       {"`x_in` (role loader", "copies into x bytes", "`s_from_x` (role consumer", "may still read them",
        "a wait in role loader for an arrival of role consumer after `s_from_x`"}},
      {"nobody says that the tile arrived",
       two_stages,
       [](Plan& p) { drop(p, "x_arrived.arrive.loader"); },
       "GDR-V08",
       {"x_arrived", "expects 2 arrivals", "no op arrives"}},
      {"count too high",
       two_stages,
       [](Plan& p) { ++barrier_of(p, "x_free").arrivals; },
       "GDR-V08",
       {"x_free expects 5 arrivals", "4 warps arrive", "4 warp(s) of role consumer", "never completes"}},
      {"count too low",
       two_stages,
       [](Plan& p) { --barrier_of(p, "x_free").arrivals; },
       "GDR-V08",
       {"x_free expects 3 arrivals", "completes before all have arrived"}},
      {"barrier of fewer stages than its tile",
       two_stages,
       [](Plan& p) { barrier_of(p, "x_arrived").stages = 1; },
       "GDR-V12",
       {"`x_arrived.wait.consumer` (role consumer", "barrier x_arrived (copy 0)",
        "parity it waits for has then gone by"}},
      {"early arrival: the loader's warps run ahead of each other",
       two_stages,
       [](Plan& p) { barrier_of(p, "x_arrived").stages = 1; },
       "GDR-V12",
       {"`x_arrived.arrive.loader` (role loader, warp 0, iteration 1) may arrive on barrier x_arrived (copy 0) before "
        "`x_arrived.arrive.loader` (role loader, warp 1, iteration 0)"}},
      {"distance one too far",
       two_stages,
       [](Plan& p) { op_of(p, "x_free.wait.loader").distance = 3; },
       "GDR-V10",
       {"`x_in`", "copies into x", "`s_from_x`"}},
      {"distance one too far, seen by the parity",
       two_stages,
       [](Plan& p) { op_of(p, "x_free.wait.loader").distance = 3; },
       "GDR-V12",
       {"`x_free.wait.loader`", "x_free"}},
      {"distance one too near: a circle",
       one_stage,
       [](Plan& p) { op_of(p, "x_free.wait.loader").distance = 0; },
       "GDR-V11",
       {"role loader waits at `x_free.wait.loader` (iteration 0) for barrier x_free, copy 0, phase 0",
        "0 of 4 arrivals", "role consumer waits at `x_arrived.wait.consumer`",
        "lacks `x_arrived.arrive.loader` of role loader"}},
      {"stage filled again too early",
       one_stage,
       [](Plan& p) { move_before(p, "x_in", "x_free.wait.loader"); },
       "GDR-V10",
       {"`x_in` (role loader", "copies into x", "`s_from_x`", "1 iteration(s) later"}},
      {"slot given back before the last read",
       two_stages,
       [](Plan& p) { move_before(p, "x_free.arrive.consumer", "s_from_x"); },
       "GDR-V10",
       {"`x_in`", "copies into x", "`s_from_x`", "may still read them"}},
      {"arrival does not mean landing",
       two_stages,
       [](Plan& p) { op_of(p, "x_arrived.arrive.loader").after_copies = false; },
       "GDR-V10",
       {"`s_from_x`", "`x_in`", "may still be copying", "after_copies"}},
      {"arrival in front of the copy",
       two_stages,
       [](Plan& p) { move_before(p, "x_arrived.arrive.loader", "x_in"); },
       "GDR-V10",
       {"`s_from_x`", "`x_in`", "may still be copying"}},
      {"no meeting between store and reads of one role",
       two_stages,
       [](Plan& p) { drop(p, "consumer_meet1"); },
       "GDR-V10",
       {"`s_from_p` (role consumer", "reads p bytes", "`p_store` (role consumer",
        "a sync of role consumer after `p_store`"}},
      {"no meeting between reads and the next store",
       two_stages,
       [](Plan& p) { drop(p, "consumer_meet2"); },
       "GDR-V10",
       {"`p_store` (role consumer", "writes p bytes", "`s_from_p`", "may still read them"}},
      {"second part not loaded",
       split_tile,
       [](Plan& p) { drop(p, "h_in1"); },
       "GDR-V13",
       {"`s_from_h1` (role consumer", "reads h part 1", "finds what op `h_in0` (role loader", "wrote to h part 0",
        "no op before it writes them in this iteration"}},
      {"second part loaded over the first before its last reader",
       split_tile,
       [](Plan& p) { drop(p, "h0_free.wait.loader"); },
       "GDR-V10",
       {"`h_in1` (role loader", "copies into h part 1", "`s_from_h0` (role consumer", "may still read h part 0 there"}},
      {"first part not loaded again",
       split_tile,
       [](Plan& p) { drop(p, "h_in2"); },
       "GDR-V13",
       {"`s_from_h2`", "reads h part 0", "finds what op `h_in1`", "wrote to h part 1", "it means what op `h_in0`"}},
      {"parts read in the wrong order",
       split_tile,
       [](Plan& p) {
         const auto swap_parts = [&](const char* id, int part) {
           for (Operand& o : op_of(p, id).operands)
             if (o.name == "h" && !o.is_tensor) {
               o.part = part;
               o.rows = {part * 32, part * 32 + 32};
             }
         };
         swap_parts("h_in1", 0);
         swap_parts("s_from_h0", 1);
       },
       "GDR-V13",
       {"`s_from_h0`", "reads h part 1", "wrote to h part 0"}},
      {"two live tiles on the same bytes: no order",
       two_stages,
       [](Plan& p) { tile_of(p, "p").offset_bytes = tile_of(p, "x").offset_bytes; },
       "GDR-V10",
       {"`p_store` (role consumer", "writes p bytes", "`s_from_x` (role consumer", "may still read x there"}},
      {"two live tiles on the same bytes: the value is gone",
       alias,
       [](Plan& p) {
         // `first` reads u once more when w lies on it.
         Op again = op_of(p, "s_from_u");
         again.id = "s_again";
         kernel_of(p).ops.push_back(again);
         role_of(p, "first").body.push_back({static_cast<int>(kernel_of(p).ops.size()) - 1, 0, 1});
       },
       "GDR-V13",
       {"`s_again` (role first", "reads u bytes", "finds what op `w_store` (role first", "wrote to w",
        "it means what op `u_in` (role loader) writes"}},
      {"alias whose bytes are refilled too early",
       alias,
       [](Plan& p) { drop(p, "w_free.wait.loader"); },
       "GDR-V10",
       {"`u_in` (role loader", "copies into u", "`t_from_w` (role second", "may still read w there"}},
      {"nobody wrote what is read",
       two_stages,
       [](Plan& p) {
         op_of(p, "x_in").operands[0].rows = {0, 16};
         op_of(p, "x_in").operands[1].rows = {0, 16};
       },
       "GDR-V13",
       {"`s_from_x`", "reads x bytes", "bytes that nothing has written"}},
      {"value of the iteration before",
       one_stage,
       [](Plan& p) {
         move_before(p, "s_from_p", "p_store");
         mean_before(p, "s_from_p", "p_store");
       },
       "GDR-V13",
       {"`s_from_p`", "reads p bytes", "bytes that nothing has written",
        "no op before it writes them in this iteration"}},
      {"value of the iteration before, later on",
       one_stage,
       [](Plan& p) {
         move_before(p, "s_from_p", "p_store");
         mean_before(p, "s_from_p", "p_store");
       },
       "GDR-V13",
       {"`s_from_p` (role consumer, warp 0, iteration 1)",
        "what op `p_store` (role consumer, warp 0, iteration 0) wrote to p"}},
      {"read of the version before",
       two_stages,
       [](Plan& p) {
         // The store moves behind its reader in the role's list; Kernel::ops still says what the read means.
         move_after(p, "p_store", "s_from_p");
       },
       "GDR-V13",
       {"`s_from_p`", "reads p bytes", "it means what op `p_store` (role consumer) writes in iteration"}},
      {"fence left out",
       bulk_store,
       [](Plan& p) { drop(p, "fence.consumer"); },
       "GDR-V15",
       {"`y_out` (role consumer", "reads p bytes", "asynchronous proxy", "`p_store`", "a fence in role consumer"}},
      {"fence before the write",
       bulk_store,
       [](Plan& p) { move_before(p, "fence.consumer", "p_store"); },
       "GDR-V15",
       {"`y_out`", "`p_store`"}},
      {"fence behind the meeting",
       bulk_store,
       [](Plan& p) { move_after(p, "fence.consumer", "consumer_meet1"); },
       "GDR-V15",
       {"`y_out`", "`p_store`"}},
      {"partial sums read before all are there",
       vectors,
       [](Plan& p) { drop(p, "worker_meet1"); },
       "GDR-V10",
       {"`run_scan` (role worker, warp 0", "may still write them", "a sync of role worker"}},
      {"scan read before it is done",
       vectors,
       [](Plan& p) { drop(p, "worker_meet2"); },
       "GDR-V10",
       {"`out_map` (role worker, warp 1", "reads run", "`run_scan` (role worker, warp 0"}},
      {"vector copied out while others write it",
       vectors,
       [](Plan& p) { drop(p, "worker_meet3"); },
       "GDR-V10",
       {"`y_out` (role worker, warp 0", "reads out", "`out_map` (role worker, warp 1"}},
  };
  for (const Row& row : rows) check_found(row);
}

TEST_CASE("one barrier for three consumers where two arrive") {
  Draft d;
  d.tensor("x", TensorKind::input, TensorIndex::token, 32, 64);
  d.role("loader", 1);
  for (const char* role : {"a", "b", "c"}) d.role(role, 2);
  d.smem("x", 32, 64);
  for (const char* role : {"a", "b", "c"}) d.acc(role, std::string("s_") + role, 32, 32, 2, 1);
  d.mbarrier("x_arrived", 1);
  d.mbarrier("x_free", 6);
  d.wait("loader", "x_free", 1);
  d.copy_in("loader", "x_in", "x", "x");
  d.arrive("loader", "x_arrived", true);
  for (const char* role : {"a", "b", "c"}) {
    d.wait(role, "x_arrived");
    const std::string tile = std::string("s_") + role;
    d.mma(role, tile + "_mma", tile.c_str(), "x", Arg("x").t());
    d.arrive(role, "x_free");
  }
  const Plan good = d.finish();
  REQUIRE(verify(good).text() == "");

  Plan two_of_three = good;
  drop(two_of_three, "x_free.arrive.c");
  CHECK(has(verify(two_of_three).text(),
            "GDR-V08 barrier in kernel: barrier x_free expects 6 arrivals a phase, 4 warps "
            "arrive (2 warp(s) of role a at `x_free.arrive.a`, 2 warp(s) of role b at "
            "`x_free.arrive.b`): the phase never completes"));
  barrier_of(two_of_three, "x_free").arrivals = 4;  // consistent, and wrong: c may still read
  const VerifyReport report = verify(two_of_three);
  REQUIRE(report.findings.size() >= 1);
  CHECK(has(report.text(), "GDR-V10 race"));
  CHECK(has(report.text(), "`s_c_mma` (role c"));

  // A fourth of the six arrivals comes from a role that has nothing to do with the tile.
  Plan wrong_role = good;
  op_of(wrong_role, "x_free.arrive.c").barrier = "x_arrived";
  CHECK(has(verify(wrong_role).text(), "GDR-V08"));
}

TEST_CASE("a finding's trace names both ops, the tile and the bytes") {
  Plan plan = pipeline(2);
  drop(plan, "consumer_meet1");
  const VerifyReport report = verify(plan);
  REQUIRE(!report.findings.empty());
  const Finding& finding = report.findings.front();
  CHECK(finding.code == "GDR-V10");
  CHECK(finding.kernel == "kernel");
  CHECK(finding.a.op == "s_from_p");
  CHECK(finding.a.role == "consumer");
  CHECK(finding.b.op == "p_store");
  CHECK(finding.a.iteration == finding.b.iteration);
  CHECK(finding.a.warp != finding.b.warp);
  CHECK(finding.tile == "p");
  const Tile& p = tile_of(plan, "p");
  CHECK(finding.byte_begin >= p.offset_bytes);
  CHECK(finding.byte_end <= p.offset_bytes + 32 * 32 * 2);
  CHECK(finding.byte_begin < finding.byte_end);
  CHECK(finding.text() ==
        "GDR-V10 race in kernel: op `s_from_p` (role consumer, warp 0, iteration 0) reads p bytes 8224..9184 while op "
        "`p_store` (role consumer, warp 1, iteration 0) may still write them: no barrier orders them; a sync of role "
        "consumer after `p_store` and before `s_from_p` would.");
}

TEST_CASE("no more findings than asked for") {
  Plan plan = pipeline(2);
  for (const char* id : {"consumer_meet1", "consumer_meet2", "x_free.wait.loader"}) drop(plan, id);
  const int all = static_cast<int>(verify(plan).findings.size());
  REQUIRE(all > 2);
  const VerifyReport report = verify(plan, VerifyOptions{2});
  CHECK(report.findings.size() == 2);
  CHECK(report.findings_left_out == all - 2);
  CHECK_FALSE(report.ok());
  CHECK(has(report.text(), "more"));
  CHECK_FALSE(verify(plan, VerifyOptions{0}).ok());
}
