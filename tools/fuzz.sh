#!/usr/bin/env bash
# Fuzzes the readers of config and plan files: tools/fuzz.sh [SECONDS for each target, default 30] [BUILD FOLDER].
# Seeds are the shipped configurations and plans made from them. A crash stops with the input's path in the output.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
build=${2:-build/fuzz}

cmake --preset fuzz -B "$build" > /dev/null
cmake --build "$build" --target fuzz_config fuzz_plan seed_plan gdrjit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/config" "$work/plan"
for file in configs/*/*.json; do
  cp "$file" "$work/config/$(dirname "${file#configs/}")_$(basename "$file")"
done
"$build/tests/fuzz/seed_plan" > "$work/plan/sample.json"
"$build/gdrjit" plan --arch sm_120 --format json -o "$work/plan/sm_120.json"

for target in config plan; do
  echo "fuzz_$target: $seconds s"
  # Every key of the seeds is a word for the dictionary, so that mutations reach past the reader's first check.
  grep -ohE '"[a-z_0-9]+"' "$work/$target"/* | sort -u | sed 's/"/\\"/g; s/.*/"&"/' > "$work/$target.dict"
  "$build/tests/fuzz/fuzz_$target" "$work/$target" -dict="$work/$target.dict" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$PWD/$build/" 2>&1 |
    tee "$build/fuzz_$target.log" | grep -E 'Done|executed|ERROR|SUMMARY|Test unit|fuzz:' ||
    { tail -50 "$build/fuzz_$target.log"; exit 1; }
done
