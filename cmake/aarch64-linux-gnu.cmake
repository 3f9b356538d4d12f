# The distribution's cross compiler for 64-bit Arm (DGX Spark, Grace); what it builds runs here under qemu's user mode.
# All libraries that gdrjit uses are headers, so the host's /usr/include serves.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
