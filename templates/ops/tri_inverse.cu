warp_sync();
    invert_blocks<%{target}, %{source}, %{rect}, %{warps}>(me, %{target_base}, %{source_base});
    warp_sync();