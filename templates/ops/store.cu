warp_sync();
    store<%{tile}, %{rect}, %{shared}>(me, %{source}, %{base}, %{dst_row}, %{dst_col});
    warp_sync();