// Small kernels written by hand, with their barriers, for the tests of the verifier. Operations stand in the order in
// which running them one by one gives the right result; each goes to the end of its role's list.
#pragma once

#include <string>
#include <vector>

#include "schedule/model.hpp"

namespace gdr::testing {

// An operand under construction: the whole tile unless narrowed.
class Arg {
 public:
  Arg(const char* name) { operand_.name = name; }  // NOLINT: a name is an operand
  Arg t() const;
  Arg part(int p) const;  // the rows of part p
  Arg rows(int begin, int end) const;
  Arg cols(int begin, int end) const;
  Arg async() const;  // reached through the asynchronous proxy

 private:
  friend class Draft;
  Operand operand_;
  bool by_part_ = false;
};

struct SmemOptions {
  int parts = 1;
  int resident = 1;
  int stages = 1;
  int offset = -1;  // else behind what was placed before
  bool lower16 = false;
};

class Draft {
 public:
  explicit Draft(LoopKind loop = LoopKind::chunks_ascending);

  void tensor(const std::string& name, TensorKind kind, TensorIndex index, int rows, int cols,
              DType dtype = DType::bf16);
  void role(const std::string& name, int warps);
  void smem(const std::string& name, int rows, int cols, SmemOptions options = {}, DType dtype = DType::bf16);
  void vec(const std::string& name, int length, int partial_rows = 1);
  void acc(const std::string& role, const std::string& name, int rows, int cols, int grid_rows = 1, int grid_cols = 1);
  void frag(const std::string& role, const std::string& name, int rows, int cols, int grid_rows = 1);
  void mbarrier(const std::string& name, int arrivals, int stages = 1);
  void meeting(const std::string& name, int id, int threads);

  enum class Section { prologue, body, epilogue };
  void section(Section section) { section_ = section; }
  // The first operand is written (or added to), the others are read. Token tensors make `where` row_valid.
  Op& op(const std::string& role, OpKind kind, const std::string& id, const std::vector<Arg>& args);
  Op& copy_in(const std::string& role, const std::string& id, const Arg& dst, const Arg& src);
  Op& copy_out(const std::string& role, const std::string& id, const Arg& dst, const Arg& src);
  Op& mma(const std::string& role, const std::string& id, const Arg& d, const Arg& a, const Arg& b, bool adds = false);
  Op& map(const std::string& role, const std::string& id, const std::string& expr, const std::vector<Arg>& args,
          bool reads_target = false);
  Op& reduce(const std::string& role, const std::string& id, ReduceAxis axis, const std::string& expr,
             const std::vector<Arg>& args);
  void arrive(const std::string& role, const std::string& barrier, bool after_copies = false);
  void wait(const std::string& role, const std::string& barrier, int distance = 0);
  void sync(const std::string& role, const std::string& barrier);
  void fence(const std::string& role);

  // With one kernel; barriers behind the tiles, the limit as large as what is used.
  Plan finish();

 private:
  Operand resolve(const Arg& arg, Access access, OpKind kind, bool is_first) const;
  void add(const std::string& role, Op op);

  Plan plan_;
  Kernel kernel_;
  Section section_ = Section::body;
  int end_ = 0;
};

// ---- correct kernels

// loader (2 warps) -> consumer (4 warps, 2 x 2): x arrives in `stages` copies; p = x x^T goes through shared memory
// between the consumer's warps, which meet before and after.
Plan pipeline(int stages);

// h in two parts of which one is resident: loaded 0, 1 and 0 again in every iteration.
Plan split_tile();

// u and w share bytes: u is loaded and read by `first`, which then writes w, which `second` reads.
Plan alias();

// As `pipeline`, the result leaving by bulk copy from shared memory, behind a fence.
Plan bulk_store();

// Vectors: partial sums of a role, a scan by its warp 0, an elementwise map, all between meetings.
Plan vectors();

// ---- for changing them

Kernel& kernel_of(Plan& plan);
Op& op_of(Plan& plan, const std::string& id);
Tile& tile_of(Plan& plan, const std::string& name);
Barrier& barrier_of(Plan& plan, const std::string& name);
Role& role_of(Plan& plan, const std::string& name);
// Takes the op out of the kernel.
void drop(Plan& plan, const std::string& id);
// Takes the op's step out of its role's list and puts it in front of (behind) that of another op of the role.
void move_before(Plan& plan, const std::string& id, const std::string& other);
void move_after(Plan& plan, const std::string& id, const std::string& other);
// The same in Kernel::ops alone: what the kernel means changes, what it does stays.
void mean_before(Plan& plan, const std::string& id, const std::string& other);

}  // namespace gdr::testing
