/* The C interface of gdrjit: what gdr.hpp offers, with plain structs and status codes. C99.
 *
 * Shapes, dtypes and rules of the arguments are those of gdr.hpp (FwdArgs, BwdArgs). Every function may be called from
 * several threads at once. No exception crosses this interface, nothing is printed, nothing aborts.
 *
 * Structs that may grow begin with struct_size, which the caller sets to sizeof the struct it was compiled with (the
 * _INIT macros do); all members not set are zero and mean "default" or "not given".
 */
#ifndef GDR_GDR_H
#define GDR_GDR_H

#include <stddef.h>
#include <stdint.h>

#include "gdr/export.hpp" /* GDR_API; plain C */

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns; the same numbers as the exit codes of the program gdrjit. */
enum {
  GDR_OK = 0,
  GDR_INTERNAL = 1,    /* a fault of gdrjit itself, or no memory */
  GDR_CONFIG = 2,      /* wrong argument or configuration */
  GDR_UNSUPPORTED = 3, /* does not fit, or is not supported */
  GDR_COMPILATION = 4, /* a generated kernel did not compile */
  GDR_DEVICE = 5,      /* device or run-time failure */
  GDR_CHECK_FAILED = 6 /* a check found a fault */
};

/* Element types. 0 is none, so that a forgotten one is found. */
enum { GDR_BF16 = 1, GDR_FP16 = 2, GDR_FP32 = 3, GDR_FP64 = 4, GDR_I32 = 5, GDR_I64 = 6 };

enum { GDR_DEVICE_CPU = 0, GDR_DEVICE_CUDA = 1 };
enum { GDR_BACKEND_AUTOMATIC = 0, GDR_BACKEND_CUDA = 1, GDR_BACKEND_CPU = 2 };
enum { GDR_STATE_KV = 0, GDR_STATE_VK = 1 };
enum { GDR_COMPUTE_AUTOMATIC = 0, GDR_COMPUTE_FP32 = GDR_FP32, GDR_COMPUTE_FP64 = GDR_FP64 };

#define GDR_MAX_RANK 4

/* A tensor in the caller's memory. Inputs are not written to. */
typedef struct gdr_tensor {
  void* data;
  int32_t dtype; /* GDR_BF16 ... */
  int32_t rank;  /* 1 to GDR_MAX_RANK */
  int64_t shape[GDR_MAX_RANK];
  int32_t has_strides;           /* 0: contiguous, last dimension fastest; strides is not looked at */
  int32_t device_kind;           /* GDR_DEVICE_CPU ... */
  int64_t strides[GDR_MAX_RANK]; /* elements */
  int32_t device_index;
  int32_t reserved; /* 0 */
} gdr_tensor;

/* Forward pass. Tensors that may be left out are NULL then. */
typedef struct gdr_fwd_args {
  size_t struct_size;
  const gdr_tensor* q;             /* [B, T, Hk, K] */
  const gdr_tensor* k;             /* [B, T, Hk, K] */
  const gdr_tensor* v;             /* [B, T, Hv, V] */
  const gdr_tensor* g;             /* [B, T, Hv], log decay */
  const gdr_tensor* beta;          /* [B, T, Hv] */
  const gdr_tensor* initial_state; /* [N, Hv, K, V] or [N, Hv, V, K]; may be left out: zero */
  const gdr_tensor* cu_seqlens;    /* [N + 1], i32 or i64; may be left out: N = B */
  const gdr_tensor* o;             /* output, [B, T, Hv, V] */
  const gdr_tensor* final_state;   /* output; may be left out */
  const double* scale;             /* may be left out: K^-0.5 */
} gdr_fwd_args;

/* Backward pass. */
typedef struct gdr_bwd_args {
  size_t struct_size;
  const gdr_tensor* q;
  const gdr_tensor* k;
  const gdr_tensor* v;
  const gdr_tensor* g;
  const gdr_tensor* beta;
  const gdr_tensor* do_;              /* [B, T, Hv, V], gradient of o */
  const gdr_tensor* initial_state;    /* may be left out */
  const gdr_tensor* final_state_grad; /* dht, as initial_state; may be left out: zero */
  const gdr_tensor* cu_seqlens;       /* may be left out */
  const gdr_tensor* dq;               /* outputs, shaped like what they are gradients of */
  const gdr_tensor* dk;
  const gdr_tensor* dv;
  const gdr_tensor* dg;
  const gdr_tensor* dbeta;
  const gdr_tensor* dh0; /* may be left out */
  const double* scale;   /* may be left out */
} gdr_bwd_args;

