#include <fmt/format.h>

#include <algorithm>

#include "present/byte_axis.hpp"
#include "present/svg_kernel.hpp"
#include "present/text.hpp"
#include "schedule/layout.hpp"

namespace gdr::svg {
namespace {

constexpr ByteAxis::Scale kScale{.height_px = 520, .min_px = 9, .max_free_px = 84};
constexpr int kMbarrierBytes = 8;
constexpr double kNoteLine = 12;
constexpr double kTwoLines = 20;  // a box of this height has room for a name above its marks

// Tiles by where their bytes come from.
enum class Origin { copied, stored, sums };
struct OriginColor {
  const char* fill;
  const char* stroke;
};
OriginColor color_of(Origin origin) {
  switch (origin) {
    case Origin::copied:
      return {"#bcd7f0", "#2b6cb0"};
    case Origin::stored:
      return {"#c5e3bf", "#2f855a"};
    case Origin::sums:
      return {"#f4dfa6", "#b7791f"};
  }
  return {};
}

Origin origin_of(const Kernel& kernel, const TileFacts& facts) {
  for (const TileUse& use : facts.uses) {
    if (!use.writes) continue;
    switch (kernel.ops[static_cast<std::size_t>(use.op)].kind) {
      case OpKind::copy_in:
        return Origin::copied;
      case OpKind::map:
      case OpKind::reduce:
      case OpKind::scan:
        return Origin::sums;
      default:
        return Origin::stored;
    }
  }
  return Origin::stored;
}

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

class MemoryMap {
 public:
  MemoryMap(SvgWriter& out, const Plan& plan, const KernelView& view, const Columns& columns, double top)
      : out_(out),
        plan_(plan),
        view_(view),
        columns_(columns),
        axis_(borders(view), view.kernel->smem_bytes, plan.smem_limit_bytes, kScale),
        top_(top) {}

  double draw() {
    frame();
    headroom();
    for (const TileFacts& facts : view_.tiles)
      if (facts.tile->offset_bytes >= 0) tile(facts);
    barriers();
    labels();
    return y(0) + kNoteLine * static_cast<double>(notes().size()) + 12;
  }

 private:
  double y(int byte) const { return top_ + axis_.height() - axis_.up(byte); }
  double left() const { return columns_.body_begin(); }
  double right() const { return columns_.body_end(); }

  static std::vector<int> borders(const KernelView& view) {
    std::vector<int> bytes;
    for (const TileFacts& facts : view.tiles) {
      const Tile& tile = *facts.tile;
      if (tile.offset_bytes < 0) continue;
      for (int slot = 0; slot <= tile.stages * tile.resident; ++slot)
        bytes.push_back(tile.offset_bytes + slot * part_bytes(tile));
    }
    if (view.kernel->barrier_offset_bytes >= 0) bytes.push_back(view.kernel->barrier_offset_bytes);
    return bytes;
  }

  void frame() {
    out_.rect(left(), top_, right() - left(), axis_.height(), "fill=\"none\" stroke=\"#d0d4d9\" stroke-width=\"0.8\"");
    constexpr int kTick = 8192;
    double last = y(0) + 100;
    const int last_byte = axis_.is_cut() ? view_.kernel->smem_bytes : plan_.smem_limit_bytes;
    for (int byte = 0; byte <= last_byte; byte += kTick) {
      if (last - y(byte) < 11) continue;
      last = y(byte);
      out_.line(left() - 4, y(byte), right(), y(byte), "stroke=\"#d0d4d9\" stroke-width=\"0.5\"");
      if (y(byte) - y(plan_.smem_limit_bytes) > 11)
        out_.text(left() - 7, y(byte) + 3, with_commas(byte),
                  fmt::format("text-anchor=\"end\" font-size=\"8.5\" fill=\"{}\"", kFaint));
    }
    out_.text(left() - 62, (y(0) + y(plan_.smem_limit_bytes)) / 2, "bytes",
              fmt::format("text-anchor=\"middle\" font-size=\"9.5\" fill=\"{}\"", kInk), -90);
    double baseline = y(0) + 1;
    for (const std::string& note : notes())
      out_.text(left(), baseline += kNoteLine, note, fmt::format("font-size=\"8.5\" fill=\"{}\"", kFaint));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (axis_.is_stretched()) notes.push_back("To scale, but small tiles are drawn thicker than they are.");
    if (view_.kernel->loop != LoopKind::once)
      notes.push_back("What is alive at the right edge goes on at the left edge, in the next chunk.");
    return notes;
  }

