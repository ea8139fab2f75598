//go:build !purego

#include "textflag.h"

// func fillRunsAVX2(inverse *int32, rows int, runs, slots *int32, n int) (done, row int)
//
// Writes the slot of each run over its rows, in whole vectors of 8 rows: what goes beyond a run the next one
// overwrites. It stops before a run of no rows or fewer, and before one that does not end 16 rows before the end. It
// returns how many runs and rows are done. Without slots a run's slot is its number.
TEXT ·fillRunsAVX2(SB), NOSPLIT, $0-56
	MOVQ inverse+0(FP), DI
	MOVQ rows+8(FP), BX
	MOVQ runs+16(FP), SI
	MOVQ slots+24(FP), R11
	MOVQ n+32(FP), CX
	XORQ AX, AX                 // run
	XORQ DX, DX                 // row
	SUBQ $16, BX
	VPXOR Y0, Y0, Y0            // the slot of the run
	VPCMPEQD Y1, Y1, Y1         // -1

run:
	CMPQ AX, CX
	JGE done
	MOVLQSX (SI)(AX*4), R8
	TESTQ R8, R8
	JLE done
	LEAQ (DX)(R8*1), R9
	CMPQ R9, BX
	JGT done
	TESTQ R11, R11
	JEQ fill
	VPBROADCASTD (R11)(AX*4), Y0

fill:
	LEAQ (DI)(DX*4), R10
	VMOVDQU Y0, (R10)
	VMOVDQU Y0, 32(R10)
	SUBQ $16, R8
	JLE next

long:
	ADDQ $64, R10
	VMOVDQU Y0, (R10)
	VMOVDQU Y0, 32(R10)
	SUBQ $16, R8
	JG long

next:
	MOVQ R9, DX
	INCQ AX
	VPSUBD Y1, Y0, Y0
	JMP run

done:
	VZEROUPPER
	MOVQ AX, done+40(FP)
	MOVQ DX, row+48(FP)
	RET

// func fillChangesAVX2(inverse *int32, changes *byte, n int, counts *uint64) (run int32)
//
// Writes how many of the bits up to and with each row are set, for the first n rows, a multiple of 8. counts[b] has,
// for each bit of b from the lowest on, a byte of how many are set up to it. It returns what the last row has.
TEXT ·fillChangesAVX2(SB), NOSPLIT, $0-36
	MOVQ inverse+0(FP), DI
	MOVQ changes+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ counts+24(FP), BX
	SHRQ $3, CX
	VPXOR Y1, Y1, Y1            // the run before
	MOVL $7, AX
	VMOVD AX, X2
	VPBROADCASTD X2, Y2

loop:
	MOVBLZX (SI), AX
	VPMOVZXBD (BX)(AX*8), Y0
	VPADDD Y1, Y0, Y0
	VMOVDQU Y0, (DI)
	VPERMD Y0, Y2, Y1           // its last row, eight times
	INCQ SI
	ADDQ $32, DI
	DECQ CX
	JNZ loop
	VMOVD X1, AX
	VZEROUPPER
	MOVL AX, run+32(FP)
	RET
