// Tiles: where the elements of a shared-memory tile lie, and which elements of a register tile a lane holds. The same
// address function as src/schedule/layout.cpp; emitted kernels restate the plan's figures in static_asserts.

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
  static constexpr int kPartRows = kRows / kParts;
  static constexpr int kPitch = round_up(kPanelCols * static_cast<int>(sizeof(T)), 16);
  static constexpr int kBlocks = kRows / 16;
  static constexpr int kPartBytes =
      kLower ? kBlocks * (kBlocks + 1) / 2 * 16 * kPitch : kPartRows * kPitch * ((kCols + kPanelCols - 1) / kPanelCols);
  static constexpr int kStageBytes = kPartBytes * kResident;
  static constexpr int kBytes = kStageBytes * kStages;
  static constexpr int kPerUnit = 16 / static_cast<int>(sizeof(T));  // elements of a 16-byte unit

  // The first byte of the copy of the tile that iteration `it` uses.
  GDR_FN int stage(int it) { return kOffset + (kStages == 1 ? 0 : it % kStages * kStageBytes); }

  // Byte of element (row, col) in the stage that begins at `base`.
  GDR_FN int byte(int base, int row, int col) {
    if constexpr (kLower) {
      const int block = (row / 16) * (row / 16 + 1) / 2 + col / 16;
      return base + block * 16 * kPitch + in_panel(16, row % 16, col % 16);
    } else {
      const int part = kParts == 1 ? 0 : row / kPartRows;
      return base + part % kResident * kPartBytes + in_panel(kPartRows, row - part * kPartRows, col);
    }
  }
  GDR_FN bool has(int row, int col) { return !kLower || col / 16 <= row / 16; }

  GDR_FN float load(int base, int row, int col) { return to_float(shared_load<T>(byte(base, row, col))); }
  GDR_FN void store(int base, int row, int col, float value) { shared_store<T>(byte(base, row, col), from_float<T>(value)); }
  // Two neighbours in a row, of which the first has an even column.
  GDR_FN void store_pair(int base, int row, int col, float first, float second) {
    if constexpr (sizeof(T) == 2) {
      shared_store<u32>(byte(base, row, col), pack(T{}, first, second));
    } else {
      store(base, row, col, first);
      store(base, row, col + 1, second);
    }
  }

  // Element i of a vector: the sum of its partial rows, in order.
  GDR_FN float at(int base, int i) {
    float sum = load(base, 0, i);
    GDR_UNROLL
    for (int row = 1; row < kRows; ++row) sum += load(base, row, i);
    return sum;
  }

 private:
  GDR_FN int in_panel(int rows, int row, int col) {
    const int panel = col / kPanelCols, in_row = col % kPanelCols * static_cast<int>(sizeof(T));
    const int unit = (in_row / 16) ^ ((row >> kXorShift) & kXorMask);
    return panel * rows * kPitch + row * kPitch + unit * 16 + in_row % 16;
  }
};

// The share of a kRows x kCols register tile that one warp owns: rows in equal runs, columns dealt in blocks of kDeal.
// Lane l holds, of each 16x8 block (b, n), elements e = 0..3 at row l / 4 + e / 2 * 8, column l % 4 * 2 + e % 2.
template <int kRows_, int kCols_, int kGridRows_, int kGridCols_, int kDeal>
struct Share {
  static constexpr int kRows = kRows_, kCols = kCols_, kGridRows = kGridRows_, kGridCols = kGridCols_;
  static constexpr int kRowBlocks = kRows / kGridRows / 16;  // of 16 rows
  static constexpr int kColBlocks = kCols / kGridCols / 8;   // of 8 columns
  static_assert(kRowBlocks * kGridRows * 16 == kRows && kColBlocks * kGridCols * 8 == kCols, "a warp owns whole blocks");
  static_assert(kDeal % 8 == 0 && kCols % (kDeal * kGridCols) == 0, "columns are dealt evenly");

  GDR_FN int grid_row(Me me) { return me.warp / kGridCols; }
  GDR_FN int grid_col(Me me) { return me.warp % kGridCols; }
  // First row and column of a block.
  GDR_FN int block_row(Me me, int b) { return grid_row(me) * (kRowBlocks * 16) + b * 16; }
  GDR_FN int block_col(Me me, int n) {
    if constexpr (kGridCols == 1) return n * 8;
    return n * 8 / kDeal * (kDeal * kGridCols) + grid_col(me) * kDeal + n * 8 % kDeal;
  }
  GDR_FN int row(Me me, int b, int e) { return block_row(me, b) + me.lane / 4 + e / 2 * 8; }
  GDR_FN int col(Me me, int n, int e) { return block_col(me, n) + me.lane % 4 * 2 + e % 2; }
};

// fp32 accumulators.
template <int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
struct Accumulator : Share<kRows, kCols, kGridRows, kGridCols, kDeal> {
  using S = Share<kRows, kCols, kGridRows, kGridCols, kDeal>;
  float v[S::kRowBlocks][S::kColBlocks][4];

  GDR_FN float get(const Accumulator& x, int b, int n, int e) { return x.v[b][n][e]; }
  GDR_FN void set(Accumulator& x, int b, int n, int e, float value) { x.v[b][n][e] = value; }
};

// A-operand fragments of a 16-bit type, two neighbouring elements a register.
template <typename T, int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
struct Fragment : Share<kRows, kCols, kGridRows, kGridCols, kDeal> {
  using Element = T;
  using S = Share<kRows, kCols, kGridRows, kGridCols, kDeal>;
  u32 v[S::kRowBlocks][(S::kColBlocks + 1) / 2][4];

  GDR_FN float get(const Fragment& x, int b, int n, int e) { return unpack<T>(x.v[b][n / 2][n % 2 * 2 + e / 2], e % 2); }
};

// Where a block's tile of a tensor lies: element (row, col) at base + row * stride + col. Tensors of the plan's own have
// a stride that is known here, so that a lane's addresses are constants apart.
template <typename T_, int kStride>
struct GlobalTile {
  using T = T_;
  T* base;
  i64 given_stride;
  int rows;  // that exist

  GDR_FN T* at(const GlobalTile& g, int row, int col) {
    return g.base + (kStride > 0 ? row * kStride : row * g.given_stride) + col;
  }
};
