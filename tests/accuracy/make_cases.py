#!/usr/bin/env python3
"""The inputs on which the specification states its figures, drawn by tools/oracle.py: make_cases.py ORACLE OUT

Writes OUT/ROW/SEED/ (case.json, q.npy ... out_dh0.npy) for the rows below and seeds 7 to 10.
What is there already is kept if this file and the oracle are what it was made by. Without numpy it leaves
OUT/skipped.txt, which says so, and its exit status is 77.
"""
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# The rows of the tables of docs/spec/ALGORITHM.md, section 7, as arguments of `oracle.py case`.
SLOW = ["--gate-scale", "0.04"]
ROWS = {
    "fixed": ["--lens", "512"],
    "varlen": ["--lens", "57,2,5,448", "--hv", "2"],
    "slow": ["--lens", "512", *SLOW],
    "cosine_0.3": ["--lens", "512", "--key-cosine", "0.3", "--gate-scale", "0.2"],
    "cosine_0.5": ["--lens", "512", "--key-cosine", "0.5", *SLOW],
    "cosine_0.9": ["--lens", "512", "--key-cosine", "0.9", "--beta", "1", *SLOW],
}
SEEDS = range(7, 11)


def main():
    oracle, out = sys.argv[1:]
    digest = hashlib.sha256()
    for path in (oracle, __file__):
        with open(path, "rb") as file:
            digest.update(file.read())
    stamp = os.path.join(out, "made_by.txt")
    if os.path.exists(stamp) and open(stamp).read() == digest.hexdigest():
        print("all there already")
        return 0
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    try:
        import numpy  # noqa: F401, needed by the oracle
    except ImportError:
        reason = "skipped: this Python has no numpy, which oracle.py needs"
        print(reason)
        with open(os.path.join(out, "skipped.txt"), "w") as file:
            file.write(reason)
        return 77

    def make(row, seed):
        folder = os.path.join(out, row, str(seed))
        subprocess.run([sys.executable, oracle, "case", "--out", folder, "--seed", str(seed), "--fp32-aux", *ROWS[row]],
                       check=True, stdout=subprocess.DEVNULL)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(make, row, seed) for row in ROWS for seed in SEEDS]:
            done.result()
    with open(stamp, "w") as file:
        file.write(digest.hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
