// Operations of a schedule, one function template for each kind: the meaning that src/interp gives them, in the terms
// of the primitives. `base` is the first byte of a tile's stage; rectangles are in coordinates of the whole tile.

// ---------------------------------------------------------------------------------------------------- elements

// Calls body(b, n, e, row, col) for each element of the rectangle that this lane holds.
template <class S, class R, class Body>
GDR_FN void for_elements(Me me, const Body& body) {
  GDR_UNROLL
  for (int b = 0; b < S::kRowBlocks; ++b) {
    const int first = S::block_row(me, b);
    if (R::rows != S::kRows && (first < R::row || first >= R::row_end)) continue;
    GDR_UNROLL
    for (int n = 0; n < S::kColBlocks; ++n) {
      const int left = S::block_col(me, n);
      if (R::cols != S::kCols && (left < R::col || left >= R::col_end)) continue;
      GDR_UNROLL
      for (int e = 0; e < 4; ++e) body(b, n, e, first + me.lane / 4 + e / 2 * 8, left + me.lane % 4 * 2 + e % 2);
    }
  }
}

// The same for two neighbours in a row at a time: body(b, n, e, row, col) with e = 0 and 2.
template <class S, class R, class Body>
GDR_FN void for_pairs(Me me, const Body& body) {
  GDR_UNROLL
  for (int b = 0; b < S::kRowBlocks; ++b) {
    const int first = S::block_row(me, b);
    if (R::rows != S::kRows && (first < R::row || first >= R::row_end)) continue;
    GDR_UNROLL
    for (int n = 0; n < S::kColBlocks; ++n) {
      const int left = S::block_col(me, n);
      if (R::cols != S::kCols && (left < R::col || left >= R::col_end)) continue;
      GDR_UNROLL
      for (int e = 0; e < 4; e += 2) body(b, n, e, first + me.lane / 4 + e / 2 * 8, left + me.lane % 4 * 2);
    }
  }
}

// ------------------------------------------------------------------------------------------------------ copies

// copy_in: rows of the rectangle in turn to the warps, 16 bytes a lane at a time. Source rows from `src_row` on.
template <class Tile, class R, int kWarps, bool kCheckRows, class Global>
GDR_FN void copy_in(Me me, int base, const Global& source, int src_row, int src_col) {
  constexpr int kUnits = R::cols / Tile::kPerUnit;
  static_assert(kUnits * Tile::kPerUnit == R::cols, "rows are whole 16-byte units");
  constexpr int kRowsOfWarp = (R::rows + kWarps - 1) / kWarps;
  GDR_UNROLL
  for (int i = 0; i < (kRowsOfWarp * kUnits + 31) / 32; ++i) {
    const int at = i * 32 + me.lane;
    const int row = R::row + at / kUnits * kWarps + me.warp, col = R::col + at % kUnits * Tile::kPerUnit;
    if (row >= R::row_end || at >= kRowsOfWarp * kUnits) continue;
    const int from = row - R::row + src_row;
    const bool is_there = !kCheckRows || from < source.rows;
    copy_16(Tile::byte(base, row, col), Global::at(source, is_there ? from : 0, col - R::col + src_col), is_there);
  }
}

// copy_in of packed lower blocks: block after block in global memory, 16 rows of 16 elements each.
template <class Tile, int kWarps, class Global>
GDR_FN void copy_in_lower(Me me, int base, const Global& source) {
  constexpr int kUnits = 16 / Tile::kPerUnit;
  for (int row = me.warp; row < Tile::kRows; row += kWarps) {
    const int blocks = row / 16 + 1;
    for (int at = me.lane; at < blocks * kUnits; at += 32) {
      const int block = row / 16 * blocks / 2 + at / kUnits, in_row = at % kUnits * Tile::kPerUnit;
      copy_16(Tile::byte(base, row, at / kUnits * 16 + in_row), source.base + (block * 16 + row % 16) * 16 + in_row, true);
    }
  }
}

