warp_sync();
    %{function}<%{share}, %{rect}, %{vector}, %{accumulate}>(me, %{base}, [&](int b, int n, int e, int i, int j) {
      return %{value};
    });
    warp_sync();