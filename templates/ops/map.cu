for_elements<%{share}, %{rect}>(me, [&](int b, int n, int e, int i, int j) {
      %{assign};
    });