// copy_in by ordinary loads and stores: elements that are too narrow for cp.async, or are converted on the way.
// A vector's elements are rows of its source.
template <class Tile, class R, int kWarps, bool kCheckRows, bool kTransposed, class Global>
GDR_FN void copy_in_plain(Me me, int base, const Global& source, int src_row, int src_col) {
  for (int row = R::row + me.warp; row < R::row_end; row += kWarps)
    for (int col = R::col + me.lane; col < R::col_end; col += 32) {
      const int r = (kTransposed ? col - R::col : row - R::row) + src_row;
      const int c = (kTransposed ? row - R::row : col - R::col) + src_col;
      const bool is_there = !kCheckRows || r < source.rows;
      Tile::store(base, row, col, is_there ? to_float(global_load(Global::at(source, r, c))) : 0.0f);
    }
}

// copy_out from shared memory.
template <class Tile, class R, int kWarps, bool kCheckRows, bool kTransposed, class Global>
GDR_FN void copy_out(Me me, int base, const Global& target, int dst_row, int dst_col) {
  if constexpr (!kTransposed && sizeof(typename Global::T) == sizeof(typename Tile::Element) && R::cols % Tile::kPerUnit == 0) {
    struct alignas(16) Unit {
      u32 word[4];
    };
    constexpr int kUnits = R::cols / Tile::kPerUnit;
    constexpr int kRowsOfWarp = (R::rows + kWarps - 1) / kWarps;
    for (int at = me.lane; at < kRowsOfWarp * kUnits; at += 32) {
      const int row = R::row + at / kUnits * kWarps + me.warp, col = R::col + at % kUnits * Tile::kPerUnit;
      const int to = row - R::row + dst_row;
      if (row >= R::row_end || (kCheckRows && to >= target.rows)) continue;
      global_store(reinterpret_cast<Unit*>(Global::at(target, to, col - R::col + dst_col)),
                   shared_load<Unit>(Tile::byte(base, row, col)));
    }
  } else {
    for (int row = R::row + me.warp; row < R::row_end; row += kWarps)
      for (int col = R::col + me.lane; col < R::col_end; col += 32) {
        const int r = (kTransposed ? col - R::col : row - R::row) + dst_row;
        const int c = (kTransposed ? row - R::row : col - R::col) + dst_col;
        if (kCheckRows && r >= target.rows) continue;
        global_store(Global::at(target, r, c), from_float<typename Global::T>(Tile::load(base, row, col)));
      }
  }
}

// copy_out of packed lower blocks.
template <class Tile, int kWarps, class Global>
GDR_FN void copy_out_lower(Me me, int base, const Global& target) {
  for (int row = me.warp; row < Tile::kRows; row += kWarps) {
    const int blocks = row / 16 + 1;
    for (int col = me.lane; col < blocks * 16; col += 32) {
      const int block = row / 16 * blocks / 2 + col / 16;
      global_store(target.base + (block * 16 + row % 16) * 16 + col % 16, from_float<typename Global::T>(Tile::load(base, row, col)));
    }
  }
}

// copy_out from registers.
template <class X, class R, bool kCheckRows, bool kTransposed, bool kLowerBlocks, class Global>
GDR_FN void copy_out(Me me, const X& x, const Global& target, int dst_row, int dst_col) {
  for_elements<typename X::S, R>(me, [&](int b, int n, int e, int row, int col) {
    const int r = (kTransposed ? col - R::col : row - R::row) + dst_row;
    const int c = (kTransposed ? row - R::row : col - R::col) + dst_col;
    if (kCheckRows && r >= target.rows) return;
    if constexpr (kLowerBlocks) {
      if (c / 16 > r / 16) return;
      const int block = r / 16 * (r / 16 + 1) / 2 + c / 16;
      global_store(target.base + (block * 16 + r % 16) * 16 + c % 16, from_float<typename Global::T>(X::get(x, b, n, e)));
    } else {
      global_store(Global::at(target, r, c), from_float<typename Global::T>(X::get(x, b, n, e)));
    }
  });
}

// ----------------------------------------------------------------------------------- between shared and registers

