// One source, compiled for several vector widths; the machine's best is chosen when the program starts. Left out under
// sanitizers, whose run time is not ready when the choice is made, and for compilers that spell it differently.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define NETMEND_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define NETMEND_VECTOR_CLONES
#endif
/// For the body that such a function shares with its twin of another type.
#define NETMEND_INLINE inline __attribute__((always_inline))
#define NETMEND_INLINE_LAMBDA __attribute__((always_inline))
