// Operations of a schedule, one function template for each kind: the meaning that src/interp gives them, in the terms
// of the primitives. `base` is that of a tile's stage and part; rectangles are in coordinates of the whole tile.

// ---------------------------------------------------------------------------------------------------- elements

// Calls body(b, n) for each block of the rectangle that this warp holds.
template <class S, class R, class Body>
GDR_FN void for_blocks(Me me, const Body& body) {
  GDR_UNROLL
  for (int b = 0; b < S::kRowBlocks; ++b) {
    if (!S::template has_rows<R>(me, b)) continue;
    GDR_UNROLL
    for (int n = 0; n < S::kColBlocks; ++n)
      if (S::template has_cols<R>(me, n)) body(b, n);
  }
}

// Calls body(b, n, e, row, col) for each element of the rectangle that this lane holds.
template <class S, class R, class Body>
GDR_FN void for_elements(Me me, const Body& body) {
  for_blocks<S, R>(me, [&](int b, int n) {
    GDR_UNROLL
    for (int e = 0; e < 4; ++e) body(b, n, e, S::row(me, b, e), S::col(me, n, e));
  });
}

// The same for two neighbours in a row at a time: body(b, n, e, row, col) with e = 0 and 2.
template <class S, class R, class Body>
GDR_FN void for_pairs(Me me, const Body& body) {
  for_blocks<S, R>(me, [&](int b, int n) {
    GDR_UNROLL
    for (int e = 0; e < 4; e += 2) body(b, n, e, S::row(me, b, e), S::col(me, n, e));
  });
}

// ------------------------------------------------------------------------------------------------------ copies

// Calls body(row, col, from) for each 16-byte unit of R that this lane moves: (row, col) in the tile, `from` the row
// counted from R's first. Rows in turn to the warps.
template <class R, int kPerUnit, int kWarps, class Body>
GDR_FN void for_units(Me me, const Body& body) {
  constexpr int kUnits = R::cols / kPerUnit, kRowsOfWarp = (R::rows + kWarps - 1) / kWarps;
  static_assert(kUnits * kPerUnit == R::cols, "rows are whole 16-byte units");
  if constexpr (R::rows == 1 && kUnits <= 32) {
    if (me.warp == 0 && me.lane < kUnits) body(At(R::row), At(me.lane * kPerUnit, R::col), At(0));
  } else if constexpr (32 % kUnits == 0 && R::col % R::cols == 0 && 32 / kUnits * kWarps % 8 == 0 && R::row % 8 == 0 &&
                R::rows % (32 / kUnits * kWarps) == 0) {
    constexpr int kStep = 32 / kUnits * kWarps;  // rows that all warps move at a time
    const int row = me.lane / kUnits * kWarps + me.warp, col = me.lane % kUnits * kPerUnit;
    GDR_UNROLL
    for (int first = 0; first < R::rows; first += kStep) body(At(row, R::row + first), At(col, R::col), At(row, first));
  } else {
    for (int at = me.lane; at < kRowsOfWarp * kUnits; at += 32) {
      const int from = at / kUnits * kWarps + me.warp;
      if (from < R::rows) body(At(R::row + from), At(R::col + at % kUnits * kPerUnit), At(from));
    }
  }
}

// Calls body(row, col) for each element of R, rows in turn to the warps.
template <class R, int kWarps, class Body>
GDR_FN void for_dealt(Me me, const Body& body) {
  if constexpr (R::rows == 1 && R::cols <= 32) {
    if (me.warp == 0 && me.lane < R::cols) body(R::row, R::col + me.lane);
  } else {
    for (int row = R::row + me.warp; row < R::row_end; row += kWarps)
      for (int col = R::col + me.lane; col < R::col_end; col += 32) body(row, col);
  }
}