template <class X, class R, class Tile, bool kTransposed>
GDR_FN void load(Me me, X& x, int base, int src_row, int src_col) {
  for_pairs<typename X::S, R>(me, [&](int b, int n, int e, int row, int col) {
    const auto value = [&](int c) {
      const int r0 = row - R::row, c0 = c - R::col;
      return kTransposed ? Tile::load(base, c0 + src_row, r0 + src_col) : Tile::load(base, r0 + src_row, c0 + src_col);
    };
    set_pair(x, b, n, e, value(col), value(col + 1));
  });
}

template <class X, class R, bool kCheckRows, bool kTransposed, class Global>
GDR_FN void load(Me me, X& x, const Global& source, int src_row, int src_col) {
  for_pairs<typename X::S, R>(me, [&](int b, int n, int e, int row, int col) {
    const auto value = [&](int c) {
      const int r = (kTransposed ? c - R::col : row - R::row) + src_row;
      const int k = (kTransposed ? row - R::row : c - R::col) + src_col;
      return source.base && (!kCheckRows || r < source.rows) ? to_float(global_load(Global::at(source, r, k))) : 0.0f;
    };
    set_pair(x, b, n, e, value(col), value(col + 1));
  });
}

template <int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
GDR_FN void set_pair(Accumulator<kRows, kCols, kGridRows, kGridCols, kDeal>& x, int b, int n, int e, float first,
                     float second) {
  x.v[b][n][e] = first;
  x.v[b][n][e + 1] = second;
}
template <typename T, int kRows, int kCols, int kGridRows, int kGridCols, int kDeal>
GDR_FN void set_pair(Fragment<T, kRows, kCols, kGridRows, kGridCols, kDeal>& x, int b, int n, int e, float first,
                     float second) {
  x.v[b][n / 2][n % 2 * 2 + e / 2] = pack(T{}, first, second);
}

// store: R in the register tile, the tile's rectangle begins at (dst_row, dst_col).
template <class X, class R, class Tile>
GDR_FN void store(Me me, const X& x, int base, int dst_row, int dst_col) {
  for_pairs<typename X::S, R>(me, [&](int b, int n, int e, int row, int col) {
    const int r = row - R::row + dst_row, c = col - R::col + dst_col;
    if (Tile::has(r, c)) Tile::store_pair(base, r, c, X::get(x, b, n, e), X::get(x, b, n, e + 1));
  });
}

template <class A, class X>
GDR_FN void relayout(A& a, const X& x) {
  GDR_UNROLL
  for (int b = 0; b < X::S::kRowBlocks; ++b)
    GDR_UNROLL
    for (int n = 0; n < X::S::kColBlocks; ++n)
      GDR_UNROLL
      for (int e = 0; e < 4; e += 2) set_pair(a, b, n, e, X::get(x, b, n, e), X::get(x, b, n, e + 1));
}

// ------------------------------------------------------------------------------------------------ matrix products

struct Unscaled {
  GDR_FN float at(const Unscaled&, int) { return 1.0f; }
  static constexpr bool kIsOne = true;
};
template <class F>
struct ScaledBy {
  F f;
  GDR_FN float at(const ScaledBy& s, int l) { return s.f(l); }
  static constexpr bool kIsOne = false;
};
template <class F>
GDR_FN ScaledBy<F> scaled_by(F f) {
  return {f};
}

// Multiplies the packed pair of elements l, l + 1 along the contraction and rounds again.
template <typename T, class Scale>
GDR_FN void scale_pair(u32& pair, const Scale& scale, int l) {
  if constexpr (!Scale::kIsOne)
    pair = pack(T{}, unpack<T>(pair, 0) * Scale::at(scale, l), unpack<T>(pair, 1) * Scale::at(scale, l + 1));
}

// The A operand of a product from shared memory: rectangle R of the tile, or its transpose.
template <class Tile_, class R_, bool kTransposed_>
struct SharedA {
  using Tile = Tile_;
  using T = typename Tile::Element;
  using R = R_;
  static constexpr bool kTransposed = kTransposed_;
  static constexpr int kDepth = kTransposed ? R::rows : R::cols;
  int base;

