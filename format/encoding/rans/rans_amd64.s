//go:build !purego

#include "textflag.h"

// Offsets in a Decoder, 32-bit numbers all: 32 states, 16 cuts, 32 steps, 32 values.
#define STATES 0
#define CUTS 128
#define STEPS 192
#define VALUES 320

// CLASS512 takes the class off 16 states X: V becomes what value says of it. Z16 to Z18 are scratch.
#define CLASS512(X, V) \
	VPANDD Z7, X, Z16;              \ // slot
	VPERMD Z2, X, Z17;              \ // cut of the bucket, which is in the low 4 bits
	VPADDD Z16, Z17, Z17;           \
	VPSRLD $8, Z17, Z17;            \
	VPTERNLOGD $0xE4, Z8, X, Z17;   \ // bit 4: the other class; bits 0 to 3: the bucket
	VMOVDQA64 Z17, V;               \
	VPERMI2D Z4, Z3, Z17;           \ // step
	VPERMI2D Z6, Z5, V;             \
	VPSRLD $12, X, Z18;             \
	VPSRLD $4, Z16, Z16;            \ // place
	VPANDD Z9, Z17, X;              \
	VPMULLD X, Z18, X;              \
	VPSRAD $16, Z17, Z17;           \
	VPADDD Z16, Z17, Z17;           \ // rank
	VPADDD Z17, X, X

// REFILL512 gives those of 16 states X that are below 2^16 the next words at SI, and moves SI past them.
#define REFILL512(X) \
	VPCMPUD $1, Z10, X, K1;         \
	VPMOVZXWD (SI), Z16;            \
	VPEXPANDD.Z Z16, K1, Z16;       \
	VPSLLD $16, X, K1, X;           \
	VPORD Z16, X, X;                \
	KMOVW K1, AX;                   \
	POPCNTL AX, AX;                 \
	LEAQ (SI)(AX*2), SI

// BITS512 takes the places in their classes off 16 states X; V becomes first + place. Z16 and Z17 are scratch.
#define BITS512(X, V) \
	VPSRLD $24, V, Z16;             \ // size
	VPANDD Z11, V, V;               \ // first
	VPSRLVD Z16, X, Z17;            \
	VPSLLVD Z16, Z17, Z16;          \
	VPSUBD Z16, X, Z16;             \
	VPADDD Z16, V, V;               \
	VMOVDQA64 Z17, X

// OUT512 writes 16 values V, whose low half is the register Y, to OFF(DI) and the 64 bytes behind.
#define OUT512(V, Y, OFF) \
	VPMOVZXDQ Y, Z16;               \
	VEXTRACTI64X4 $1, V, Y;         \
	VPMOVZXDQ Y, Z17;               \
	VPSLLQ X13, Z16, Z16;           \
	VPSLLQ X13, Z17, Z17;           \
	VPADDQ Z12, Z16, Z16;           \
	VPADDQ Z12, Z17, Z17;           \
	VMOVDQU64 Z16, OFF(DI);         \
	VMOVDQU64 Z17, (OFF+64)(DI)