// copy_in: 16 bytes a lane at a time. Source rows from `src_row` on.
template <class Tile, class R, int kWarps, bool kCheckRows, class Global>
GDR_FN void copy_in(Me me, int base, const Global& source, int src_row, int src_col) {
  for_units<R, Tile::kPerUnit, kWarps>(me, [&](At row, At col, At from) {
    const bool is_there = !kCheckRows || from + src_row < source.rows;
    copy_16(Tile::byte(base, row, col),
            Global::at(source, At(from.own, from.fixed + src_row), At(col.own, col.fixed - R::col + src_col)), is_there);
  });
}

// copy_in of packed lower blocks: block after block in global memory, 16 rows of 16 elements each.
template <class Tile, int kWarps, class Global>
GDR_FN void copy_in_lower(Me me, int base, const Global& source) {
  constexpr int kUnits = 16 / Tile::kPerUnit, kOfBlock = 16 * kUnits;
  for (int at = me.warp * 32 + me.lane; at < Tile::kBlocks * (Tile::kBlocks + 1) / 2 * kOfBlock; at += kWarps * 32) {
    const int in_block = at % kOfBlock;
    copy_16(base + at / kOfBlock * 16 * Tile::kPitch + Tile::byte(0, in_block / kUnits, in_block % kUnits * Tile::kPerUnit),
            source.base + at * Tile::kPerUnit, true);
  }
}

// copy_in by ordinary loads and stores: elements that are too narrow for cp.async, or are converted on the way.
// A vector's elements are rows of its source.
template <class Tile, class R, int kWarps, bool kCheckRows, bool kTransposed, class Global>
GDR_FN void copy_in_plain(Me me, int base, const Global& source, int src_row, int src_col) {
  for_dealt<R, kWarps>(me, [&](int row, int col) {
    const int r = (kTransposed ? col - R::col : row - R::row) + src_row;
    const int c = (kTransposed ? row - R::row : col - R::col) + src_col;
    const bool is_there = !kCheckRows || r < source.rows;
    Tile::store(base, row, col, is_there ? to_float(global_load(Global::at(source, r, c))) : 0.0f);
  });
}

// copy_out from shared memory.
template <class Tile, class R, int kWarps, bool kCheckRows, bool kTransposed, class Global>
GDR_FN void copy_out(Me me, int base, const Global& target, int dst_row, int dst_col) {
  if constexpr (!kTransposed && sizeof(typename Global::T) == sizeof(typename Tile::Element) && R::cols % Tile::kPerUnit == 0) {
    struct alignas(16) Unit {
      u32 word[4];
    };
    for_units<R, Tile::kPerUnit, kWarps>(me, [&](At row, At col, At from) {
      if (kCheckRows && from + dst_row >= target.rows) return;
      global_store(reinterpret_cast<Unit*>(Global::at(target, At(from.own, from.fixed + dst_row),
                                                      At(col.own, col.fixed - R::col + dst_col))),
                   shared_load<Unit>(Tile::byte(base, row, col)));
    });
  } else {
    for_dealt<R, kWarps>(me, [&](int row, int col) {
      const int r = (kTransposed ? col - R::col : row - R::row) + dst_row;
      const int c = (kTransposed ? row - R::row : col - R::col) + dst_col;
      if (kCheckRows && r >= target.rows) return;
      global_store(Global::at(target, r, c), from_float<typename Global::T>(Tile::load(base, row, col)));
    });
  }
}

// copy_out of packed lower blocks.
template <class Tile, int kWarps, class Global>
GDR_FN void copy_out_lower(Me me, int base, const Global& target) {
  for (int row = me.warp; row < Tile::kRows; row += kWarps)
    for (int col = me.lane; col < (row / 16 + 1) * 16; col += 32)
      global_store(target.base + lower_element(row, col), from_float<typename Global::T>(Tile::load(base, row, col)));
}

