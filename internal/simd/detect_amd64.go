//go:build !purego

package simd

import (
	"os"

	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/cpu"
)

// What the processor and the system have: AVX2 stands for AVX2 and BMI2, AVX512 for AVX2 and F, BW, DQ, VL, which every
// server processor with AVX-512 since 2017 has.
var AVX2, AVX512 = level(os.Getenv(Env),
	cpu.X86.HasAVX2 && cpu.X86.HasBMI2,
	cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL)

// FastCache is the bytes of the largest cache that a core writes to faster than to memory; 0: unknown. That is the last
// one of AMD's processors, where eight cores or so have one of 16 MiB or more. Intel's server processors have one for
// all cores, hundreds of MiB perhaps, behind a mesh, and other machines on the host have their share of it; there it is
// the core's own.
var FastCache = fastCache()

func fastCache() int {
	c := cpuid.CPU
	if c.VendorID == cpuid.Intel {
		return max(c.Cache.L2, 0)
	}
	return max(c.Cache.L3, c.Cache.L2, 0)
}
