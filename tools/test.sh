#!/usr/bin/env bash
# Sets up, builds and tests gdrjit: tools/test.sh [--full]
# --full is CI's matrix: formatting, g++ and all tests, clang++ with sanitizers, threads, 64-bit Arm under qemu, fuzzing.
set -euo pipefail
cd "$(dirname "$0")/.."
full=${1:-}
if [[ -n $full && $full != --full ]]; then
  echo "usage: tools/test.sh [--full]" >&2
  exit 2
fi

jobs=$(nproc)
launcher=()
started=$SECONDS
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

step() { echo "=== $* ($((SECONDS - started)) s)"; }

# build PRESET [cmake arguments...] [-- targets...]
build() {
  local preset=$1 arguments=() targets=()
  shift
  while (($#)) && [[ $1 != -- ]]; do arguments+=("$1"); shift; done
  if (($#)); then shift; targets=(--target "$@"); fi
  cmake --preset "$preset" "${launcher[@]}" "${arguments[@]}" > /dev/null
  cmake --build "build/$preset" -j "$jobs" "${targets[@]}"
}

# run PRESET [ctest arguments...]: every test of the preset, or those that the arguments choose
run() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error "$@" | tee "build/$preset/tests.log"
  grep 'tests passed' "build/$preset/tests.log" >> "$counts"
}

step "set-up"
tools/setup.sh $full
if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

if [[ $full ]]; then
  step "formatting and lines by folder"
  git ls-files '*.hpp' '*.cpp' '*.h' '*.inl' | xargs clang-format-14 --dry-run --Werror
  for folder in src/* tests tools cmake configs templates; do
    [[ -d $folder ]] || continue
    printf '%7d %s\n' "$(git ls-files -z "$folder" | xargs -0 -r cat | wc -l)" "$folder"
  done
fi

step "g++: all tests"
build ci
run ci

if [[ $full ]]; then
  step "clang++ with address and undefined-behaviour sanitizers: all tests"
  build asan -DCMAKE_CXX_COMPILER=clang++
  run asan

  step "g++ with the thread sanitizer: what uses threads"
  build tsan -- test_core test_cache test_cpu test_api test_gpu
  run tsan -R '^((core|cache|cpu|api)\.|gpu\.(threads|several))' -E '^cpu\.speed$'

  step "64-bit Arm under qemu: core, configs, CPU backend, library"
  build aarch64 -- gdrjit_static gdrjit_shared gdrjit test_core test_config test_cpu test_api
  run aarch64 -R '^(core|config|cpu|api|consumer)\.' -E '^cpu\.speed$'

  step "fuzzing"
  tools/fuzz.sh 30 build/ci/gdrjit
fi

step "done"
awk '{ for (i = 1; i <= NF; ++i) if ($i == "of") { total += $(i + 1); ++runs } }
     END { printf "%d tests ran in %d runs of ctest, all passed\n", total, runs }' "$counts"
