// Tiles: where the elements of a shared-memory tile lie, and which elements of a register tile a lane holds. The same
// address function as src/schedule/layout.cpp; emitted kernels restate the plan's figures in static_asserts.

GDR_FN constexpr bool is_power_of_2(int value) { return (value & (value - 1)) == 0; }
GDR_FN constexpr int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

GDR_FN float to_float(float x) { return x; }
GDR_FN float to_float(bf16 x) { return float_of_bits(static_cast<u32>(x.bits) << 16); }
GDR_FN float to_float(fp16 x) { return float_of_fp16(x.bits); }
GDR_FN u32 pack(bf16, float lo, float hi) { return pack_bf16(lo, hi); }
GDR_FN u32 pack(fp16, float lo, float hi) { return pack_fp16(lo, hi); }
GDR_FN float rounded(float, float x) { return x; }
GDR_FN bf16 rounded(bf16, float x) { return bf16{static_cast<u16>(pack_bf16(x, 0.0f))}; }
GDR_FN fp16 rounded(fp16, float x) { return fp16{static_cast<u16>(pack_fp16(x, 0.0f))}; }
template <typename T>
GDR_FN T from_float(float x) {
  return rounded(T{}, x);
}
// One of two values, both of which are worked out: neither needs a branch.
GDR_FN float choose(bool first, float a, float b) { return first ? a : b; }
// Element 0 or 1 of a packed pair.
template <typename T>
GDR_FN float unpack(u32 pair, int which) {
  return to_float(T{static_cast<u16>(which ? pair >> 16 : pair)});
}

// The warp of a role that runs, and its place in it.
struct Me {
  int warp;
  int lane;
};

// The same for the next operation, whose addresses are then worked out anew: those of all operations of a role together
// are more than its registers hold. `nothing` is 0, which the compiler cannot know.
GDR_FN Me renewed(Me me, int nothing = 0) { return {me.warp, forgotten(me.lane + nothing)}; }

// A row or a column as the sum of what depends on the thread and of what is the same for all threads: once loops are
// unrolled the second is known to the compiler and costs an immediate offset, and the first is worked out once for many
// elements. `fixed` is a multiple of 8 for rows; for columns no bit is set in both (own + fixed == own | fixed).
struct At {
  int own, fixed;
  GDR_METHOD At(int own_, int fixed_ = 0) : own(own_), fixed(fixed_) {}
  GDR_METHOD operator int() const { return own + fixed; }
};
// A row or column moved by `by`, where own parts lie in [0, kRange), a power of 2.
template <int kRange>
GDR_FN At moved(At at, int by) {
  return is_power_of_2(kRange) && by % kRange == 0 ? At(at.own, at.fixed + by)
                                                   : At(at.own + (at.fixed & ~1) + by, at.fixed & 1);
}
// The same for what is used as a row only.
GDR_FN At moved_row(At row, int by) { return by % 8 == 0 ? At(row.own, row.fixed + by) : At(row.own + row.fixed + by); }

// Of the 16x16 blocks on or below a diagonal, which one holds (row, col), counted block row by block row; and where that
// element lies when they follow each other, each row by row.
GDR_FN int lower_block(int row, int col) { return (row / 16) * (row / 16 + 1) / 2 + col / 16; }
GDR_FN int lower_element(int row, int col) { return (lower_block(row, col) * 16 + row % 16) * 16 + col % 16; }

// A rectangle [row, row_end) x [col, col_end) of a tile.
template <int kRow, int kRowEnd, int kCol, int kColEnd>
struct Rect {
  static constexpr int row = kRow, row_end = kRowEnd, col = kCol, col_end = kColEnd;
  static constexpr int rows = kRowEnd - kRow, cols = kColEnd - kCol;
};

// A tile in shared memory at byte kOffset.
template <typename T, int kOffset, int kRows_, int kCols_, int kPanelCols, int kXorMask, int kXorShift, bool kLower_,
          int kParts, int kResident, int kStages>
struct SharedTile {
  using Element = T;
  static constexpr int kRows = kRows_, kCols = kCols_;
  static constexpr bool kLower = kLower_;
  static constexpr int kElement = static_cast<int>(sizeof(T));
  static constexpr int kPartRows = kRows / kParts;
  static constexpr int kPitch = round_up(kPanelCols * kElement, 16);
  static constexpr int kBlocks = kRows / 16;
  static constexpr int kPartBytes =
      kLower ? kBlocks * (kBlocks + 1) / 2 * 16 * kPitch : kPartRows * kPitch * ((kCols + kPanelCols - 1) / kPanelCols);
  static constexpr int kStageBytes = kPartBytes * kResident;
  static constexpr int kBytes = kStageBytes * kStages;
  static constexpr int kPerUnit = 16 / kElement;  // elements of a 16-byte unit
  static_assert(((kXorMask + 1) << kXorShift) <= 8 || kXorMask == 0, "eight rows on, the units are permuted alike");
  static_assert(kXorMask == 0 ? kLower || kPanelCols >= kCols : is_power_of_2(kPitch), "see byte()");

