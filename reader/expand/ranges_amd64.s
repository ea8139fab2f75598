//go:build !purego

#include "textflag.h"

// func rangesAVX512(lengths, ends, offsets *int32, slots int, inverse *int32, rows int, sum int64) (done int,
//	last int64)
//
// Writes offsets[s+1] - offsets[s] to lengths, s being the row's slot, and to ends what those sum up to from sum on,
// cut off to 32 bits, eight rows at a time. It stops before eight of which one has a slot that is not there, and before
// the last rows%8. It returns for how many rows, and the sum. Both offsets of a slot are one load; within eight, sums
// are made in three steps (Hillis and Steele, Data parallel algorithms, 1986).
TEXT ·rangesAVX512(SB), NOSPLIT, $0-72
	MOVQ lengths+0(FP), DI
	MOVQ ends+8(FP), DX
	MOVQ offsets+16(FP), SI
	VPBROADCASTQ slots+24(FP), Z10
	MOVQ inverse+32(FP), BX
	MOVQ rows+40(FP), CX
	VPBROADCASTQ sum+48(FP), Z11
	XORQ AX, AX
	ANDQ $-8, CX
	JEQ done
	VPXORQ Z12, Z12, Z12
	MOVQ $7, R8
	VPBROADCASTQ R8, Z13

loop:
	VPMOVZXDQ (BX)(AX*4), Z0
	VPCMPUQ $5, Z10, Z0, K1       // slot >= slots, without a sign
	KORTESTW K1, K1
	JNE done
	KXNORW K2, K2, K2
	VPGATHERQQ (SI)(Z0*4), K2, Z1
	VPSRLQ $32, Z1, Z2
	VPSUBD Z1, Z2, Z2
	VPSLLQ $32, Z2, Z2
	VPSRAQ $32, Z2, Z2            // the length, with its sign
	VPMOVQD Z2, (DI)(AX*4)
	VALIGNQ $7, Z12, Z2, Z4
	VPADDQ Z4, Z2, Z2
	VALIGNQ $6, Z12, Z2, Z4
	VPADDQ Z4, Z2, Z2
	VALIGNQ $4, Z12, Z2, Z4
	VPADDQ Z4, Z2, Z2
	VPADDQ Z11, Z2, Z2
	VPMOVQD Z2, (DX)(AX*4)
	VPERMQ Z2, Z13, Z11           // the last of them
	ADDQ $8, AX
	CMPQ AX, CX
	JB loop

done:
	VMOVQ X11, R8
	MOVQ AX, done+56(FP)
	MOVQ R8, last+64(FP)
	VZEROUPPER
	RET
