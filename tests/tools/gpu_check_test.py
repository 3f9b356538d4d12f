#!/usr/bin/env python3
"""tools/gpu_check from end to end on a machine without a GPU: gdrjit on the fake driver, whose kernels do nothing, and
stand-ins for the profiler, the sanitizer and nvidia-smi.

  gpu_check_test.py GPU_CHECK GDRJIT_FOLDER LIBCUDA LIBNVRTC
Exit status 77 means skipped (no numpy on this machine).
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401, needed by the oracle
except ImportError:
    print("skipped: this Python has no numpy, which oracle.py needs")
    sys.exit(77)

ARCH = "sm_120"
NCU = """#!/bin/sh
# ncu's raw page of one launch of each kernel: names, units, values.
log=; while [ "$1" != "{gdrjit}" ]; do [ "$1" = --log-file ] && log=$2; shift; done
"$@" || exit
{{ echo '==PROF== Connected to process 1'
  echo '"ID","Kernel Name","dram__bytes.sum","launch__registers_per_thread","launch__shared_mem_per_block_dynamic"'
  echo '"","","byte","register/thread","byte/block"'
  for kernel in {kernels}; do echo "\\"0\\",\\"$kernel(Args)\\",\\"1,000\\",\\"100\\",\\"90,000\\""; done; }} > "$log"
"""
SANITIZER = """#!/bin/sh
tool=$2; while [ "$1" != "{gdrjit}" ]; do shift; done
"$@" || exit
[ "$tool" = racecheck ] && echo '========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)' && exit 99
echo '========= ERROR SUMMARY: 0 errors'
"""


def main():
    gpu_check, folder, libcuda, libnvrtc = sys.argv[1:]
    gdrjit = os.path.join(folder, "gdrjit")
    with tempfile.TemporaryDirectory(prefix="gdrjit_gpu_check_test_") as work:
        plan = json.loads(subprocess.run([gdrjit, "plan", "--arch", ARCH, "--format", "json"], check=True,
                                         capture_output=True).stdout)
        names = [kernel["name"] for kernel in plan["kernels"]]
        smi = "#!/bin/sh\necho 'NVIDIA Fake 9, 1.2.3, 1980 MHz, 3201 MHz'\n"
        for name, text in (("ncu", NCU), ("compute-sanitizer", SANITIZER), ("nvidia-smi", smi)):
            path = os.path.join(work, name)
            with open(path, "w") as file:
                file.write(text.format(gdrjit=gdrjit, kernels=" ".join(names)))
            os.chmod(path, 0o755)
        out = os.path.join(work, "out.json")
        environment = dict(os.environ, GDRJIT_LIBCUDA=libcuda, GDRJIT_LIBNVRTC=libnvrtc, FAKE_CUDA_DEVICES="9.0",
                           PATH=work + os.pathsep + os.environ["PATH"])
        done = subprocess.run([sys.executable, gpu_check, "--binary", folder, "--archs", ARCH, "--tokens", "64", "--repeats",
                               "3", "--commit", "abc", "--out", out], env=environment, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        with open(out) as file:
            report = json.load(file)

    assert report["commit"] == "abc" and report["gpu"] == "NVIDIA Fake 9" and report["driver"] == "1.2.3", report
    results = report["results"]
    assert report["failed"] == sum(result["ok"] is False for result in results)
    by_step = {step: [result for result in results if result["step"] == step]
               for step in ("cases", "bits", "sanitizers", "bench", "compare", "ncu")}
    # Kernels that do nothing are found out by each step that looks at their outputs, with the reason.
    assert len(by_step["cases"]) == 18 and len(by_step["bits"]) == 2
    for result in by_step["cases"] + by_step["bits"]:
        assert result["ok"] is False and result["exit_status"] == 6 and result["reason"], result
    assert [(result["ok"], "SUMMARY" in result["summary"]) for result in by_step["sanitizers"]] == \
        2 * [(True, True), (False, True), (True, True)], by_step["sanitizers"]
    for result in by_step["bench"]:
        assert result["ok"] and len(result["report"]["kernels"]) == 4 and result["report"]["median_ms"] == 4, result
    # The fake driver speaks of 16 bytes of local memory.
    assert len(by_step["compare"]) == 8
    for result in by_step["compare"]:
        assert result["ok"] is False and "spilled" in result["reason"], result
    counted = {result["what"]: result for result in by_step["ncu"]}
    fused = counted[f"{ARCH} fused bwd_fused"]  # 90,000 bytes are within a tenth of what its plan has
    assert fused["ok"] and fused["ncu"] == {"registers": 100, "smem_bytes": 90000, "hbm_bytes": 1000}, fused
    assert "L2" in fused["reason"]
    assert counted[f"{ARCH} fused prepare"]["ok"] is False and "smem_bytes" in counted[f"{ARCH} fused prepare"]["reason"]
    assert counted[f"{ARCH} chunk_parallel gradients"]["ok"] is None
    return 0


if __name__ == "__main__":
    sys.exit(main())
