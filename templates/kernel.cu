// gdrjit %{version}, %{kernel}, plan for %{arch}. Generated: change the template or config, not this file.
// plan %{plan_hash}. %{decisions}
// Reproduce: gdrjit emit PLAN.json --kernel %{function}
%{library}
// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = %{chunk};
constexpr int kThreads = %{threads};
constexpr int kSmemBytes = %{smem_bytes};  // of %{smem_limit} that a block may have

%{tiles}
%{barriers}
struct TensorArg {
  void* data;       // null: the tensor is absent
  i64 item_stride;  // in elements: of a sequence (or batch entry), or of a chunk
  i64 head_stride;
  i64 row_stride;
};
struct Args {
%{arguments}
  i64 tokens;         // of each sequence
  int num_sequences;
  int k_heads;
  int v_heads;        // kGroup of them for one k-head
  float scale;
};
constexpr int kGroup = %{group};

// Where this block works.
struct Block {
  int sequence;
  int head;            // v-head or k-head, by the grid
  int v_slice;
  int chunk;           // of the sequence, where the grid runs over chunks
  int first_chunk;     // of the sequence, counted over all sequences
  int num_chunks;      // of the sequence
  i64 tokens;          // of the sequence
};

GDR_FN Block find_block(const Args& args) {
  Block block = {};
  int index = block_index();
  block.tokens = args.tokens;
  block.num_chunks = static_cast<int>((args.tokens + kChunk - 1) / kChunk);
%{find_block}
  block.first_chunk = block.sequence * block.num_chunks;
  return block;
}

template <typename T, int kStride>
GDR_FN GlobalTile<T, kStride> tile_of(const TensorArg& tensor, i64 item, int head, i64 first_row, int rows) {
  T* data = static_cast<T*>(tensor.data);
  if (data) data += item * tensor.item_stride + head * tensor.head_stride + first_row * tensor.row_stride;
  return {data, tensor.row_stride, rows};
}

%{roles}
// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, %{blocks_per_sm}) %{kernel}(const Args args) {
  const int warp = warp_index(), lane = thread_index() % 32;
%{init}
  const Block block = find_block(args);
%{dispatch}
}
