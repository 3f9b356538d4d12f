/* As main.cpp, through the C interface. */
#include <gdr/gdr.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIM = 16 };

static gdr_tensor tensor(float* data, int32_t rank) {
  gdr_tensor result;
  memset(&result, 0, sizeof result);
  result.data = data;
  result.dtype = GDR_FP32;
  result.rank = rank;
  result.shape[0] = result.shape[1] = result.shape[2] = 1;
  if (rank == 4) result.shape[3] = DIM;
  return result;
}

int main(void) {
  float q[DIM], k[DIM], v[DIM], o[DIM], g[1] = {0.0f}, beta[1] = {1.0f};
  const double scale = 1.0;
  int i;
  gdr_tensor tq = tensor(q, 4), tk = tensor(k, 4), tv = tensor(v, 4), to = tensor(o, 4);
  gdr_tensor tg = tensor(g, 3), tbeta = tensor(beta, 3);
  gdr_fwd_args args = GDR_FWD_ARGS_INIT;
  for (i = 0; i < DIM; ++i) {
    q[i] = 0.5f;
    k[i] = 0.25f;
    v[i] = (float)i;
    o[i] = NAN;
  }
  args.q = &tq;
  args.k = &tk;
  args.v = &tv;
  args.g = &tg;
  args.beta = &tbeta;
  args.o = &to;
  args.scale = &scale;
  if (gdr_run_fwd(&args, NULL, NULL) != GDR_OK) {
    puts(gdr_last_error());
    return 1;
  }
  for (i = 0; i < DIM; ++i) {
    if (!(fabsf(o[i] - 2.0f * v[i]) < 1e-4f)) { /* q.k = 16 x 0.5 x 0.25 */
      puts("wrong result");
      return 1;
    }
  }
  args.q = NULL;
  if (gdr_run_fwd(&args, NULL, NULL) != GDR_CONFIG) {
    puts("a missing argument was accepted");
    return 1;
  }
  printf("gdrjit %s: %s\n", gdr_version(), gdr_last_error());
  return 0;
}