  // Rows from `row`, contraction from `l`, both relative to the rectangle. Blocks above the diagonal are not there.
  GDR_FN bool has(int row, int l) {
    return kTransposed ? Tile::has(R::row + l, R::col + row) : Tile::has(R::row + row, R::col + l);
  }
  GDR_FN void fetch(const SharedA& a, Me me, int row, int l, u32 (&r)[4]) {
    const int eight = me.lane % 8, second = me.lane / 8 % 2 * 8, fourth = me.lane / 16 * 8;
    if constexpr (kTransposed)
      load_matrices_transposed(r, Tile::byte(a.base, R::row + l + eight + fourth, R::col + row + second));
    else
      load_matrices(r, Tile::byte(a.base, R::row + row + eight + second, R::col + l + fourth));
  }
  GDR_FN float element(const SharedA& a, int row, int l) {
    return kTransposed ? Tile::load(a.base, R::row + l, R::col + row) : Tile::load(a.base, R::row + row, R::col + l);
  }
};

// The A operand from fragments that this warp owns; rows of d and of the fragments coincide.
template <class X, class R>
struct RegisterA {};

// The B operand from shared memory.
template <class Tile_, class R_, bool kTransposed_>
struct SharedB {
  using Tile = Tile_;
  using R = R_;
  static constexpr bool kTransposed = kTransposed_;
  int base;

  // Contraction from `l`, columns from `col`, relative to the rectangle.
  GDR_FN bool has(int l, int col) {
    return kTransposed ? Tile::has(R::row + col, R::col + l) : Tile::has(R::row + l, R::col + col);
  }
  // Two blocks of 8 columns; `this_col` is the first column of the block that this lane's half of the warp addresses.
  GDR_FN void fetch(const SharedB& b, Me me, int l, int this_col, u32 (&r)[4]) {
    const int eight = me.lane % 8, second = me.lane / 8 % 2 * 8;
    if constexpr (kTransposed)
      load_matrices(r, Tile::byte(b.base, R::row + this_col + eight, R::col + l + second));
    else
      load_matrices_transposed(r, Tile::byte(b.base, R::row + l + eight + second, R::col + this_col));
  }
  GDR_FN float element(const SharedB& b, int l, int col) {
    return kTransposed ? Tile::load(b.base, R::row + col, R::col + l) : Tile::load(b.base, R::row + l, R::col + col);
  }
};

// What all products share: d's rectangle, which of its blocks are there, and the start from zero.
template <class D, class R, bool kLowerD>
struct Product {
  using S = typename D::S;
  GDR_FN bool row_in(int first) { return R::rows == S::kRows || (first >= R::row && first < R::row_end); }
  GDR_FN bool col_in(int left) { return R::cols == S::kCols || (left >= R::col && left < R::col_end); }
  GDR_FN bool block_in(int first, int left) { return row_in(first) && col_in(left) && (!kLowerD || left / 16 <= first / 16); }
  GDR_FN void clear(Me me, D& d) {
    for_elements<S, R>(me, [&](int b, int n, int e, int, int) { d.v[b][n][e] = 0.0f; });
  }
};

// Adds to d what one 16-deep block of the contraction, from `l` on, brings: `rows` are its A fragments, one for each of
// the warp's row blocks; those for which has_rows(b) is false are not there.
template <class D, class P, class R, class T, class B, class HasRows>
GDR_FN void multiply_block(Me me, D& d, const u32 (&rows)[D::S::kRowBlocks][4], const B& b_operand, int l,
                           const HasRows& has_rows) {
  using S = typename D::S;
  GDR_UNROLL
  for (int n = 0; n < S::kColBlocks; n += 2) {
    const int left = S::block_col(me, n), right = n + 1 < S::kColBlocks ? S::block_col(me, n + 1) : left;
    const bool use_left = P::col_in(left) && B::has(l, left - R::col);
    const bool use_right = n + 1 < S::kColBlocks && P::col_in(right) && B::has(l, right - R::col);
    if (!use_left && !use_right) continue;
    // The first half of the warp addresses the left block, the second the right one; a block that is not used is not
    // touched either.
    const int this_col = (me.lane < 16 ? use_left : !use_right) ? left : right;
    u32 pair[4];
    B::fetch(b_operand, me, l, this_col - R::col, pair);
    GDR_UNROLL
    for (int b = 0; b < S::kRowBlocks; ++b) {
      if (!has_rows(b)) continue;
      const int row = S::block_row(me, b);
      if (use_left && P::block_in(row, left)) matrix_product(T{}, d.v[b][n], rows[b], pair[0], pair[1]);
      if (use_right && P::block_in(row, right)) matrix_product(T{}, d.v[b][n + 1], rows[b], pair[2], pair[3]);
    }
  }
}

