//go:build !purego

#include "textflag.h"

// func unpackBlocksAVX2(dst *int64, src *byte, blocks, width int, base int64)
//
// A row of a block is one value of each lane, so four neighbours of dst: the words that they begin in are one vector,
// those that they end in another, which may be the same:
//
//	R8 = row*width            its word begins at byte (R8 >> 6) * 32
//	R9 = row*width + width-1  and the last one at      (R9 >> 6) * 32
//	value = (first >> R8%64 | last << (64 - R8%64)) & mask
//
// Where a value lies in one word the bits that the second shift adds are above it. No word outside the block is read.
TEXT ·unpackBlocksAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ width+24(FP), BX
	VPBROADCASTQ base+32(FP), Y15
	MOVQ $64, AX
	VMOVQ AX, X12
	VPBROADCASTQ X12, Y12       // 64
	SUBQ BX, AX
	MOVQ $-1, DX
	SHRXQ AX, DX, DX
	VMOVQ DX, X14
	VPBROADCASTQ X14, Y14       // the low width bits
	MOVQ $63, AX
	VMOVQ AX, X13
	VPBROADCASTQ X13, Y13       // 63
	VMOVQ BX, X11
	VPBROADCASTQ X11, Y11       // width
	MOVQ BX, R13
	SHLQ $5, R13                // bytes of a block

block:
	XORQ R8, R8
	LEAQ -1(BX), R9
	VPXOR Y4, Y4, Y4            // R8 % 64
	MOVQ $32, R12

row:
	MOVQ R8, R10
	ANDQ $-64, R10
	SHRQ $1, R10
	MOVQ R9, R11
	ANDQ $-64, R11
	SHRQ $1, R11
	ADDQ BX, R8
	ADDQ BX, R9
	VMOVDQU (SI)(R10*1), Y0
	VMOVDQU (SI)(R11*1), Y1
	VPSUBQ Y4, Y12, Y5
	VPSRLVQ Y4, Y0, Y0
	VPSLLVQ Y5, Y1, Y1
	VPADDQ Y11, Y4, Y4
	VPAND Y13, Y4, Y4
	VPOR Y1, Y0, Y0
	VPAND Y14, Y0, Y0
	VPADDQ Y15, Y0, Y0
	VMOVDQU Y0, (DI)

	MOVQ R8, R10
	ANDQ $-64, R10
	SHRQ $1, R10
	MOVQ R9, R11
	ANDQ $-64, R11
	SHRQ $1, R11
	ADDQ BX, R8
	ADDQ BX, R9
	VMOVDQU (SI)(R10*1), Y2
	VMOVDQU (SI)(R11*1), Y3
	VPSUBQ Y4, Y12, Y5
	VPSRLVQ Y4, Y2, Y2
	VPSLLVQ Y5, Y3, Y3
	VPADDQ Y11, Y4, Y4
	VPAND Y13, Y4, Y4
	VPOR Y3, Y2, Y2
	VPAND Y14, Y2, Y2
	VPADDQ Y15, Y2, Y2
	VMOVDQU Y2, 32(DI)

	ADDQ $64, DI
	DECQ R12
	JNZ row

	ADDQ R13, SI
	DECQ CX
	JNZ block
	VZEROUPPER
	RET
