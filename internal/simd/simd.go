// Package simd says which vector instructions the kernels of this module may use: assembly beside a fallback in plain
// Go that gives the same bytes. A kernel asks once, in its dispatching function:
//
//	if simd.AVX2 {
//		n = kernelAVX2(...)  // as far as whole vectors go
//	}
//	plain(rest)
//
// The build tag purego leaves the assembly out. The environment variable DSISTORE_SIMD, read when the process starts,
// holds a build with it back: "off" to plain Go, "avx2" to that; anything else is no limit.
package simd

// Env is the environment variable that limits what is used.
const Env = "DSISTORE_SIMD"

// level returns what Env leaves of what the processor has.
func level(env string, avx2, avx512 bool) (useAVX2, useAVX512 bool) {
	switch env {
	case "off":
		return false, false
	case "avx2":
		return avx2, false
	}
	return avx2, avx2 && avx512
}

// Level names what is used: "off", "avx2" or "avx512".
func Level() string {
	switch {
	case AVX512:
		return "avx512"
	case AVX2:
		return "avx2"
	}
	return "off"
}
