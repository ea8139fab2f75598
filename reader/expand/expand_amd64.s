//go:build !purego

#include "textflag.h"

// LISTS begins the four functions below: it goes through the lists of rows, each of values of 1<<SHIFT bytes, and comes
// to what follows it with the place of one that has values. LISTSDONE ends them.
//
//	AX row     BX inverse   CX rows      SI values    DI where the next value goes
//	R8 starts  R9 sizes     R12 slots    R13 minus    R14 values' length   R15 room left in dst
//	R10 the slot, then the length, then what is left of it      R11 the start, then where the next value comes from
//
// A slot is compared without its sign: a negative one is out of bounds too.
#define LISTS(SHIFT) \
	MOVQ dst+0(FP), DI              \
	MOVQ dstLen+8(FP), R15          \
	MOVQ values+16(FP), SI          \
	MOVQ valuesLen+24(FP), R14      \
	MOVQ starts+32(FP), R8          \
	MOVQ sizes+40(FP), R9           \
	MOVQ minus+48(FP), R13          \
	MOVQ slots+56(FP), R12          \
	MOVQ inverse+64(FP), BX         \
	MOVQ rows+72(FP), CX            \
	XORQ AX, AX                     \
	JMP  check                      \
list:                               \
	MOVL (BX)(AX*4), R10            \
	CMPQ R10, R12                   \
	JAE  done                       \
	MOVLQSX (R8)(R10*4), R11        \
	MOVLQSX (R9)(R10*4), R10        \
	MOVQ R11, DX                    \
	ANDQ R13, DX                    \
	SUBQ DX, R10                    \
	JEQ  next                       \
	JLT  done                       \
	CMPQ R10, R15                   \
	JGT  done                       \
	TESTQ R11, R11                  \
	JLT  done                       \
	LEAQ (R11)(R10*1), DX           \
	CMPQ DX, R14                    \
	JGT  done                       \
	SUBQ R10, R15                   \
	SHLQ $SHIFT, R11                \
	ADDQ SI, R11

#define LISTSDONE \
next:                               \
	INCQ AX                         \
check:                              \
	CMPQ AX, CX                     \
	JLT  list                       \
done:                               \
	VZEROUPPER                      \
	MOVQ AX, row+80(FP)             \
	MOVQ dstLen+8(FP), DX           \
	SUBQ R15, DX                    \
	MOVQ DX, n+88(FP)               \
	RET

// MASKED copies a list in vectors of LANES values, the last of them masked.
#define MASKED(SHIFT, LANES, MOVE, MASK) \
	SUBQ $LANES, R10                \
	JLT  tail                       \
whole:                              \
	VMOVDQU64 (R11), Z0             \
	VMOVDQU64 Z0, (DI)              \
	ADDQ $64, R11                   \
	ADDQ $64, DI                    \
	SUBQ $LANES, R10                \
	JGE  whole                      \
tail:                               \
	ADDQ $LANES, R10                \
	JEQ  next                       \
	MOVL $-1, DX                    \
	BZHIL R10, DX, DX               \
	MASK DX, K1                     \
	MOVE.Z (R11), K1, Z0            \
	MOVE Z0, K1, (DI)               \
	SHLQ $SHIFT, R10                \
	ADDQ R10, DI

// OVERLAPPED copies a list in vectors of LANES values. The last of them ends where the list ends, and so has values
// again that are there already. Of a list shorter than a vector nothing is copied: what follows does.
#define OVERLAPPED(SHIFT, LANES) \
	SUBQ $LANES, R10                \
	JLT  less                       \
whole:                              \
	VMOVDQU (R11), Y0               \
	VMOVDQU Y0, (DI)                \
	ADDQ $32, R11                   \
	ADDQ $32, DI                    \
	SUBQ $LANES, R10                \
	JGE  whole                      \
	SHLQ $SHIFT, R10                \
	VMOVDQU (R11)(R10*1), Y0        \
	VMOVDQU Y0, (DI)(R10*1)         \
	LEAQ 32(DI)(R10*1), DI          \
	JMP  next                       \
less:                               \
	ADDQ $LANES, R10

// STEP copies BYTES if the bit of the length says so, through a register.
#define STEP(BIT, BYTES, MOVE, REG, SKIP) \
	TESTQ $BIT, R10                 \
	JEQ  SKIP                       \
	MOVE (R11), REG                 \
	MOVE REG, (DI)                  \
	ADDQ $BYTES, R11                \
	ADDQ $BYTES, DI                 \
SKIP:

// func copyLists64AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus int,
//	slots int, inverse *int32, rows int) (row, n int)
//
// Copies the list of each row, one after the other: sizes[s] - starts[s]&minus values of 8 bytes from starts[s] on, s
// being the row's slot. The last vector of a list is masked, so that nothing beside a list is read or written. It stops
// before a row whose slot or list is out of bounds. It returns how many rows and values are copied.
TEXT ·copyLists64AVX512(SB), NOSPLIT, $0-96
	LISTS(3)
	MASKED(3, 8, VMOVDQU64, KMOVB)
	LISTSDONE

// func copyLists32AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus int,
//	slots int, inverse *int32, rows int) (row, n int)
//
// The same for values of 4 bytes.
TEXT ·copyLists32AVX512(SB), NOSPLIT, $0-96
	LISTS(2)
	MASKED(2, 16, VMOVDQU32, KMOVW)
	LISTSDONE

// func copyLists64AVX2(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus int,
//	slots int, inverse *int32, rows int) (row, n int)
//
// Does what copyLists64AVX512 does.
TEXT ·copyLists64AVX2(SB), NOSPLIT, $0-96
	LISTS(3)
	OVERLAPPED(3, 4)
	STEP(2, 16, VMOVDQU, X0, one)
	STEP(1, 8, MOVQ, DX, last)
	LISTSDONE

// func copyLists32AVX2(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus int,
//	slots int, inverse *int32, rows int) (row, n int)
//
// Does what copyLists32AVX512 does.
TEXT ·copyLists32AVX2(SB), NOSPLIT, $0-96
	LISTS(2)
	OVERLAPPED(2, 8)
	STEP(4, 16, VMOVDQU, X0, two)
	STEP(2, 8, MOVQ, DX, one)
	STEP(1, 4, MOVL, DX, last)
	LISTSDONE

// func presenceAVX2(dst *byte, n int, present *uint64, last uint32, inverse *int32)
//
// Sets bit i of dst to bit inverse[i] of present, for n rows, a multiple of 8 and not 0. Slots beyond the last are
// taken for it.
TEXT ·presenceAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ present+16(FP), SI
	MOVL last+24(FP), AX
	VMOVD AX, X10
	VPBROADCASTD X10, Y10
	MOVQ inverse+32(FP), BX
	MOVL $31, AX
	VMOVD AX, X11
	VPBROADCASTD X11, Y11

loop:
	VPMINUD (BX), Y10, Y0
	VPSRLD $5, Y0, Y1
	VPCMPEQD Y3, Y3, Y3
	VPGATHERDD Y3, (SI)(Y1*4), Y2
	VPANDN Y11, Y0, Y4          // 31 - slot%32
	VPSLLVD Y4, Y2, Y2          // the slot's bit is the sign
	VMOVMSKPS Y2, AX
	MOVB AX, (DI)
	ADDQ $32, BX
	INCQ DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET
