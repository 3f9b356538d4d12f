/* Compiled as C99 by a test: the C header is C, and its macros initialise what they say. */
#include "gdr/gdr.h"

int main(void) {
  gdr_tensor tensor = {0};
  gdr_bwd_args bwd = GDR_BWD_ARGS_INIT;
  gdr_fwd_args fwd = GDR_FWD_ARGS_INIT;
  gdr_options options = GDR_OPTIONS_INIT;
  gdr_result result = GDR_RESULT_INIT;
  tensor.dtype = GDR_BF16;
  bwd.q = &tensor;
  fwd.q = &tensor;
  options.state_layout = GDR_STATE_VK;
  return gdr_run_bwd(&bwd, &options, &result) == GDR_CONFIG && gdr_run_fwd(&fwd, 0, 0) == GDR_CONFIG ? 0 : 1;
}