// copy_out from registers.
template <class X, class R, bool kCheckRows, bool kTransposed, bool kLowerBlocks, class Global>
GDR_FN void copy_out(Me me, const X& x, const Global& target, int dst_row, int dst_col) {
  using S = typename X::S;
  using T = typename Global::T;
  if constexpr (kTransposed && kIsFragment<X>) {
    // Rows become columns across the lanes, so that each still holds two neighbours; of two lanes one then takes the four
    // neighbours of the upper half, the other those of the lower.
    for_blocks<S, R>(me, [&](int b, int n) {
      const u32(&block)[4] = x.v[b][n / 2];
      const u32 upper = transpose_matrix(block[n % 2 * 2]), lower = transpose_matrix(block[n % 2 * 2 + 1]);
      const bool takes_lower = me.lane % 2 != 0;
      const u32 other = shuffle_xor(takes_lower ? upper : lower, 1);
      const At row = S::block_col(me, n), col = S::block_row(me, b);
      const At r(row.own + me.lane / 4, row.fixed - R::col + dst_row);
      const At c(col.own + (takes_lower ? 8 : 0) + me.lane % 4 / 2 * 4, col.fixed - R::row + dst_col);
      if (kCheckRows && r >= target.rows) return;
      global_store(reinterpret_cast<Pair<u32>*>(Global::at(target, r, c)),
                   takes_lower ? Pair<u32>{other, lower} : Pair<u32>{upper, other});
    });
  } else if constexpr (kTransposed) {
    for_elements<S, R>(me, [&](int b, int n, int e, At row, At col) {
      const int r = col - R::col + dst_row, c = row - R::row + dst_col;
      if (!kCheckRows || r < target.rows) global_store(Global::at(target, r, c), from_float<T>(X::get(x, b, n, e)));
    });
  } else {
    for_pairs<S, R>(me, [&](int b, int n, int e, At row, At col) {
      const At r = moved_row(row, dst_row - R::row), c(col.own, col.fixed - R::col + dst_col);
      if (kCheckRows && r >= target.rows) return;
      T* to;
      if constexpr (kLowerBlocks) {
        if (c / 16 > r / 16) return;
        to = target.base + lower_element(r, c);
      } else {
        to = Global::at(target, r, c);
      }
      global_store(reinterpret_cast<Pair<T>*>(to), Pair<T>{from_float<T>(X::get(x, b, n, e)), from_float<T>(X::get(x, b, n, e + 1))});
    });
  }
}

// ----------------------------------------------------------------------------------- between shared and registers

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
  // The fragment of 16 rows; the warps' own parts of a row are below kRange.
  template <int kRange>
  GDR_FN void fetch(const SharedA& a, Me me, At row, At l, u32 (&r)[4]) {
    const int eight = me.lane % 8, second = me.lane / 8 % 2 * 8, fourth = me.lane / 16 * 8;
    if constexpr (kTransposed)
      load_matrices_transposed(r, Tile::byte(a.base, At(l.own + eight + fourth, l.fixed + R::row),
                                             moved<kRange>(At(row.own + second, row.fixed), R::col)));
    else
      load_matrices(r, Tile::byte(a.base, At(row.own + eight + second, row.fixed + R::row), At(l.own + fourth, l.fixed + R::col)));
  }
  GDR_FN float element(const SharedA& a, int row, int l) {
    return kTransposed ? Tile::load(a.base, R::row + l, R::col + row) : Tile::load(a.base, R::row + row, R::col + l);
  }
};

template <class X, class R, class Tile, bool kTransposed>
GDR_FN void load(Me me, X& x, int base, int src_row, int src_col) {
  using S = typename X::S;
  if constexpr (sizeof(typename Tile::Element) == 2 && S::kPairs && R::cols % 16 == 0) {
    using Source = SharedA<Tile, Rect<0, Tile::kRows, 0, Tile::kCols>, kTransposed>;
    for_blocks<S, R>(me, [&](int b, int n) {
      if (n % 2 != 0) return;
      const At row = moved<S::kRowRange>(S::block_row(me, b), (kTransposed ? src_col : src_row) - R::row);
      const At col = moved<S::kColRange>(S::block_col(me, n), (kTransposed ? src_row : src_col) - R::col);
      u32 r[4];
      Source::template fetch<S::kRowRange>(Source{base}, me, row, col, r);
      X::template set_block<typename Tile::Element>(x, b, n, r);
    });
  } else {
    for_pairs<S, R>(me, [&](int b, int n, int e, At row, At col) {
      if constexpr (kTransposed) {
        const int r = col - R::col + src_row, c = row - R::row + src_col;
        X::set_pair(x, b, n, e, Tile::load(base, r, c), Tile::load(base, r + 1, c));
      } else {
        const At r = moved_row(row, src_row - R::row), c = moved<S::kColRange>(col, src_col - R::col);
        X::set_pair(x, b, n, e, Tile::load_of_pair(base, r, c), Tile::load_of_pair(base, r, At(c.own, c.fixed + 1)));
      }
    });
  }
}

