#include "present/kernel_view.hpp"

#include <algorithm>

namespace gdr {
namespace {

bool is_work(OpKind kind) {
  return kind != OpKind::arrive && kind != OpKind::wait && kind != OpKind::sync && kind != OpKind::fence;
}

// Where each op stands: the role and section of its first step.
struct Place {
  int role = -1;
  Section section = Section::body;
};

std::vector<Place> places(const Kernel& kernel) {
  std::vector<Place> result(kernel.ops.size());
  for (int r = 0; r < static_cast<int>(kernel.roles.size()); ++r) {
    const Role& role = kernel.roles[static_cast<std::size_t>(r)];
    const auto note = [&](const std::vector<Step>& steps, Section section) {
      for (const Step& step : steps) {
        Place& place = result[static_cast<std::size_t>(step.op)];
        if (place.role < 0) place = {r, section};
      }
    };
    note(role.prologue, Section::prologue);
    note(role.body, Section::body);
    note(role.epilogue, Section::epilogue);
  }
  return result;
}

BarrierView* find(std::vector<BarrierView>& barriers, const std::string& name) {
  const auto found = std::find_if(barriers.begin(), barriers.end(),
                                  [&](const BarrierView& view) { return view.barrier->name == name; });
  return found == barriers.end() ? nullptr : &*found;
}

void note_barriers(const Kernel& kernel, KernelView& view) {
  for (const Barrier& barrier : kernel.barriers) view.barriers.push_back({&barrier, {}, {}, {}});
  for (int r = 0; r < static_cast<int>(kernel.roles.size()); ++r) {
    const std::vector<Step>& body = kernel.roles[static_cast<std::size_t>(r)].body;
    const auto column_at = [&](std::size_t i) { return view.column_of_op[static_cast<std::size_t>(body[i].op)]; };
    for (std::size_t i = 0; i < body.size(); ++i) {
      const Op& op = kernel.ops[static_cast<std::size_t>(body[i].op)];
      BarrierView* barrier = op.barrier.empty() ? nullptr : find(view.barriers, op.barrier);
      if (barrier == nullptr) continue;
      BarrierUse use{body[i].op, r, -1, -1};
      for (std::size_t k = i; k-- > 0 && use.before < 0;) use.before = column_at(k);
      for (std::size_t k = i + 1; k < body.size() && use.after < 0; ++k) use.after = column_at(k);
      (op.kind == OpKind::arrive ? barrier->arrivals
       : op.kind == OpKind::wait ? barrier->waits
                                 : barrier->syncs)
          .push_back(use);
    }
  }
}

}  // namespace

char op_letter(OpKind kind) {
  switch (kind) {
    case OpKind::copy_in:
      return 'i';
    case OpKind::copy_out:
      return 'o';
    case OpKind::load:
      return 'l';
    case OpKind::store:
      return 's';
    case OpKind::mma:
      return 'M';
    case OpKind::map:
      return 'e';
    case OpKind::reduce:
      return '+';
    case OpKind::scan:
      return '+';
    case OpKind::tri_inverse:
      return 't';
    case OpKind::relayout:
      return 'c';
    case OpKind::arrive:
    case OpKind::wait:
    case OpKind::sync:
    case OpKind::fence:
      break;
  }
  return ' ';
}

std::string step_label(const std::string& step) {
  constexpr std::size_t kMaxLabel = 3;
  const std::size_t colon = step.find(':');
  return colon != std::string::npos && colon <= kMaxLabel ? step.substr(0, colon) : std::string();
}

Range KernelView::body() const {
  const auto is_body = [](const OpColumn& column) { return column.section == Section::body; };
  const auto first = std::find_if(columns.begin(), columns.end(), is_body);
  const auto last = std::find_if_not(first, columns.end(), is_body);
  return {static_cast<int>(first - columns.begin()), static_cast<int>(last - columns.begin())};
}

int KernelView::column_from(int op) const {
  const Range range = body();
  for (int c = range.begin; c < range.end; ++c)
    if (columns[static_cast<std::size_t>(c)].op >= op) return c;
  return range.end - 1;
}

int KernelView::column_until(int op) const {
  const Range range = body();
  for (int c = range.end; c-- > range.begin;)
    if (columns[static_cast<std::size_t>(c)].op <= op) return c;
  return range.begin;
}

KernelView view_kernel(const Kernel& kernel) {
  KernelView view;
  view.kernel = &kernel;
  view.tiles = memory_map(kernel);
  view.column_of_op.assign(kernel.ops.size(), -1);
  const std::vector<Place> place = places(kernel);
  for (const Section section : {Section::prologue, Section::body, Section::epilogue})
    for (std::size_t i = 0; i < kernel.ops.size(); ++i) {
      const Op& op = kernel.ops[i];
      if (place[i].role < 0 || place[i].section != section || !is_work(op.kind)) continue;
      view.column_of_op[i] = static_cast<int>(view.columns.size());
      view.columns.push_back({static_cast<int>(i), place[i].role, section, step_label(op.step)});
    }
  note_barriers(kernel, view);
  return view;
}

}  // namespace gdr