  // The base of the copy of part p that iteration `it` uses; rows are counted over all parts.
  GDR_FN int base(int it, int p) {
    return kOffset + (kStages == 1 ? 0 : it % kStages * kStageBytes) + p % kResident * kPartBytes - p * kPartRows * kPitch;
  }

  // Byte of element (row, col). Where units are permuted, the pitch is a power of 2 and the bits of a column are the
  // thread's own or fixed: the permutation is an exclusive or, and so commutes with putting them together.
  GDR_FN int byte(int base, At row, At col) {
    if constexpr (kLower) {
      const int r = row, c = col;
      return base + lower_block(r, c) * 16 * kPitch + in_panel(r % 16, c % 16);
    } else {
      const int own = (col.own / kPanelCols * kPartRows) * kPitch + in_panel(row.own, col.own % kPanelCols);
      const int panels = (col.fixed / kPanelCols * kPartRows + row.fixed) * kPitch, more = col.fixed % kPanelCols * kElement;
      return base + panels + (kXorMask == 0 ? own + more : own ^ more);
    }
  }
  GDR_FN bool has(int row, int col) { return !kLower || col / 16 <= row / 16; }

  GDR_FN float load(int base, At row, At col) { return to_float(shared_load<T>(byte(base, row, col))); }
  // The same where `col.own` is even: two neighbours come with one load.
  GDR_FN float load_of_pair(int base, At row, At col) {
    if constexpr (sizeof(T) == 2)
      return unpack<T>(shared_load<u32>(byte(base, row, At(col.own, col.fixed & ~1))), col.fixed & 1);
    else
      return load(base, row, col);
  }
  GDR_FN void store(int base, At row, At col, float value) { shared_store<T>(byte(base, row, col), from_float<T>(value)); }
  // Two neighbours in a row, of which the first has an even column.
  GDR_FN void store_pair(int base, At row, At col, float first, float second) {
    if constexpr (sizeof(T) == 2) {
      shared_store<u32>(byte(base, row, col), pack(T{}, first, second));
    } else {
      store(base, row, col, first);
      store(base, row, At(col.own, col.fixed + 1), second);
    }
  }

  // Element i of a vector: the sum of its partial rows, in order.
  GDR_FN float at(int base, At i) {
    float sum = load(base, 0, i);
    GDR_UNROLL
    for (int row = 1; row < kRows; ++row) sum += load(base + row * kPitch, 0, i);
    return sum;
  }

 private:
  GDR_FN int in_panel(int row, int col) {
    const int in_row = col * kElement, unit = (in_row / 16) ^ ((row >> kXorShift) & kXorMask);
    return row * kPitch + unit * 16 + in_row % 16;
  }
};

// The share of a kRows x kCols register tile that one warp owns: rows in equal runs, columns dealt in blocks of kDeal.
// Lane l holds, of each 16x8 block (b, n), elements e = 0..3 at row l / 4 + e / 2 * 8, column l % 4 * 2 + e % 2.
template <int kRows_, int kCols_, int kGridRows_, int kGridCols_, int kDeal>
struct Share {
  static constexpr int kRows = kRows_, kCols = kCols_, kGridRows = kGridRows_, kGridCols = kGridCols_;
  static constexpr int kRowBlocks = kRows / kGridRows / 16;  // of 16 rows
  static constexpr int kColBlocks = kCols / kGridCols / 8;   // of 8 columns
  static constexpr int kSpan = kDeal * kGridCols;            // columns of a round of dealing
  // Own parts of a row and of a column are below these.
  static constexpr int kRowRange = kGridRows == 1 ? 16 : kRows, kColRange = kGridCols == 1 ? 16 : kSpan;
  static_assert(kRowBlocks * kGridRows * 16 == kRows && kColBlocks * kGridCols * 8 == kCols, "a warp owns whole blocks");
  static_assert(kDeal % 8 == 0 && kCols % kSpan == 0, "columns are dealt evenly");
  // Blocks 2m and 2m + 1 are neighbours in one 16-column block.
  static constexpr bool kPairs = kColBlocks % 2 == 0 && (kGridCols == 1 || kDeal % 16 == 0);

