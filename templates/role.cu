// ---------------------------------------------------------------------------------------------------- role %{role}
// Warps %{first_warp} to %{last_warp}, %{registers} registers a thread.
// Waits for: %{waits_for}. Signals: %{signals}.
GDR_FN void role_%{role}(const Args& args, const Block& block, Me me) {
%{registers_taken}%{register_tiles}%{prologue}
  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < %{iterations}; ++it) {
    const int chunk = %{chunk};
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
%{body}  }
%{epilogue}}