template <class X, class R, bool kCheckRows, bool kTransposed, class Global>
GDR_FN void load(Me me, X& x, const Global& source, int src_row, int src_col) {
  using T = typename Global::T;
  for_pairs<typename X::S, R>(me, [&](int b, int n, int e, At row, At col) {
    float first = 0.0f, second = 0.0f;
    if constexpr (kTransposed) {
      const int r = col - R::col + src_row, c = row - R::row + src_col;
      if (source.base && (!kCheckRows || r < source.rows)) first = to_float(global_load(Global::at(source, r, c)));
      if (source.base && (!kCheckRows || r + 1 < source.rows)) second = to_float(global_load(Global::at(source, r + 1, c)));
    } else {
      const At r = moved_row(row, src_row - R::row), c(col.own, col.fixed - R::col + src_col);
      if (source.base && (!kCheckRows || r < source.rows)) {
        const Pair<T> pair = global_load(reinterpret_cast<const Pair<T>*>(Global::at(source, r, c)));
        first = to_float(pair.first), second = to_float(pair.second);
      }
    }
    X::set_pair(x, b, n, e, first, second);
  });
}

// store: R in the register tile, the tile's rectangle begins at (dst_row, dst_col).
template <class X, class R, class Tile>
GDR_FN void store(Me me, const X& x, int base, int dst_row, int dst_col) {
  using S = typename X::S;
  for_pairs<S, R>(me, [&](int b, int n, int e, At row, At col) {
    const At r = moved_row(row, dst_row - R::row), c = moved<S::kColRange>(col, dst_col - R::col);
    if (Tile::has(r, c)) Tile::store_pair(base, r, c, X::get(x, b, n, e), X::get(x, b, n, e + 1));
  });
}

template <class A, class X>
GDR_FN void relayout(A& a, const X& x) {
  using S = typename X::S;
  GDR_UNROLL
  for (int b = 0; b < S::kRowBlocks; ++b)
    GDR_UNROLL
    for (int n = 0; n < S::kColBlocks; ++n)
      GDR_UNROLL
      for (int e = 0; e < 4; e += 2) A::set_pair(a, b, n, e, X::get(x, b, n, e), X::get(x, b, n, e + 1));
}

// ------------------------------------------------------------------------------------------------ matrix products

struct Unscaled {
  GDR_FN float at(const Unscaled&, At) { return 1.0f; }
  static constexpr bool kIsOne = true;
};
template <class F>
struct ScaledBy {
  F f;
  GDR_FN float at(const ScaledBy& s, At l) { return s.f(l); }
  static constexpr bool kIsOne = false;
};
template <class F>
GDR_FN ScaledBy<F> scaled_by(F f) {
  return {f};
}

