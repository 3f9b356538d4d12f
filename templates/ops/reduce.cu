warp_sync();
    %{function}<%{share}, %{rect}, %{vector}, %{accumulate}>(me, %{base}, [&](int b, int n, int e, At i, At j) {
      return %{value};
    });
    warp_sync();