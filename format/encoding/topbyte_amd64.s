//go:build !purego

#include "textflag.h"

// func addTopAVX2(dst *int64, top *byte, n, low int)
//
// Adds top[i] << low to dst[i] for the first n values, a multiple of 8.
TEXT ·addTopAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ top+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVQ low+24(FP), X15

loop:
	VPMOVZXBQ (SI), Y0
	VPMOVZXBQ 4(SI), Y1
	VPSLLQ X15, Y0, Y0
	VPSLLQ X15, Y1, Y1
	VPADDQ (DI), Y0, Y0
	VPADDQ 32(DI), Y1, Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	ADDQ $8, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET
