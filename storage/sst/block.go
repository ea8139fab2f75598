package sst

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A handle locates a block: its bytes are [off, off+n), its trailer follows.
type handle struct{ off, n uint64 }

// trailerLen is a block's trailer: compression (1, always 0 here), checksum (4 LE) of the block and the compression
// byte.
const trailerLen = 5

func (h handle) end() uint64 { return h.off + h.n + trailerLen }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the checksum of RocksDB and Pebble: CRC-32C, rotated and shifted.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// checkBlock verifies the trailer of b, a whole block with its trailer, and returns the block without it, and a reason
// when it is wrong.
func checkBlock(b []byte) (body []byte, reason string) {
	n := len(b) - trailerLen
	if n < 0 {
		return nil, "block shorter than its trailer"
	}
	if maskedCRC(b[:n+1]) != binary.LittleEndian.Uint32(b[n+1:]) {
		return nil, "block checksum mismatch"
	}
	if b[n] != 0 {
		return nil, "block is compressed"
	}
	return b[:n], ""
}

// uvarint decodes a varint at b[i:], and returns the index after it; 0 when there is none.
func uvarint(b []byte, i int) (uint64, int) {
	if i > len(b) {
		return 0, 0
	}
	v, n := binary.Uvarint(b[i:])
	if n <= 0 {
		return 0, 0
	}
	return v, i + n
}

// A cursor walks the entries of one block.
//
//	entry    shared (varint) | unshared (varint) | value length (varint) | key suffix | value
//	block    entries | restart offsets (4 LE each) | number of restarts (4 LE)
//
// A key is the first shared bytes of the one before and the suffix; at a restart shared is 0. Keys carry the 8 bytes of
// Pebble's internal trailer, except in the properties and metaindex blocks.
//
// Writer makes a restart at every restartInterval-th entry. So the keys of a block are restartInterval times as long as
// it at most, and copying each of them takes work in proportion to the block.
type cursor struct {
	data     []byte // the entries
	restarts []byte // 4 LE each
	raw      bool   // keys have no internal trailer
	pos      int    // of the next entry
	stored   []byte // the whole key as stored, owned
	length   uint64 // of all keys since the last jump
	key      []byte // borrowed from stored
	value    []byte // borrowed from the block
	reason   string // why the block is wrong, empty when it is not
}

// internalTrailer is the length of the internal trailer of every key that Writer writes: kind 1 (set), sequence number
// 0, 8 bytes LE. Index separators may carry another one.
const internalTrailer = 8

// restartInterval is how many entries of a data block share the beginning of their keys. In an index block none do.
const restartInterval = 16

func (c *cursor) init(body []byte, raw bool) bool {
	*c = cursor{raw: raw, stored: c.stored[:0]}
	if len(body) < 4 {
		return c.fail("block of fewer than 4 bytes")
	}
	n := uint64(binary.LittleEndian.Uint32(body[len(body)-4:]))
	if n*4+4 > uint64(len(body)) {
		return c.fail("restarts exceed the block")
	}
	at := len(body) - 4 - int(n)*4
	c.data, c.restarts = body[:at], body[at:len(body)-4]
	return true
}

func (c *cursor) fail(reason string) bool {
	c.reason, c.data, c.pos = reason, nil, 0
	return false
}

// next moves to the next entry, and reports false at the end and on a wrong block.
func (c *cursor) next() bool {
	if c.reason != "" || c.pos >= len(c.data) {
		return false
	}
	shared, i := uvarint(c.data, c.pos)
	if i == 0 {
		return c.fail("entry header cut short")
	}
	unshared, i := uvarint(c.data, i)
	if i == 0 {
		return c.fail("entry header cut short")
	}
	size, i := uvarint(c.data, i)
	if i == 0 {
		return c.fail("entry header cut short")
	}
	rest := uint64(len(c.data) - i)
	if shared > uint64(len(c.stored)) || unshared > rest || size > rest-unshared {
		return c.fail("entry exceeds the block")
	}
	c.stored = append(c.stored[:shared], c.data[i:i+int(unshared)]...)
	i += int(unshared)
	c.value = c.data[i : i+int(size) : i+int(size)]
	c.pos = i + int(size)
	c.key = c.stored
	if !c.raw {
		if len(c.stored) < internalTrailer {
			return c.fail("key shorter than its trailer")
		}
		if c.length += uint64(len(c.stored)); c.length > restartInterval*uint64(len(c.data)) {
			return c.fail("keys share more than restarts allow")
		}
		c.key = c.stored[:len(c.stored)-internalTrailer]
	}
	return true
}

// seek moves to the first entry whose key is not below key.
func (c *cursor) seek(key []byte) bool {
	if c.reason != "" {
		return false
	}
	// The last restart whose key is below the one sought, or the first.
	lo, hi := 0, len(c.restarts)/4
	for lo < hi {
		mid := (lo + hi) / 2
		if !c.jump(mid) || !c.next() {
			if c.reason != "" {
				return false
			}
			hi = mid
			continue
		}
		if bytes.Compare(c.key, key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if !c.jump(max(0, lo-1)) {
		return false
	}
	for c.next() {
		if bytes.Compare(c.key, key) >= 0 {
			return true
		}
	}
	return false
}

// jump stands before restart i.
func (c *cursor) jump(i int) bool {
	c.stored, c.length = c.stored[:0], 0
	c.pos = 0
	if i == 0 {
		return true
	}
	at := binary.LittleEndian.Uint32(c.restarts[4*i:])
	if uint64(at) > uint64(len(c.data)) {
		return c.fail("restart exceeds the block")
	}
	c.pos = int(at)
	return true
}