// Multiplies the packed pair of elements l, l + 1 along the contraction and rounds again.
template <typename T, class Scale>
GDR_FN void scale_pair(u32& pair, const Scale& scale, At l) {
  if constexpr (!Scale::kIsOne)
    pair = pack(T{}, unpack<T>(pair, 0) * Scale::at(scale, l), unpack<T>(pair, 1) * Scale::at(scale, At(l.own, l.fixed + 1)));
}

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
  // Two blocks of 8 columns; `col` is the first column of the block that this lane's half of the warp addresses. The
  // warps' own parts of a column are below kRange.
  template <int kRange>
  GDR_FN void fetch(const SharedB& b, Me me, int l, At col, u32 (&r)[4]) {
    const int eight = me.lane % 8, second = me.lane / 8 % 2 * 8;
    if constexpr (kTransposed)
      load_matrices(r, Tile::byte(b.base, At(col.own + eight, col.fixed + R::row), At(second, R::col + l)));
    else
      load_matrices_transposed(r, Tile::byte(b.base, At(eight + second, R::row + l), moved<kRange>(col, R::col)));
  }
  GDR_FN float element(const SharedB& b, int l, int col) {
    return kTransposed ? Tile::load(b.base, R::row + col, R::col + l) : Tile::load(b.base, R::row + l, R::col + col);
  }
};

// What all products share: d's rectangle and which of its blocks are there.
template <class D, class R, bool kLowerD>
struct Product {
  using S = typename D::S;
  using Rectangle = R;

  // Row block b and column block n, relative to the rectangle.
  GDR_FN At row(Me me, int b) { return moved<S::kRowRange>(S::block_row(me, b), -R::row); }
  GDR_FN At col(Me me, int n) { return moved<S::kColRange>(S::block_col(me, n), -R::col); }
  GDR_FN bool has_block(Me me, int b, int n) {
    return S::template has_rows<R>(me, b) && S::template has_cols<R>(me, n) &&
           (!kLowerD || S::block_col(me, n) / 16 <= S::block_row(me, b) / 16);
  }
  GDR_FN void clear(Me me, D& d) {
    for_elements<S, R>(me, [&](int b, int n, int e, At, At) { d.v[b][n][e] = 0.0f; });
  }
};

// Adds to d what one 16-deep block of the contraction, from `l` on, brings: `rows` are its A fragments, one for each of
// the warp's row blocks; those for which has_rows(b) is false are not there. B's next two column blocks are on their way
// while two are multiplied.
template <class D, class P, class T, class B, class HasRows>
GDR_FN void multiply_block(Me me, D& d, const u32 (&rows)[D::S::kRowBlocks][4], const B& b_operand, int l,
                           const HasRows& has_rows) {
  using S = typename D::S;
  constexpr int kCount = (S::kColBlocks + 1) / 2;
  const auto right_of = [](int n) { return n + 1 < S::kColBlocks ? n + 1 : n; };
  const auto is_used = [&](int n) { return S::template has_cols<typename P::Rectangle>(me, n) && B::has(l, P::col(me, n)); };
  const auto use_right = [&](int n) { return S::kPairs ? is_used(n) : right_of(n) != n && is_used(right_of(n)); };
  u32 pair[2][4];
  const auto fetch = [&](int n) {
    if (!is_used(n) && !use_right(n)) return;
    // The first half of the warp addresses the left block, the second the right one; a block that is not used is not
    // touched either.
    const At first = P::col(me, n), last = P::col(me, right_of(n));
    const At col = S::kPairs ? At(first.own + me.lane / 16 * 8, first.fixed)
                             : At((me.lane < 16 ? is_used(n) : !use_right(n)) ? int(first) : int(last));
    B::template fetch<S::kColRange>(b_operand, me, l, col, pair[n / 2 % 2]);
  };
  fetch(0);
  GDR_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const int n = i * 2;
    if (i + 1 < kCount) fetch(n + 2);
    GDR_UNROLL
    for (int b = 0; b < S::kRowBlocks; ++b) {
      if (!has_rows(b)) continue;
      const u32(&now)[4] = pair[i % 2];
      if (is_used(n) && P::has_block(me, b, n)) matrix_product(T{}, d.v[b][n], rows[b], now[0], now[1]);
      if (use_right(n) && P::has_block(me, b, right_of(n)))
        matrix_product(T{}, d.v[b][right_of(n)], rows[b], now[2], now[3]);
    }
  }
}