  void headroom() {
    const int limit = plan_.smem_limit_bytes, total = view_.kernel->smem_bytes;
    const std::string line = "stroke=\"#c53030\" stroke-width=\"2\"";
    if (total < limit) {
      out_.rect(left(), y(limit), right() - left(), y(total) - y(limit), "fill=\"url(#free)\"",
                fmt::format("{} bytes left", with_commas(limit - total)));
      text_on_white((left() + right()) / 2, (y(limit) + y(total)) / 2 + 4,
                    fmt::format("{} bytes left{}", with_commas(limit - total), axis_.is_cut() ? " (not to scale)" : ""),
                    "#2f855a");
    }
    out_.line(left() - 4, y(limit), right() + 4, y(limit), line);
    out_.text(left() - 7, y(limit) + 3, with_commas(limit),
              "text-anchor=\"end\" font-size=\"9\" font-weight=\"bold\" fill=\"#c53030\"");
    out_.text(left() + 4, y(limit) - 4, fmt::format("budget: {} bytes a block", with_commas(limit)),
              "font-size=\"9.5\" font-weight=\"bold\" fill=\"#c53030\"");
  }

  void text_on_white(double x, double baseline, const std::string& text, const char* color) {
    const double width = svg_text_width(text, 11) + 8;
    out_.rect(x - width / 2, baseline - 11, width, 15, "fill=\"#ffffff\" rx=\"3\"");
    out_.text(x, baseline, text,
              fmt::format("text-anchor=\"middle\" font-size=\"11\" font-weight=\"bold\" fill=\"{}\"", color));
  }

  // A rectangle for each life of each part, in the slot of the part; the other stages of the slot hold other chunks.
  void tile(const TileFacts& facts) {
    const Tile& tile = *facts.tile;
    const OriginColor color = color_of(origin_of(*view_.kernel, facts));
    for (int stage = 1; stage < tile.stages; ++stage) other_stage(tile, stage, color);
    for (const LiveRange& life : facts.lives) {
      const double begin = columns_.begin(view_.column_from(life.first_op));
      const double end = columns_.end(view_.column_until(life.last_op));
      if (life.wraps) {
        life_box(facts, life, begin, right(), color, false, true);
        life_box(facts, life, left(), end, color, true, false);
      } else {
        life_box(facts, life, begin, end, color, false, false);
      }
    }
  }

  void other_stage(const Tile& tile, int stage, const OriginColor& color) {
    const int bottom = tile.offset_bytes + stage * stage_bytes(tile);
    const Box box{left(), y(bottom + stage_bytes(tile)), right(), y(bottom)};
    out_.rect(box.left, box.top, box.right - box.left, box.bottom - box.top,
              fmt::format("fill=\"url(#other)\" stroke=\"{}\" stroke-width=\"0.6\"", color.stroke),
              fmt::format("{}: stage {} of {}, another chunk", tile.name, stage + 1, tile.stages));
    const std::string name = fmt::format("{} of another chunk", tile.name);
    wanted_.push_back({box, name, fmt::format("{} {} B", name, with_commas(stage_bytes(tile))), {}});
  }

  void life_box(const TileFacts& facts, const LiveRange& life, double begin, double end, const OriginColor& color,
                bool open_left, bool open_right) {
    const Tile& tile = *facts.tile;
    const int bottom = tile.offset_bytes + life.part % tile.resident * part_bytes(tile);
    const Box box{begin, y(bottom + part_bytes(tile)), end, y(bottom)};
    std::string name = tile.name;
    if (tile.parts > 1) name += fmt::format(" part {} of {}", life.part + 1, tile.parts);
    const auto id = [&](int op) { return view_.kernel->ops[static_cast<std::size_t>(op)].id; };
    out_.rect(box.left, box.top + 0.5, box.right - box.left, box.bottom - box.top - 1,
              fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"0.8\"", color.fill, color.stroke),
              fmt::format("{}: {} x {} {}, {} bytes at {}\n{} to {}{}", name, tile.rows / tile.parts, tile.cols,
                          to_string(tile.dtype), with_commas(part_bytes(tile)), with_commas(bottom), id(life.first_op),
                          id(life.last_op), life.wraps ? " of the next chunk" : ""));
    for (const bool is_open : {open_left, open_right}) {
      if (!is_open) continue;
      const double x = is_open == open_left ? box.left : box.right;
      out_.line(x, box.top + 1.5, x, box.bottom - 1.5,
                fmt::format("stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"2 2\"", color.stroke));
    }
    boxes_.push_back(box);
    wanted_.push_back(
        {box, name, fmt::format("{} {} B", name, with_commas(part_bytes(tile))), marks(facts, life.part, box, color)});
  }

  // Filled where the tile is written, hollow where it is read. Gives their places.
  std::vector<double> marks(const TileFacts& facts, int part, const Box& box, const OriginColor& color) {
    const double height = box.bottom - box.top;
    const double at = height >= kTwoLines ? box.bottom - 5 : (box.top + box.bottom) / 2;
    std::vector<double> places;
    for (const TileUse& use : facts.uses) {
      const int column = view_.column_of_op[static_cast<std::size_t>(use.op)];
      if (use.part != part || column < 0) continue;
      const double x = columns_.middle(column);
      if (x < box.left || x > box.right) continue;
      const std::string stroke = fmt::format("stroke=\"{}\" stroke-width=\"1\"", color.stroke);
      if (use.writes) out_.rect(x - 2.5, at - 2.5, 5, 5, fmt::format("fill=\"{}\" {}", color.stroke, stroke));
      if (use.reads) out_.circle(x, at, 2.5, "fill=\"#ffffff\" " + stroke);
      places.push_back(x);
    }
    return places;
  }

