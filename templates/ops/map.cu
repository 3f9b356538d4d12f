for_elements<%{share}, %{rect}>(me, [&](int b, int n, int e, At i, At j) {
      %{assign};
    });