template <typename T, class Scale>
GDR_FN void scale_fragment(Me me, u32 (&fragment)[4], const Scale& scale, int l) {
  const int first = l + me.lane % 4 * 2;
  scale_pair<T>(fragment[0], scale, first), scale_pair<T>(fragment[1], scale, first);
  scale_pair<T>(fragment[2], scale, first + 8), scale_pair<T>(fragment[3], scale, first + 8);
}

// d (+)= a b on the matrix units, A from shared memory. Slices [kSlice, kSliceEnd) of kSlices equal runs of the
// contraction; a start from zero belongs to the first.
template <class D, class R, bool kLowerD, bool kAccumulate, int kSlice, int kSliceEnd, int kSlices, class A, class B,
          class Scale>
GDR_FN void mma(Me me, D& d, const A& a, const B& b_operand, const Scale& scale) {
  using S = typename D::S;
  using P = Product<D, R, kLowerD>;
  using T = typename A::T;
  constexpr int kBegin = A::kDepth / 16 * kSlice / kSlices, kEnd = A::kDepth / 16 * kSliceEnd / kSlices;
  if constexpr (!kAccumulate && kSlice == 0) P::clear(me, d);
  GDR_ROLLED
  for (int block = kBegin; block < kEnd; ++block) {
    const int l = block * 16;
    const auto has_rows = [&](int b) {
      const int row = S::block_row(me, b);
      return P::row_in(row) && A::has(row - R::row, l);
    };
    u32 rows[S::kRowBlocks][4];
    GDR_UNROLL
    for (int b = 0; b < S::kRowBlocks; ++b) {
      if (!has_rows(b)) continue;
      A::fetch(a, me, S::block_row(me, b) - R::row, l, rows[b]);
      scale_fragment<T>(me, rows[b], scale, l);
    }
    multiply_block<D, P, R, T>(me, d, rows, b_operand, l, has_rows);
  }
}

// d (+)= a b, A from registers: unrolled, since registers are named at compile time.
template <class D, class R, bool kLowerD, bool kAccumulate, int kSlice, int kSliceEnd, int kSlices, class X, class RA,
          class B, class Scale>
GDR_FN void mma(Me me, D& d, const X& x, RegisterA<X, RA>, const B& b_operand, const Scale& scale) {
  using S = typename D::S;
  using P = Product<D, R, kLowerD>;
  using T = typename X::Element;
  static_assert(X::kGridCols == 1 && RA::rows == X::kRows, "a warp owns its rows of A along the whole contraction");
  constexpr int kBegin = RA::cols / 16 * kSlice / kSlices, kEnd = RA::cols / 16 * kSliceEnd / kSlices;
  if constexpr (!kAccumulate && kSlice == 0) P::clear(me, d);
  GDR_UNROLL
  for (int block = kBegin; block < kEnd; ++block) {
    const int l = block * 16;
    u32 rows[S::kRowBlocks][4];
    GDR_UNROLL
    for (int b = 0; b < S::kRowBlocks; ++b) {
      GDR_UNROLL
      for (int i = 0; i < 4; ++i) rows[b][i] = x.v[b][(RA::col + l) / 16][i];
      scale_fragment<T>(me, rows[b], scale, l);
    }
    multiply_block<D, P, R, T>(me, d, rows, b_operand, l, [](int) { return true; });
  }
}

