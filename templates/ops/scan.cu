if (me.warp == 0) {
      warp_sync();
%{sums}      for_vector<0, %{length}, 1>(me, [&](int i) { %{assign}; });
      warp_sync();
    }