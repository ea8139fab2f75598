//go:build !purego

#include "textflag.h"

// func packBlocksAVX2(dst *byte, vals *int64, blocks, width int, base int64)
//
// A row of a block is four neighbours of vals, one of each lane: a vector, which goes to the same bits of the words of
// the four lanes, another vector.
//
//	R8  bits that are filled of the words in Y2; a row fills those from X4 = R8 on
//	R9  bits of a row that the words have room for, where the row fills them: the rest begins the next words
//
// Shifts by 64 give 0. After the last row of a block no bits are left.
TEXT ·packBlocksAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ vals+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ width+24(FP), BX
	VPBROADCASTQ base+32(FP), Y15
	MOVQ $64, AX
	SUBQ BX, AX
	MOVQ $-1, DX
	SHRXQ AX, DX, DX
	VMOVQ DX, X14
	VPBROADCASTQ X14, Y14       // the low width bits
	SHLQ $6, CX                 // rows
	XORQ R8, R8
	VPXOR Y4, Y4, Y4
	VPXOR Y2, Y2, Y2

row:
	VMOVDQU (SI), Y0
	VPSUBQ Y15, Y0, Y0
	VPAND Y14, Y0, Y0
	VPSLLQ X4, Y0, Y1
	VPOR Y1, Y2, Y2
	ADDQ $32, SI
	MOVQ $64, R9
	SUBQ R8, R9
	ADDQ BX, R8
	CMPQ R8, $64
	JLT next
	VMOVDQU Y2, (DI)
	ADDQ $32, DI
	SUBQ $64, R8
	VMOVQ R9, X5
	VPSRLQ X5, Y0, Y2

next:
	VMOVQ R8, X4
	DECQ CX
	JNZ row
	VZEROUPPER
	RET