  GDR_FN int grid_row(Me me) { return me.warp / kGridCols; }
  GDR_FN int grid_col(Me me) { return me.warp % kGridCols; }
  // First row and column of a block.
  GDR_FN At block_row(Me me, int b) { return At(grid_row(me) * (kRowBlocks * 16), b * 16); }
  GDR_FN At block_col(Me me, int n) {
    if constexpr (kGridCols == 1) return At(0, n * 8);
    const int own = grid_col(me) * kDeal, fixed = n * 8 / kDeal * kSpan + n * 8 % kDeal;
    return is_power_of_2(kDeal) && is_power_of_2(kGridCols) ? At(own, fixed) : At(own + fixed);
  }
  // Element e of block (b, n).
  GDR_FN At row(Me me, int b, int e) {
    const At first = block_row(me, b);
    return At(first.own + me.lane / 4, first.fixed + e / 2 * 8);
  }
  GDR_FN At col(Me me, int n, int e) {
    const At first = block_col(me, n);
    return At(first.own + me.lane % 4 * 2, first.fixed + e % 2);
  }

  // Does the rectangle, made of whole blocks, hold these rows, these columns?
  template <class R>
  GDR_FN bool has_rows(Me me, int b) {
    const int first = block_row(me, b);
    return R::rows == kRows || (first >= R::row && first < R::row_end);
  }
  template <class R>
  GDR_FN bool has_cols(Me me, int n) {
    const At at = block_col(me, n);
    const int left = R::col % kSpan == 0 && R::col_end % kSpan == 0 ? at.fixed : at.own + at.fixed;
    return R::cols == kCols || (left >= R::col && left < R::col_end);
  }
};

// fp32 accumulators.
template <int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
struct Accumulator : Share<kRows, kCols, kGridRows, kGridCols, kDeal> {
  using S = Share<kRows, kCols, kGridRows, kGridCols, kDeal>;
  float v[S::kRowBlocks][S::kColBlocks][4];

  GDR_FN float get(const Accumulator& x, int b, int n, int e) { return x.v[b][n][e]; }
  GDR_FN void set(Accumulator& x, int b, int n, int e, float value) { x.v[b][n][e] = value; }
  GDR_FN void set_pair(Accumulator& x, int b, int n, int e, float first, float second) {
    x.v[b][n][e] = first;
    x.v[b][n][e + 1] = second;
  }
  // Column blocks n and n + 1 of 16-bit type T as ldmatrix brings them.
  template <typename T>
  GDR_FN void set_block(Accumulator& x, int b, int n, const u32 (&r)[4]) {
    GDR_UNROLL
    for (int i = 0; i < 4; ++i) set_pair(x, b, n + i / 2, i % 2 * 2, unpack<T>(r[i], 0), unpack<T>(r[i], 1));
  }
};

// A-operand fragments of a 16-bit type, two neighbouring elements a register.
template <typename T, int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
struct Fragment : Share<kRows, kCols, kGridRows, kGridCols, kDeal> {
  using Element = T;
  using S = Share<kRows, kCols, kGridRows, kGridCols, kDeal>;
  u32 v[S::kRowBlocks][(S::kColBlocks + 1) / 2][4];

  GDR_FN float get(const Fragment& x, int b, int n, int e) { return unpack<T>(x.v[b][n / 2][n % 2 * 2 + e / 2], e % 2); }
  GDR_FN void set_pair(Fragment& x, int b, int n, int e, float first, float second) {
    x.v[b][n / 2][n % 2 * 2 + e / 2] = pack(T{}, first, second);
  }
  template <typename>
  GDR_FN void set_block(Fragment& x, int b, int n, const u32 (&r)[4]) {
    GDR_UNROLL
    for (int i = 0; i < 4; ++i) x.v[b][n / 2][i] = r[i];
  }
};
template <class X>
constexpr bool kIsFragment = false;
template <typename T, int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
constexpr bool kIsFragment<Fragment<T, kRows, kCols, kGridRows, kGridCols, kDeal>> = true;

// Where a block's tile of a tensor lies: element (row, col) at base + row * stride + col. Tensors of the plan's own have
// a stride that is known here, so that a lane's addresses are constants apart.
template <typename T_, int kStride>
struct GlobalTile {
  using T = T_;
  T* base;
  i64 given_stride;
  int rows;  // that exist

  GDR_FN T* at(const GlobalTile& g, At row, At col) {
    const i64 stride = kStride > 0 ? kStride : g.given_stride;
    T* const own = g.base + (row.own * stride + col.own);
    return own + (row.fixed * stride + col.fixed);
  }
};

// Two neighbours in a row, as they lie in memory.
template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T first, second;
};
