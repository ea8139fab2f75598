//go:build !purego

#include "textflag.h"

// func twoAVX512(dst, codes *int64, n int, first *int64, firstLen int, second *int64, secondLen int) (done int)
//
// Writes first[c], or second[c-firstLen] where c is past first, for each code c, eight at a time. It stops before eight
// of which one is past both, and before the last n%8. No element outside the two is read: the others are masked.
TEXT ·twoAVX512(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ first+24(FP), R8
	VPBROADCASTQ firstLen+32(FP), Z10
	MOVQ second+40(FP), R9
	VPBROADCASTQ secondLen+48(FP), Z11
	XORQ AX, AX
	ANDQ $-8, CX
	JZ done

loop:
	VMOVDQU64 (SI)(AX*8), Z0
	VPCMPUQ $1, Z10, Z0, K1     // below firstLen
	KORTESTB K1, K1
	JCC mixed                   // not all
	VPGATHERQQ (R8)(Z0*8), K1, Z1
	VMOVDQU64 Z1, (DI)(AX*8)
	ADDQ $8, AX
	CMPQ AX, CX
	JB loop
	JMP done

mixed:
	VPSUBQ Z10, Z0, Z2
	KNOTB K1, K2
	VPCMPUQ $1, Z11, Z2, K2, K3 // of the others, below that
	KXORB K2, K3, K4
	KORTESTB K4, K4
	JNZ done                    // some are past both
	VPXORQ Z1, Z1, Z1
	VPGATHERQQ (R8)(Z0*8), K1, Z1
	VPGATHERQQ (R9)(Z2*8), K3, Z1
	VMOVDQU64 Z1, (DI)(AX*8)
	ADDQ $8, AX
	CMPQ AX, CX
	JB loop

done:
	VZEROUPPER
	MOVQ AX, done+56(FP)
	RET