template <typename T, class Scale>
GDR_FN void scale_fragment(Me me, u32 (&fragment)[4], const Scale& scale, int l) {
  const int own = me.lane % 4 * 2;
  scale_pair<T>(fragment[0], scale, At(own, l)), scale_pair<T>(fragment[1], scale, At(own, l));
  scale_pair<T>(fragment[2], scale, At(own, l + 8)), scale_pair<T>(fragment[3], scale, At(own, l + 8));
}

// Calls body(l) for the 16-deep blocks of the contraction that slices [kSlice, kSliceEnd) of kSlices equal runs hold.
// Steps of few products (kProducts) are unrolled, so that the next one's operands come meanwhile; unrolling long ones
// would only cost registers.
template <int kProducts, int kDepth, int kSlice, int kSliceEnd, int kSlices, class Body>
GDR_FN void for_contraction(const Body& body) {
  constexpr int kBegin = kDepth / 16 * kSlice / kSlices * 16, kEnd = kDepth / 16 * kSliceEnd / kSlices * 16;
  constexpr int kLength = kEnd - kBegin;
  constexpr int kAtOnce = kProducts > 4 ? 16 : kLength % 64 == 0 ? 64 : kLength <= 32 ? kLength : 16;
  GDR_ROLLED
  for (int first = kBegin; first < kEnd; first += kAtOnce) {
    GDR_UNROLL
    for (int l = 0; l < kAtOnce; l += 16) body(first + l);
  }
}

// d (+)= a b on the matrix units, A from shared memory. A start from zero belongs to the first slice.
template <class D, class R, bool kLowerD, bool kAccumulate, int kSlice, int kSliceEnd, int kSlices, class A, class B,
          class Scale>
GDR_FN void mma(Me me, D& d, const A& a, const B& b_operand, const Scale& scale) {
  using S = typename D::S;
  using P = Product<D, R, kLowerD>;
  using T = typename A::T;
  if constexpr (!kAccumulate && kSlice == 0) P::clear(me, d);
  for_contraction<S::kRowBlocks * S::kColBlocks, A::kDepth, kSlice, kSliceEnd, kSlices>([&](int l) {
    const auto has_rows = [&](int b) { return S::template has_rows<R>(me, b) && A::has(P::row(me, b), l); };
    u32 rows[S::kRowBlocks][4];
    GDR_UNROLL
    for (int b = 0; b < S::kRowBlocks; ++b) {
      if (!has_rows(b)) continue;
      A::template fetch<S::kRowRange>(a, me, P::row(me, b), At(0, l), rows[b]);
      scale_fragment<T>(me, rows[b], scale, l);
    }
    multiply_block<D, P, T>(me, d, rows, b_operand, l, has_rows);
  });
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
    multiply_block<D, P, T>(me, d, rows, b_operand, l, [](int) { return true; });
  }
}

// Two floats, each as the sum of two bf16.
struct SplitPair {
  u32 hi, lo;
};
GDR_FN SplitPair split(float first, float second) {
  const u32 hi = pack_bf16(first, second);
  return {hi, pack_bf16(first - unpack<bf16>(hi, 0), second - unpack<bf16>(hi, 1))};
}