typedef struct gdr_options {
  size_t struct_size;
  int32_t backend;       /* GDR_BACKEND_AUTOMATIC ... */
  int32_t state_layout;  /* GDR_STATE_KV ... */
  int32_t num_threads;   /* of the cpu backend; 0: GDRJIT_NUM_THREADS, else what the machine has */
  int32_t compute_dtype; /* GDR_COMPUTE_AUTOMATIC ... */
  const char* arch;      /* of the cuda backend; NULL: chosen */
  const char* strategy;  /* of the cuda backend; NULL: chosen */
  /* For tensors in device memory; see Options of gdr.hpp. */
  void* stream;               /* CUstream or cudaStream_t; NULL: the legacy default stream */
  void* workspace;            /* NULL: allocated in the stream's order */
  size_t workspace_bytes;     /* of workspace */
  size_t max_workspace_bytes; /* 0: no limit */
} gdr_options;

/* A class of calls, as ProblemClass of gdr.hpp. */
typedef struct gdr_problem {
  size_t struct_size;
  int64_t k_heads, v_heads, dim_k, dim_v;
  int32_t dtype;             /* of q, k, v, do: GDR_BF16 ... */
  int32_t forward, backward; /* which passes are meant; 0: not */
  int32_t is_packed;         /* cu_seqlens is given */
  int32_t memory;            /* where the tensors lie: GDR_DEVICE_CPU ... */
  int32_t reserved;          /* 0 */
} gdr_problem;

/* What a call did. The strings belong to gdrjit and live until the next gdr_ call of the same thread. */
typedef struct gdr_result {
  size_t struct_size;
  int32_t backend; /* GDR_BACKEND_CUDA or GDR_BACKEND_CPU */
  int32_t num_kernels;
  const char* device;
  const char* const* kernels; /* num_kernels names, in the order of their launches */
} gdr_result;

#define GDR_FWD_ARGS_INIT \
  { sizeof(gdr_fwd_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
#define GDR_BWD_ARGS_INIT \
  { sizeof(gdr_bwd_args), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
#define GDR_OPTIONS_INIT \
  { sizeof(gdr_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* One head of each kind, K = V = 128, bf16, forward and backward, in host memory. */
#define GDR_PROBLEM_INIT \
  { sizeof(gdr_problem), 1, 1, 128, 128, GDR_BF16, 1, 1, 0, 0, 0 }
#define GDR_RESULT_INIT \
  { sizeof(gdr_result), 0, 0, 0, 0 }

/* Runs the forward or backward pass. Tensors in host memory: outputs are complete when it returns GDR_OK, and undefined
 * otherwise. Tensors in device memory: the pass is enqueued on options->stream. options and result may be NULL. Returns
 * one of the codes above. */
GDR_API int gdr_run_fwd(const gdr_fwd_args* args, const gdr_options* options, gdr_result* result);
GDR_API int gdr_run_bwd(const gdr_bwd_args* args, const gdr_options* options, gdr_result* result);

/* GDR_OK if calls of this class would run; else the code they would return, and gdr_last_error says why. */
GDR_API int gdr_why_not(const gdr_problem* problem, const gdr_options* options);

/* Plans, compiles and loads what backward calls of this class need on a cuda device. options and result may be NULL. */
GDR_API int gdr_prepare_bwd(const gdr_problem* problem, int32_t device_index, const gdr_options* options,
                            gdr_result* result);

/* Bytes of workspace of a backward call on device memory. With options->arch no device has to be there. */
GDR_API int gdr_bwd_workspace_bytes(const gdr_problem* problem, int64_t batch, int64_t tokens,
                                    const gdr_options* options, size_t* bytes);

/* Who hears of what does not stop a call (set_notice_handler of gdr.hpp); `user` is handed through. NULL: nobody. */
GDR_API void gdr_set_notice_handler(void (*handler)(const char* text, void* user), void* user);

/* The full text of this thread's last failure ("" before any). It lives until the next failure of the thread. */
GDR_API const char* gdr_last_error(void);

/* The version, such as "0.1.0". */
GDR_API const char* gdr_version(void);

#ifdef __cplusplus
}
#endif

#endif /* GDR_GDR_H */