// func rowsAVX512(dst *int64, rows int, r *Decoder, words *byte, size int, base int64, low int) (done, used int)
//
// Decodes rows of 32 values while 128 bytes of words are left, which is the most that a row looks at; size is their
// number.
TEXT ·rowsAVX512(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ rows+8(FP), CX
	MOVQ r+16(FP), BX
	MOVQ words+24(FP), SI
	MOVQ size+32(FP), DX
	VPBROADCASTQ base+40(FP), Z12
	VMOVQ low+48(FP), X13
	MOVQ SI, R9
	LEAQ -128(SI)(DX*1), DX     // the last place at which a row may begin
	MOVQ CX, R8
	VMOVDQU32 (STATES+0)(BX), Z0
	VMOVDQU32 (STATES+64)(BX), Z1
	VMOVDQU32 CUTS(BX), Z2
	VMOVDQU32 (STEPS+0)(BX), Z3
	VMOVDQU32 (STEPS+64)(BX), Z4
	VMOVDQU32 (VALUES+0)(BX), Z5
	VMOVDQU32 (VALUES+64)(BX), Z6
	MOVL $4095, AX
	VPBROADCASTD AX, Z7
	MOVL $16, AX
	VPBROADCASTD AX, Z8
	MOVL $0xFFFF, AX
	VPBROADCASTD AX, Z9
	MOVL $0x10000, AX
	VPBROADCASTD AX, Z10
	MOVL $0xFFFFFF, AX
	VPBROADCASTD AX, Z11
	CMPQ DX, SI
	JLT done

row:
	CLASS512(Z0, Z14)
	REFILL512(Z0)
	CLASS512(Z1, Z15)
	REFILL512(Z1)
	BITS512(Z0, Z14)
	REFILL512(Z0)
	BITS512(Z1, Z15)
	REFILL512(Z1)
	OUT512(Z14, Y14, 0)
	OUT512(Z15, Y15, 128)
	ADDQ $256, DI
	DECQ R8
	JZ done
	CMPQ SI, DX
	JLE row

done:
	VMOVDQU32 Z0, (STATES+0)(BX)
	VMOVDQU32 Z1, (STATES+64)(BX)
	VZEROUPPER
	SUBQ R8, CX
	MOVQ CX, done+56(FP)
	SUBQ R9, SI
	MOVQ SI, used+64(FP)
	RET

// LOOK16 gives TO the entries of 8 states X in a table of 16 at OFF(BX), by their low 4 bits; Y15 has bit 3 as the
// sign. Y14 is scratch.
#define LOOK16(X, OFF, TO) \
	VPERMD (OFF)(BX), X, TO;        \
	VPERMD (OFF+32)(BX), X, Y14;    \
	VBLENDVPS Y15, Y14, TO, TO

// REFILL256 gives those of 8 states X that are below 2^16 the next words at SI, and moves SI past them. Y13 to Y15 are
// scratch.
#define REFILL256(X) \
	VPSRLD $16, X, Y15;             \
	VPCMPEQD Y12, Y15, Y15;         \
	VMOVMSKPS Y15, AX;              \
	VPMOVZXWD (SI), Y14;            \
	VPMOVZXBD (R10)(AX*8), Y13;     \ // which word each state takes
	VPERMD Y14, Y13, Y14;           \
	VPSLLD $16, X, Y13;             \
	VPOR Y14, Y13, Y13;             \
	VBLENDVPS Y15, Y13, X, X;       \
	POPCNTL AX, AX;                 \
	LEAQ (SI)(AX*2), SI

// CLASS256 takes the class off 8 states X, which get their words; V becomes what value says of it. Y4 to Y7 and Y13 to
// Y15 are scratch.
#define CLASS256(X, V) \
	VPSLLD $28, X, Y15;             \ // the sign: bit 3 of the bucket
	VPSLLD $20, X, Y4;              \
	LOOK16(X, CUTS, Y5);            \
	VPSRLD $20, Y4, Y6;             \ // slot
	VPADDD Y6, Y5, Y5;              \
	VPSLLD $19, Y5, Y5;             \ // the sign: the other class
	LOOK16(X, STEPS, Y6);           \
	LOOK16(X, STEPS+64, Y7);        \
	VBLENDVPS Y5, Y7, Y6, Y6;       \ // step
	LOOK16(X, VALUES, V);           \
	LOOK16(X, VALUES+64, Y7);       \
	VBLENDVPS Y5, Y7, V, V;         \
	VPSRLD $12, X, X;               \
	VPSRLD $24, Y4, Y4;             \ // place
	VPBLENDW $0xAA, Y12, Y6, Y7;    \ // frequency
	VPMULLD Y7, X, X;               \
	VPSRAD $16, Y6, Y6;             \
	VPADDD Y4, Y6, Y6;              \ // rank
	VPADDD Y6, X, X;                \
	REFILL256(X)

// BITS256 takes the places in their classes off 8 states X, which get their words, and writes 8 values by V, whose low
// half is the register VX, to OFF(DI) and the 32 bytes behind. Y4 to Y7 and Y13 to Y15 are scratch.
#define BITS256(X, V, VX, OFF) \
	VPSRLD $24, V, Y4;              \ // size
	VPSLLD $8, V, V;                \
	VPSRLD $8, V, V;                \ // first
	VPSRLVD Y4, X, Y5;              \
	VPSLLVD Y4, Y5, Y4;             \
	VPSUBD Y4, X, Y4;               \
	VPADDD Y4, V, V;                \
	VMOVDQA Y5, X;                  \
	REFILL256(X);                   \
	VMOVQ low+48(FP), X13;          \
	VPBROADCASTQ base+40(FP), Y14;  \
	VPMOVZXDQ VX, Y6;               \
	VEXTRACTI128 $1, V, VX;         \
	VPMOVZXDQ VX, Y7;               \
	VPSLLQ X13, Y6, Y6;             \
	VPSLLQ X13, Y7, Y7;             \
	VPADDQ Y14, Y6, Y6;             \
	VPADDQ Y14, Y7, Y7;             \
	VMOVDQU Y6, OFF(DI);            \
	VMOVDQU Y7, (OFF+32)(DI)

// func rowsAVX2(dst *int64, rows int, r *Decoder, words *byte, size int, base int64, low int, take *[256][8]uint8)
// (done, used int)
//
// As rowsAVX512. take says of every set of 8 states that need words which of the next ones each takes.
TEXT ·rowsAVX2(SB), NOSPLIT, $0-80
	MOVQ dst+0(FP), DI
	MOVQ rows+8(FP), CX
	MOVQ r+16(FP), BX
	MOVQ words+24(FP), SI
	MOVQ size+32(FP), DX
	MOVQ take+56(FP), R10
	MOVQ SI, R9
	LEAQ -128(SI)(DX*1), DX     // the last place at which a row may begin
	MOVQ CX, R8
	VMOVDQU (STATES+0)(BX), Y0
	VMOVDQU (STATES+32)(BX), Y1
	VMOVDQU (STATES+64)(BX), Y2
	VMOVDQU (STATES+96)(BX), Y3
	VPXOR Y12, Y12, Y12
	CMPQ DX, SI
	JLT done

row:
	CLASS256(Y0, Y8)
	CLASS256(Y1, Y9)
	CLASS256(Y2, Y10)
	CLASS256(Y3, Y11)
	BITS256(Y0, Y8, X8, 0)
	BITS256(Y1, Y9, X9, 64)
	BITS256(Y2, Y10, X10, 128)
	BITS256(Y3, Y11, X11, 192)
	ADDQ $256, DI
	DECQ R8
	JZ done
	CMPQ SI, DX
	JLE row

done:
	VMOVDQU Y0, (STATES+0)(BX)
	VMOVDQU Y1, (STATES+32)(BX)
	VMOVDQU Y2, (STATES+64)(BX)
	VMOVDQU Y3, (STATES+96)(BX)
	VZEROUPPER
	SUBQ R8, CX
	MOVQ CX, done+64(FP)
	SUBQ R9, SI
	MOVQ SI, used+72(FP)
	RET
