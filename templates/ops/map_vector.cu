warp_sync();
    for_vector<%{begin}, %{end}, %{warps}>(me, [&](int i) { %{assign}; });
    warp_sync();