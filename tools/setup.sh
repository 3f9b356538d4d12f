#!/usr/bin/env bash
# Installs what gdrjit is built and tested with, on Debian 12 or Ubuntu 24.04: tools/setup.sh [--demo | --full]
# --demo adds numpy, with which tools/oracle.py makes inputs.
# --full adds what only CI's whole matrix needs: clang, clang-format 14, the cross compiler for 64-bit Arm, qemu.
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

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

echo "setup: installing ${missing[*]}"
as_root=()
if ((EUID != 0)); then as_root=(sudo); fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