  void barriers() {
    const Kernel& kernel = *view_.kernel;
    int count = 0;
    for (const Barrier& barrier : kernel.barriers)
      if (barrier.kind == BarrierKind::mbarrier) count += barrier.stages;
    if (count == 0 || kernel.barrier_offset_bytes < 0) return;
    const Box box{left(), y(kernel.barrier_offset_bytes + count * kMbarrierBytes), right(),
                  y(kernel.barrier_offset_bytes)};
    out_.rect(box.left, box.top + 0.5, box.right - box.left, box.bottom - box.top - 1, "fill=\"#d0d4d9\"",
              fmt::format("{} at {}", plural(count, "mbarrier"), with_commas(kernel.barrier_offset_bytes)));
    boxes_.push_back(box);
    wanted_.push_back(
        {box, plural(count, "mbarrier"), plural(count, "mbarrier") + fmt::format(" {} B", count * kMbarrierBytes), {}});
  }

  struct Wanted {
    Box box;
    std::string name;
    std::string full;           // the name and the bytes
    std::vector<double> marks;  // in ascending order
  };

  // Each box gets its name, with the bytes if there is room: inside above the marks, else beside it where nothing else
  // stands, else between its marks, else upright in it.
  void labels() {
    std::vector<Box> taken = boxes_;
    for (const Wanted& wanted : wanted_) {
      const double height = wanted.box.bottom - wanted.box.top;
      const double room = wanted.box.right - wanted.box.left - 6;
      const double font = height >= 16 ? 10 : 8;
      const bool has_line = height >= kTwoLines;  // of its own, above the marks
      const double baseline = has_line ? wanted.box.top + (height >= 34 ? 13 : 9.5)
                                       : (wanted.box.top + wanted.box.bottom) / 2 + font * 0.36;
      if (has_line && svg_text_width(wanted.full, font) <= room) {
        label(wanted.box.left + 4, baseline, wanted.full, font);
      } else if (has_line && svg_text_width(wanted.name, font) <= room) {
        label(wanted.box.left + 4, baseline, wanted.name, font);
      } else if (!beside(wanted, baseline, font, taken) && !between_marks(wanted, baseline, font)) {
        upright(wanted);
      }
    }
  }

  bool beside(const Wanted& wanted, double baseline, double font, std::vector<Box>& taken) {
    const double width = svg_text_width(wanted.name, font) + 1;
    for (const double begin : {wanted.box.right + 3, wanted.box.left - 2 - width}) {
      const Box place{begin, baseline - font * 0.8, begin + width, baseline + 1};
      const bool is_free = place.left >= left() && place.right <= right() &&
                           std::none_of(taken.begin(), taken.end(), [&](const Box& box) { return box.meets(place); });
      if (!is_free) continue;
      label(begin, baseline, wanted.name, font);
      taken.push_back(place);
      return true;
    }
    return false;
  }

  bool between_marks(const Wanted& wanted, double baseline, double font) {
    constexpr double kMarkRoom = 5;
    double begin = wanted.box.left + 2;
    std::vector<double> ends = wanted.marks;
    ends.push_back(wanted.box.right + kMarkRoom - 1);
    for (const double mark : ends) {
      for (const std::string& text : {wanted.full, wanted.name})
        if (mark - kMarkRoom - begin >= svg_text_width(text, font)) {
          label(begin, baseline, text, font);
          return true;
        }
      begin = mark + kMarkRoom;
    }
    return false;
  }

  void upright(const Wanted& wanted) {
    constexpr double kMarksHeight = 12;
    const double bottom = wanted.box.bottom - kMarksHeight;
    for (const double font : {10.0, 8.0}) {
      const bool fits =
          wanted.box.right - wanted.box.left >= font && bottom - wanted.box.top >= svg_text_width(wanted.name, font);
      if (!fits) continue;
      out_.text((wanted.box.left + wanted.box.right) / 2 + font * 0.36, bottom, wanted.name,
                fmt::format("font-size=\"{}\" fill=\"{}\"", svg_number(font), kInk), -90);
      return;
    }
  }

  void label(double x, double baseline, const std::string& text, double font) {
    out_.text(x, baseline, text, fmt::format("font-size=\"{}\" fill=\"{}\"", svg_number(font), kInk));
  }

  SvgWriter& out_;
  const Plan& plan_;
  const KernelView& view_;
  const Columns& columns_;
  ByteAxis axis_;
  double top_;
  std::vector<Box> boxes_;
  std::vector<Wanted> wanted_;
};

}  // namespace

double draw_memory(SvgWriter& out, const Plan& plan, const KernelView& view, const Columns& columns, double y) {
  constexpr double kAbove = 16;  // for the budget's label
  return MemoryMap(out, plan, view, columns, y + kAbove).draw();
}

}  // namespace gdr::svg
