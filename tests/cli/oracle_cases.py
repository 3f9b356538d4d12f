#!/usr/bin/env python3
"""`gdrjit run` on cases that tools/oracle.py draws, compared here with the oracle's float64 outputs.

  oracle_cases.py CASE ORACLE -- COMMAND...    one case by its name below; COMMAND starts gdrjit
Exit status 77 means skipped (no numpy on this machine).
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy, which oracle.py needs")
    sys.exit(77)

# Arguments of `oracle.py case`.
CASES = {
    "varlen_pad": ["--lens", "57,2,0,5,64", "--pad", "9"],
    "vk": ["--lens", "70,33", "--layout", "vk", "--hk", "1", "--hv", "2", "--k", "64"],
    "batch": ["--lens", "75", "--batch", "3", "--hk", "2", "--hv", "2", "--v", "64"],
    "gva3": ["--lens", "100", "--hk", "2", "--hv", "6", "--k", "32", "--v", "48"],
    "slow_gates": ["--lens", "300", "--gate-scale", "0.04", "--hk", "1", "--hv", "2"],
    "slow_gates_fp32_aux": ["--lens", "130,31", "--gate-scale", "0.04", "--fp32-aux", "--no-h0", "--scale", "0.3"],
    "extreme_gates": ["--lens", "90", "--gate-range", "extreme", "--no-dht"],
    "parallel_keys": ["--lens", "128", "--key-cosine", "0.9", "--gate-scale", "0.04", "--beta", "1"],
}
LIMITS = {"bf16": 0.005, "fp16": 0.001, "fp32": 1e-5, "fp64": 1e-10}
OUTPUTS = {"fwd": ("o", "final_state"), "bwd": ("dq", "dk", "dv", "dg", "dbeta", "dh0")}


def relative_l2(a, b):
    assert a.shape == b.shape, (a.shape, b.shape)
    assert np.isfinite(a).all()
    return np.linalg.norm((a - b).ravel()) / max(np.linalg.norm(b.ravel()), 1e-30)


def run(command, *arguments):
    return subprocess.run([*command, "run", *arguments], capture_output=True, text=True)


def check_case(command, folder):
    worst = {}
    for direction, outputs in OUTPUTS.items():
        for dtype, limit in LIMITS.items():
            out = os.path.join(folder, f"ours_{direction}_{dtype}")
            done = run(command, direction, "--input", folder, "--output", out, "--check", "--dtype", dtype, "--format", "json")
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
            assert report["backend"] == "cpu" and report["kernels"] and report["milliseconds"] > 0, report
            assert sorted(os.listdir(out)) == sorted(f"{name}.npy" for name in outputs)
            for name in outputs:
                ours = np.load(os.path.join(out, f"{name}.npy")).astype(np.float64)
                error = relative_l2(ours, np.load(os.path.join(folder, f"out_{name}.npy")))
                assert error <= limit, (direction, dtype, name, error)
                assert abs(report["file_errors"][name] - error) <= 1e-3 * error + 1e-15, (name, report, error)
                assert report["errors"][name] <= limit, (name, report)
                worst[dtype] = max(worst.get(dtype, 0.0), error)
                meta = json.load(open(os.path.join(folder, "case.json")))
                if meta["pad_rows"] and name not in ("final_state", "dh0"):
                    assert (ours[:, -meta["pad_rows"]:] == 0).all(), name
    print("worst relative L2: " + ", ".join(f"{dtype} {error:.1e}" for dtype, error in worst.items()))


def main():
    name, oracle, dashes, command = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    assert dashes == "--" and command
    with tempfile.TemporaryDirectory(prefix="gdrjit_oracle_") as folder:
        subprocess.run([sys.executable, oracle, "case", "--out", folder, "--seed", "5", *CASES[name]], check=True)
        check_case(command, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
