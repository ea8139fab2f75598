//go:build !purego

#include "textflag.h"

// STREAMLISTS is the body of the two functions below: the lists of COPYLISTS (expand_amd64.s), in whole lines of 64
// bytes that go past the caches. What a list leaves of a line waits in Z1 for the next one:
//
//	line    | Z1: 0 .. CX-1 | the list's first values |   masked load from CX values before the list
//	line    | the list's next values                  |
//	line    | its last ones | the next list ...
//
//	AX row     BX inverse   CX values in Z1   SI values    DI the line
//	R8 starts  R9 sizes     R12 slots    R13 minus    R14 values' length   R15 room left in dst
//	R10 the slot, then the length, then the values from the line's begin to the list's end
//	R11 what goes to the line's begin
//	K2 lanes of the first line that are dst's
#define STREAMLISTS(SHIFT, LANES, MOVE, MASK) \
	MOVQ dst+0(FP), DI              \
	MOVQ dstLen+8(FP), R15          \
	MOVQ values+16(FP), SI          \
	MOVQ valuesLen+24(FP), R14      \
	MOVQ starts+32(FP), R8          \
	MOVQ sizes+40(FP), R9           \
	MOVQ minus+48(FP), R13          \
	MOVQ slots+56(FP), R12          \
	MOVQ inverse+64(FP), BX         \
	XORQ AX, AX                     \
	MOVQ DI, CX                     \
	ANDQ $63, CX                    \
	SUBQ CX, DI                     \
	SHRQ $SHIFT, CX                 \
	MOVL $-1, DX                    \
	SHLXL CX, DX, DX                \
	MASK DX, K2                     \
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
	SUBQ CX, R11                    \
	SHLQ $SHIFT, R11                \
	ADDQ SI, R11                    \
	ADDQ CX, R10                    \
	MOVL $-1, DX                    \
	SHLXL CX, DX, DX                \
	CMPQ R10, $LANES                \
	JLT  short                      \
	MASK DX, K1                     \
	MOVE (R11), K1, Z1              \
	CMPQ DI, dst+0(FP)              \
	JB   first                      \
	VMOVNTDQ Z1, (DI)               \
whole:                              \
	ADDQ $64, R11                   \
	ADDQ $64, DI                    \
	SUBQ $LANES, R10                \
	CMPQ R10, $LANES                \
	JLT  tail                       \
	VMOVDQU64 (R11), Z0             \
	VMOVNTDQ Z0, (DI)               \
	JMP  whole                      \
first:                              \
	MOVE Z1, K2, (DI)               \
	JMP  whole                      \
tail:                               \
	MOVQ R10, CX                    \
	TESTQ R10, R10                  \
	JEQ  next                       \
	MOVL $-1, DX                    \
	BZHIL R10, DX, DX               \
	MASK DX, K1                     \
	MOVE.Z (R11), K1, Z1            \
	JMP  next                       \
short:                              \
	BZHIL R10, DX, DX               \
	MASK DX, K1                     \
	MOVE (R11), K1, Z1              \
	MOVQ R10, CX                    \
next:                               \
	INCQ AX                         \
check:                              \
	CMPQ AX, rows+72(FP)            \
	JLT  list                       \
done:                               \
	MOVL $-1, DX                    \
	BZHIL CX, DX, DX                \
	CMPQ DI, dst+0(FP)              \
	JAE  last                       \
	MASK K2, R10                    \
	ANDL R10, DX                    \
last:                               \
	MASK DX, K1                     \
	MOVE Z1, K1, (DI)               \
	SFENCE                          \
	VZEROUPPER                      \
	MOVQ AX, row+80(FP)             \
	MOVQ dstLen+8(FP), DX           \
	SUBQ R15, DX                    \
	MOVQ DX, n+88(FP)               \
	RET

// func streamLists64AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus int,
//	slots int, inverse *int32, rows int) (row, n int)
//
// Does what copyLists64AVX512 does, past the caches. dst is aligned to 8.
TEXT ·streamLists64AVX512(SB), NOSPLIT, $0-96
	STREAMLISTS(3, 8, VMOVDQU64, KMOVB)

// func streamLists32AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus int,
//	slots int, inverse *int32, rows int) (row, n int)
//
// The same for values of 4 bytes. dst is aligned to 4.
TEXT ·streamLists32AVX512(SB), NOSPLIT, $0-96
	STREAMLISTS(2, 16, VMOVDQU32, KMOVW)
