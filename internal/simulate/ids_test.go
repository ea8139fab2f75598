package simulate

import (
	"crypto/rand"
	"encoding/binary"
	"io"
)

// idSource stands in for the system's random numbers while a world runs, so that the ids of segments, snapshots and
// leases follow from the world, the machine and how many it has drawn. One machine runs at a time; what it draws does
// not depend on the others.
type idSource struct {
	current *uint64 // the state of the machine that runs
}

func (s *idSource) Read(p []byte) (int, error) {
	for n := 0; n < len(p); n += 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], splitmix(s.current))
		copy(p[n:], b[:])
	}
	return len(p), nil
}

// splitmix is SplitMix64.
func splitmix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// install puts the source in the place of crypto/rand's, until undo is called.
func (s *idSource) install() (undo func()) {
	var before io.Reader
	before, rand.Reader = rand.Reader, s
	return func() { rand.Reader = before }
}
