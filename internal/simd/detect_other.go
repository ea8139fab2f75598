//go:build !amd64 || purego

package simd

// There are no kernels for this build.
const AVX2, AVX512 = false, false

// FastCache is unknown.
const FastCache = 0
