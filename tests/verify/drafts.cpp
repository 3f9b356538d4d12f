// The correct kernels of draft.hpp.
#include "draft.hpp"

namespace gdr::testing {
namespace {

using enum TensorKind;
using enum TensorIndex;

// Roles, tiles and tensors that `pipeline` and `bulk_store` share.
Draft pipeline_parts(int stages) {
  Draft d;
  d.tensor("x", input, token, 32, 64);
  d.tensor("y", output, token, 32, 32);
  d.role("loader", 2);
  d.role("consumer", 4);
  d.smem("x", 32, 64, {.stages = stages});
  d.smem("p", 32, 32);
  d.acc("consumer", "s", 32, 32, 2, 2);
  d.mbarrier("x_arrived", 2, stages);
  d.mbarrier("x_free", 4, stages);
  d.meeting("consumer_meet", 1, 128);

  d.wait("loader", "x_free", stages);
  d.copy_in("loader", "x_in", "x", "x");
  d.arrive("loader", "x_arrived", true);
  d.wait("consumer", "x_arrived");
  d.mma("consumer", "s_from_x", "s", "x", Arg("x").t());
  d.arrive("consumer", "x_free");
  return d;
}

}  // namespace

Plan pipeline(int stages) {
  Draft d = pipeline_parts(stages);
  d.op("consumer", OpKind::store, "p_store", {"p", "s"});
  d.sync("consumer", "consumer_meet");
  d.mma("consumer", "s_from_p", "s", "p", Arg("p").t());
  d.sync("consumer", "consumer_meet");
  d.copy_out("consumer", "y_out", "y", "s");
  return d.finish();
}

Plan bulk_store() {
  Draft d = pipeline_parts(2);
  d.op("consumer", OpKind::store, "p_store", {"p", "s"});
  d.fence("consumer");
  d.sync("consumer", "consumer_meet");
  Op& out = d.copy_out("consumer", "y_out", "y", Arg("p").async());
  out.mechanism = Mechanism::bulk;
  d.sync("consumer", "consumer_meet");
  return d.finish();
}

Plan split_tile() {
  Draft d;
  d.tensor("h", input, TensorIndex::chunk, 64, 32);
  d.tensor("x", input, token, 32, 64);
  d.tensor("y", output, token, 32, 32);
  d.role("loader", 2);
  d.role("consumer", 2);
  d.smem("h", 64, 32, {.parts = 2, .resident = 1});
  d.frag("consumer", "xr", 32, 64, 2);
  d.acc("consumer", "s", 32, 32, 2, 1);
  for (const char* name : {"h0_arrived", "h1_arrived", "h0_again"}) d.mbarrier(name, 2);
  for (const char* name : {"h0_free", "h1_free", "h0_again_free"}) d.mbarrier(name, 2);

  d.op("consumer", OpKind::load, "x_load", {"xr", "x"});
  const auto pass = [&](const char* arrived, const char* free, const char* last_free, int distance, int part,
                        int number, bool adds) {
    d.wait("loader", last_free, distance);
    d.copy_in("loader", "h_in" + std::to_string(number), Arg("h").part(part), Arg("h").part(part));
    d.arrive("loader", arrived, true);
    d.wait("consumer", arrived);
    d.mma("consumer", "s_from_h" + std::to_string(number), "s", Arg("xr").cols(part * 32, part * 32 + 32),
          Arg("h").part(part), adds);
    d.arrive("consumer", free);
  };
  pass("h0_arrived", "h0_free", "h0_again_free", 1, 0, 0, false);
  pass("h1_arrived", "h1_free", "h0_free", 0, 1, 1, true);
  pass("h0_again", "h0_again_free", "h1_free", 0, 0, 2, true);
  d.copy_out("consumer", "y_out", "y", "s");
  return d.finish();
}

Plan alias() {
  Draft d;
  d.tensor("u", input, token, 32, 32);
  d.tensor("y", output, token, 32, 32);
  d.role("loader", 1);
  d.role("first", 2);
  d.role("second", 2);
  d.smem("u", 32, 32);
  d.smem("w", 32, 32, {.offset = 0});
  d.acc("first", "s", 32, 32, 2, 1);
  d.acc("second", "t", 32, 32, 2, 1);
  d.mbarrier("u_arrived", 1);
  d.mbarrier("w_ready", 2);
  d.mbarrier("w_free", 2);
  d.meeting("first_meet", 1, 64);

  d.wait("loader", "w_free", 1);
  d.copy_in("loader", "u_in", "u", "u");
  d.arrive("loader", "u_arrived", true);
  d.wait("first", "u_arrived");
  d.mma("first", "s_from_u", "s", "u", Arg("u").t());
  d.sync("first", "first_meet");
  d.op("first", OpKind::store, "w_store", {"w", "s"});
  d.arrive("first", "w_ready");
  d.wait("second", "w_ready");
  d.mma("second", "t_from_w", "t", "w", Arg("w").t());
  d.arrive("second", "w_free");
  d.copy_out("second", "y_out", "y", "t");
  return d.finish();
}

Plan vectors() {
  Draft d;
  d.tensor("g", input, TensorIndex::chunk, 1, 64, DType::fp32);
  d.tensor("x", input, token, 64, 64);
  d.tensor("y", output, TensorIndex::chunk, 1, 64, DType::fp32);
  d.role("loader", 1);
  d.role("worker", 4);
  d.vec("gam", 64);
  d.vec("row", 64, 2);
  d.vec("col", 64, 2);
  d.vec("all", 1, 4);
  d.vec("run", 64);
  d.vec("out", 64);
  d.acc("worker", "s", 64, 64, 2, 2);
  d.mbarrier("gam_arrived", 1);
  d.mbarrier("gam_free", 4);
  d.meeting("worker_meet", 1, 128);

  d.wait("loader", "gam_free", 1);
  d.copy_in("loader", "gam_in", "gam", "g");
  d.arrive("loader", "gam_arrived", true);
  d.op("worker", OpKind::load, "x_load", {"s", "x"});
  d.wait("worker", "gam_arrived");
  d.map("worker", "s_map", "s[i,j] = select(i>=j, exp(gam[i]-gam[C-1])*s[i,j], 0)", {"s", "gam"}, true);
  d.reduce("worker", "row_sum", ReduceAxis::cols, "row[i] = gam[j]*s[i,j]", {"row", "s", "gam"});
  d.reduce("worker", "col_sum", ReduceAxis::rows, "col[j] = s[i,j]", {"col", "s"});
  d.reduce("worker", "all_sum", ReduceAxis::all, "all[0] = s[i,j]", {Arg("all").cols(0, 1), "s"});
  d.sync("worker", "worker_meet");
  Op& scan = d.op("worker", OpKind::scan, "run_scan", {"run", "row", "col", Arg("all").cols(0, 1), "gam"});
  scan.expr = "run[i] = all[0] + suffix(row[i]-col[i]) + before(gam[i])";
  d.sync("worker", "worker_meet");
  d.map("worker", "out_map", "out[i] = run[i]*gam[i]", {"out", "run", "gam"});
  d.sync("worker", "worker_meet");
  d.arrive("worker", "gam_free");
  d.copy_out("worker", "y_out", "y", "out");
  return d.finish();
}

}  // namespace gdr::testing
