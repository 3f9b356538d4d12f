#!/usr/bin/env bash
# Fuzzes the readers of config and plan files: tools/fuzz.sh [SECONDS for each target, default 30] [GDRJIT].
# Seeds are the shipped configurations, a small plan, and a plan made by the program GDRJIT (default: the one of
# build/fuzz). A crash ends it with the path of the input in the output.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
build=build/fuzz
gdrjit=${2:-$build/gdrjit}

launcher=()
if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset fuzz "${launcher[@]}" > /dev/null
targets=(fuzz_config fuzz_plan seed_plan)
if (($# < 2)); then targets+=(gdrjit); fi
cmake --build "$build" --target "${targets[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/config" "$work/plan"
for file in configs/*/*.json; do
  cp "$file" "$work/config/$(dirname "${file#configs/}")_$(basename "$file")"
done
"$build/tests/fuzz/seed_plan" > "$work/plan/sample.json"
"$gdrjit" plan --arch sm_120 --format json -o "$work/plan/sm_120.json"

for target in config plan; do
  echo "fuzz_$target: $seconds s"
  # Every key of the seeds is a word for the dictionary, so that mutations reach past the reader's first check.
  grep -ohE '"[a-z_0-9]+"' "$work/$target"/* | sort -u | sed 's/"/\\"/g; s/.*/"&"/' > "$work/$target.dict"
  if ! "$build/tests/fuzz/fuzz_$target" "$work/$target" -dict="$work/$target.dict" -max_total_time="$seconds" \
    -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/" > "$build/fuzz_$target.log" 2>&1
  then
    tail -50 "$build/fuzz_$target.log"
    exit 1
  fi
  grep -E 'Done|peak_rss' "$build/fuzz_$target.log"
done
