#!/usr/bin/env bash
# Sets up, builds, and does gdrjit's main job on real input: tools/demo.sh
# Plans the backward for sm_120, proves the plan, draws it, runs the backward on two random cases of the specification's
# oracle (a batch; packed sequences with padding and slow gates), and checks every gradient against the token recurrence in
# float64. The batch runs on the GPU where there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh --demo
cmake --preset release -DGDRJIT_TESTS=OFF > /dev/null
cmake --build build/release -j "$(nproc)" --target gdrjit

gdrjit=build/release/gdrjit
out=build/demo
mkdir -p "$out"
"$gdrjit" plan --arch sm_120 | sed -n '1,12p'
"$gdrjit" plan --arch sm_120 --format json -o "$out/plan.json"
"$gdrjit" plan --arch sm_120 --format svg -o "$out/plan.svg"
"$gdrjit" verify "$out/plan.json"
/usr/bin/python3 tools/oracle.py case --out "$out/batch" --batch 2 --lens 500 --hk 2 --hv 4
"$gdrjit" run bwd --input "$out/batch" --output "$out/batch_gradients" --check
/usr/bin/python3 tools/oracle.py case --out "$out/case" --lens 57,2,5,448 --pad 3 --hk 2 --hv 4 --gate-scale 0.04
"$gdrjit" run bwd --input "$out/case" --output "$out/gradients" --check
echo "The whole plan: $gdrjit plan --arch sm_120; its picture: $out/plan.svg; the gradients: $out/gradients"
