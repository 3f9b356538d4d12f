#!/usr/bin/env bash
# Installs what gdrjit is built and tested with, on Debian 12 or Ubuntu 24.04: tools/setup.sh [--demo | --full]
# --demo adds numpy, with which tools/oracle.py makes inputs.
# --full adds what only CI's whole matrix needs: clang, clang-format 14, the cross compiler for 64-bit Arm, qemu, and NVRTC
# (a wheel of PyPI, below ~/.local) where no CUDA toolkit has it: without one the tests that compile for GPUs skip.
# Does nothing if all is there already.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config git                                                         # to build
  libfmt-dev nlohmann-json3-dev libxxhash-dev libcli11-dev libeigen3-dev                       # the library
  doctest-dev librapidcheck-dev libboost-context-dev                                                              # its tests
)
if [[ ${1:-} == --demo || ${1:-} == --full ]]; then packages+=(python3-numpy); fi
if [[ ${1:-} == --full ]]; then
  packages+=(clang libclang-rt-dev clang-format-14 g++-aarch64-linux-gnu qemu-user ccache)
fi

has_nvrtc() {
  [[ -n $(ldconfig -p | grep libnvrtc.so) ]] || compgen -G '/usr/local/cuda/lib*/libnvrtc.so*' > /dev/null ||
    compgen -G "$HOME/.local/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so*" > /dev/null
}
if [[ ${1:-} == --full ]] && ! has_nvrtc; then packages+=(python3-pip); fi

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) == installed ]] || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  echo "setup: installing ${missing[*]}"
  as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

if [[ ${1:-} == --full ]] && ! has_nvrtc; then
  echo "setup: installing NVRTC"
  /usr/bin/python3 -m pip install --quiet --user --break-system-packages 'nvidia-cuda-nvrtc==13.0.*' ||
    echo "setup: no NVRTC; the tests that compile for GPUs will skip"
fi
