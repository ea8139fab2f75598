//go:build !purego

#include "textflag.h"

// func scatter32(dst *float32, stride int, values *float32, slots int, inverse *int32, rows int) (done int)
//
// Writes the value of each row's slot to dst, whose rows are stride apart, four rows at a time. It stops before four of
// which one has a slot that is not there, and before the last rows%4.
TEXT ·scatter32(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), DX
	MOVQ values+16(FP), SI
	MOVQ slots+24(FP), R12
	MOVQ inverse+32(FP), BX
	MOVQ rows+40(FP), CX
	XORQ AX, AX
	ANDQ $-4, CX
	JEQ done
	SHLQ $2, DX
	LEAQ (DX)(DX*2), R13

loop:
	MOVL (BX)(AX*4), R8
	MOVL 4(BX)(AX*4), R9
	MOVL 8(BX)(AX*4), R10
	MOVL 12(BX)(AX*4), R11
	CMPQ R8, R12
	JAE done
	CMPQ R9, R12
	JAE done
	CMPQ R10, R12
	JAE done
	CMPQ R11, R12
	JAE done
	MOVL (SI)(R8*4), R8
	MOVL (SI)(R9*4), R9
	MOVL (SI)(R10*4), R10
	MOVL (SI)(R11*4), R11
	MOVL R8, (DI)
	MOVL R9, (DI)(DX*1)
	MOVL R10, (DI)(DX*2)
	MOVL R11, (DI)(R13*1)
	LEAQ (DI)(DX*4), DI
	ADDQ $4, AX
	CMPQ AX, CX
	JB loop

done:
	MOVQ AX, done+48(FP)
	RET