// d (+)= a b of fp32 tiles: each operand as hi + lo, three products of four. What is left out is 2^-16 of a product.
template <class D, class R, bool kLowerD, bool kAccumulate, class A, class B>
GDR_FN void mma_fp32(Me me, D& d, const A& a, const B& b_operand) {
  using S = typename D::S;
  using P = Product<D, R, kLowerD>;
  if constexpr (!kAccumulate) P::clear(me, d);
  GDR_ROLLED
  for (int l = 0; l < A::kDepth; l += 16) {
    const int k = l + me.lane % 4 * 2;
    for_blocks<S, R>(me, [&](int b, int n) {
      const int row = P::row(me, b), col = P::col(me, n);
      if (!P::has_block(me, b, n) || !A::has(row, l) || !B::has(l, col)) return;
      SplitPair rows[4], cols[2];
      GDR_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int r = row + me.lane / 4 + i % 2 * 8, c = k + i / 2 * 8;
        rows[i] = split(A::element(a, r, c), A::element(a, r, c + 1));
      }
      GDR_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int r = k + i * 8, c = col + me.lane / 4;
        cols[i] = split(B::element(b_operand, r, c), B::element(b_operand, r + 1, c));
      }
      const u32 hi[4] = {rows[0].hi, rows[1].hi, rows[2].hi, rows[3].hi};
      const u32 lo[4] = {rows[0].lo, rows[1].lo, rows[2].lo, rows[3].lo};
      matrix_product(bf16{}, d.v[b][n], lo, cols[0].hi, cols[1].hi);
      matrix_product(bf16{}, d.v[b][n], hi, cols[0].lo, cols[1].lo);
      matrix_product(bf16{}, d.v[b][n], hi, cols[0].hi, cols[1].hi);
    });
  }
}

// --------------------------------------------------------------------------------------------- sums, scans, inverse

// Sums over columns: value i of partial row `grid column`. Lanes of a quad share a row.
template <class S, class R, class Tile, bool kAccumulate, class Value>
GDR_FN void sum_cols(Me me, int base, const Value& value) {
  base += S::grid_col(me) * Tile::kPitch;
  GDR_UNROLL
  for (int b = 0; b < S::kRowBlocks; ++b)
    GDR_UNROLL
    for (int half = 0; half < 4; half += 2) {
      if (!S::template has_rows<R>(me, b)) continue;
      const At row = S::row(me, b, half);
      float sum = 0.0f;
      GDR_UNROLL
      for (int n = 0; n < S::kColBlocks; ++n) {
        if (!S::template has_cols<R>(me, n)) continue;
        GDR_UNROLL
        for (int e = half; e < half + 2; ++e) sum += value(b, n, e, row, S::col(me, n, e));
      }
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (me.lane % 4 == 0) Tile::store(base, 0, row, sum + (kAccumulate ? Tile::load(base, 0, row) : 0.0f));
    }
}

// Sums over rows: value j of partial row `grid row`. Eight lanes share a column.
template <class S, class R, class Tile, bool kAccumulate, class Value>
GDR_FN void sum_rows(Me me, int base, const Value& value) {
  base += S::grid_row(me) * Tile::kPitch;
  GDR_UNROLL
  for (int n = 0; n < S::kColBlocks; ++n)
    GDR_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      if (!S::template has_cols<R>(me, n)) continue;
      const At col = S::col(me, n, odd);
      float sum = 0.0f;
      GDR_UNROLL
      for (int b = 0; b < S::kRowBlocks; ++b) {
        if (!S::template has_rows<R>(me, b)) continue;
        GDR_UNROLL
        for (int e = odd; e < 4; e += 2) sum += value(b, n, e, S::row(me, b, e), col);
      }
      sum += shuffle_xor(sum, 4);
      sum += shuffle_xor(sum, 8);
      sum += shuffle_xor(sum, 16);
      if (me.lane < 4) Tile::store(base, 0, col, sum + (kAccumulate ? Tile::load(base, 0, col) : 0.0f));
    }
}

// The sum of everything: partial row `warp`, if the warp has a share of the rectangle.
template <class S, class R, class Tile, bool kAccumulate, class Value>
GDR_FN void sum_all(Me me, int base, const Value& value) {
  const int first = S::block_row(me, 0), end = first + S::kRowBlocks * 16;
  if (R::rows != S::kRows && (end <= R::row || first >= R::row_end)) return;
  base += me.warp * Tile::kPitch;
  float sum = 0.0f;
  for_elements<S, R>(me, [&](int b, int n, int e, At row, At col) { sum += value(b, n, e, row, col); });
  GDR_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) sum += shuffle_xor(sum, mask);
  if (me.lane == 0) Tile::store(base, 0, 0, sum + (kAccumulate ? Tile::load(base, 0, 0) : 0.0f));
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