// d (+)= a b in fp32 arithmetic, for fp32 tiles.
template <class D, class R, bool kLowerD, bool kAccumulate, class A, class B>
GDR_FN void mma_fp32(Me me, D& d, const A& a, const B& b_operand) {
  using S = typename D::S;
  using P = Product<D, R, kLowerD>;
  if constexpr (!kAccumulate) P::clear(me, d);
  for_elements<S, R>(me, [&](int b, int n, int e, int row, int col) {
    if (!P::block_in(row / 16 * 16, col / 8 * 8)) return;
    float sum = d.v[b][n][e];
    for (int l = 0; l < A::kDepth; ++l)
      if (A::has(row - R::row, l) && B::has(l, col - R::col))
        sum += A::element(a, row - R::row, l) * B::element(b_operand, l, col - R::col);
    d.v[b][n][e] = sum;
  });
}

// --------------------------------------------------------------------------------------------- sums, scans, inverse

// Sums over columns: value i of partial row `grid column`. Lanes of a quad share a row.
template <class S, class R, class Tile, bool kAccumulate, class Value>
GDR_FN void sum_cols(Me me, int base, const Value& value) {
  GDR_UNROLL
  for (int b = 0; b < S::kRowBlocks; ++b)
    GDR_UNROLL
    for (int half = 0; half < 2; ++half) {
      float sum = 0.0f;
      const int row = S::row(me, b, half * 2);
      if (R::rows != S::kRows && (S::block_row(me, b) < R::row || S::block_row(me, b) >= R::row_end)) continue;
      GDR_UNROLL
      for (int n = 0; n < S::kColBlocks; ++n) {
        const int left = S::block_col(me, n);
        if (R::cols != S::kCols && (left < R::col || left >= R::col_end)) continue;
        GDR_UNROLL
        for (int e = half * 2; e < half * 2 + 2; ++e) sum += value(b, n, e, row, left + me.lane % 4 * 2 + e % 2);
      }
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (me.lane % 4 == 0)
        Tile::store(base, S::grid_col(me), row, sum + (kAccumulate ? Tile::load(base, S::grid_col(me), row) : 0.0f));
    }
}

// Sums over rows: value j of partial row `grid row`. Eight lanes share a column.
template <class S, class R, class Tile, bool kAccumulate, class Value>
GDR_FN void sum_rows(Me me, int base, const Value& value) {
  GDR_UNROLL
  for (int n = 0; n < S::kColBlocks; ++n)
    GDR_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      const int left = S::block_col(me, n), col = left + me.lane % 4 * 2 + odd;
      if (R::cols != S::kCols && (left < R::col || left >= R::col_end)) continue;
      float sum = 0.0f;
      GDR_UNROLL
      for (int b = 0; b < S::kRowBlocks; ++b) {
        if (R::rows != S::kRows && (S::block_row(me, b) < R::row || S::block_row(me, b) >= R::row_end)) continue;
        GDR_UNROLL
        for (int e = odd; e < 4; e += 2) sum += value(b, n, e, S::row(me, b, e), col);
      }
      sum += shuffle_xor(sum, 4);
      sum += shuffle_xor(sum, 8);
      sum += shuffle_xor(sum, 16);
      if (me.lane < 4)
        Tile::store(base, S::grid_row(me), col, sum + (kAccumulate ? Tile::load(base, S::grid_row(me), col) : 0.0f));
    }
}

// The sum of everything: partial row `warp`, if the warp has a share of the rectangle.
template <class S, class R, class Tile, bool kAccumulate, class Value>
GDR_FN void sum_all(Me me, int base, const Value& value) {
  const int first = S::block_row(me, 0), end = first + S::kRowBlocks * 16;
  if (R::rows != S::kRows && (end <= R::row || first >= R::row_end)) return;
  float sum = 0.0f;
  for_elements<S, R>(me, [&](int b, int n, int e, int row, int col) { sum += value(b, n, e, row, col); });
  GDR_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) sum += shuffle_xor(sum, mask);
  if (me.lane == 0) Tile::store(base, me.warp, 0, sum + (kAccumulate ? Tile::load(base, me.warp, 0) : 0.0f));
}

