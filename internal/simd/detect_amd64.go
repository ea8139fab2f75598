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

// LastCache is the bytes of the cache that is nearest to memory, which cores share; 0: unknown.
var LastCache = max(cpuid.CPU.Cache.L3, cpuid.CPU.Cache.L2, 0)
