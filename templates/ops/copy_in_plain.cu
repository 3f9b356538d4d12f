warp_sync();
    copy_in_plain<%{tile}, %{rect}, %{warps}, %{check_rows}, %{transposed}>(me, %{base}, %{source}, %{src_row}, %{src_col});
    warp_sync();