// Calls body(i) for each element of a vector in [kBegin, kEnd), 32 at a time in turn to the warps.
template <int kBegin, int kEnd, int kWarps, class Body>
GDR_FN void for_vector(Me me, const Body& body) {
  for (int i = kBegin + me.warp * 32 + me.lane; i < kEnd; i += kWarps * 32) body(i);
}

// Sums along a vector of kLength values, held 32 apart by the lanes of one warp.
template <int kLength>
struct Sums {
  float v[(kLength + 31) / 32];
  GDR_FN float at(const Sums& s, int i) { return s.v[i / 32]; }  // of the lane that holds i
};

// Up to and with i.
template <int kLength, class Value>
GDR_FN Sums<kLength> prefix_sums(Me me, const Value& value) {
  Sums<kLength> s;
  float carry = 0.0f;
  GDR_UNROLL
  for (int k = 0; k < (kLength + 31) / 32; ++k) {
    const int i = k * 32 + me.lane;
    float x = i < kLength ? value(i) : 0.0f;
    GDR_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
      const float below = shuffle_up(x, distance);
      if (me.lane >= distance) x += below;
    }
    s.v[k] = x + carry;
    carry = shuffle_from(s.v[k], 31);
  }
  return s;
}

// Up to i, without it.
template <int kLength, class Value>
GDR_FN Sums<kLength> before_sums(Me me, const Value& value) {
  Sums<kLength> s = prefix_sums<kLength>(me, value);
  float last = 0.0f;
  GDR_UNROLL
  for (int k = 0; k < (kLength + 31) / 32; ++k) {
    const float below = shuffle_up(s.v[k], 1), end = shuffle_from(s.v[k], 31);
    s.v[k] = me.lane == 0 ? last : below;
    last = end;
  }
  return s;
}

// From i on.
template <int kLength, class Value>
GDR_FN Sums<kLength> suffix_sums(Me me, const Value& value) {
  Sums<kLength> s;
  float carry = 0.0f;
  GDR_UNROLL
  for (int k = (kLength + 31) / 32 - 1; k >= 0; --k) {
    const int i = k * 32 + me.lane;
    float x = i < kLength ? value(i) : 0.0f;
    GDR_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
      const float above = shuffle_down(x, distance);
      if (me.lane + distance < 32) x += above;
    }
    s.v[k] = x + carry;
    carry = shuffle_from(s.v[k], 0);
  }
  return s;
}

// Inverses of the unit lower 16x16 diagonal blocks of an fp32 tile, less the unit diagonal. A block a warp in turn, a
// column a lane: x_i = -l_ij - sum over j < m < i of l_im x_m.
template <class Dst, class Src, class R, int kWarps>
GDR_FN void invert_blocks(Me me, int dst, int src) {
  for (int block = me.warp; block < R::rows / 16; block += kWarps) {
    const int row = R::row + block * 16, col = R::col + block * 16, j = me.lane;
    if (j >= 16) continue;
    float x[16];
    GDR_UNROLL
    for (int i = 0; i < 16; ++i) {
      float sum = i > j ? -Src::load(src, row + i, col + j) : 0.0f;
      GDR_UNROLL
      for (int m = 0; m < i; ++m)
        if (m > j) sum -= Src::load(src, row + i, col + m) * x[m];
      x[i] = i > j ? sum : 0.0f;
      Dst::store(dst, row + i, col + j, x[i]);
    }
  }
}

// ------------------------------------------------------------------------------------------------------- barriers

// All earlier accesses of the warp come before the arrival, which counts once for the warp.
GDR_FN void arrive(Me me, int barrier) {
  warp_sync();
  if (me.lane == 0) barrier_arrive(barrier);
}

// Waits for the event of iteration `it` of a barrier with kStages copies from byte kFirst on; those before the first
// iteration are past.
template <int kFirst, int kStages>
GDR_FN void wait_for(int it) {
  if (it >= 0) barrier_wait(kFirst + it % kStages * 8, it / kStages & 1);
}
