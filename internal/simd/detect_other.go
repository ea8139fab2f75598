//go:build !amd64 || purego

package simd

// There are no kernels for this build.
const AVX2, AVX512 = false, false

// LastCache is unknown.
const LastCache = 0
