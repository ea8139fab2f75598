package orc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// Timestamps reads a column of timestamps of an ORC file. pyarrow makes nanoseconds in 64 bits of them, and gives up,
// or in old versions wraps, where those do not hold them.
//
//	stripe      PRESENT (bits, where there are nulls) · DATA (seconds since 2015 in the writer's zone) ·
//	            SECONDARY (nanoseconds)
type Timestamps struct {
	R    io.ReaderAt
	Tail *Tail
	Typ  uint64

	stripe         int          // the next one
	rows           uint64       // left of the current one
	present        []*bitReader // each of what the one before has
	seconds, nanos *intReader
	zone           *time.Location
	epoch          int64
}

// Encodings and streams of ORC that matter here.
const (
	encodingDirect   = 0
	encodingDirectV2 = 2
	streamPresent    = 0
	streamData       = 1
	streamSecondary  = 5
)

func (m *Timestamps) open() error {
	s := m.Tail.stripes[m.stripe]
	foot, err := m.Tail.stripeFooter(m.R, s)
	if err != nil {
		return err
	}
	m.stripe, m.rows, m.zone = m.stripe+1, s.rows, time.UTC
	if foot.zone != "" && m.Tail.Types[m.Typ].Kind == Timestamp {
		if m.zone, err = time.LoadLocation(foot.zone); err != nil {
			return fmt.Errorf("the zone of its writer: %w", err)
		}
	}
	m.epoch = time.Date(2015, 1, 1, 0, 0, 0, 0, m.zone).Unix()
	stream := func(kind uint64) *chunkReader {
		at, _ := foot.find(kind, m.Typ) // one that is not there holds nothing
		return m.Tail.stream(m.R, at.at, at.length)
	}
	m.present = m.present[:0]
	for _, typ := range []uint64{0, m.Typ} { // a row may be null as a whole
		if at, ok := foot.find(streamPresent, typ); ok {
			m.present = append(m.present, &bitReader{s: m.Tail.stream(m.R, at.at, at.length)})
		}
	}
	version := 0
	if m.Typ < uint64(len(foot.encodings)) {
		version = map[uint64]int{encodingDirect: 1, encodingDirectV2: 2}[foot.encodings[m.Typ]]
	}
	if version == 0 {
		return errors.New("timestamps in an unknown encoding")
	}
	m.seconds = &intReader{s: stream(streamData), version: version, signed: true}
	m.nanos = &intReader{s: stream(streamSecondary), version: version}
	return nil
}

// Next returns the timestamp of the next row, false where it is null, and io.EOF after the last.
func (m *Timestamps) Next() (v column.Timestamp, valid bool, err error) {
	for m.rows == 0 {
		if m.stripe == len(m.Tail.stripes) {
			return v, false, io.EOF
		}
		if err := m.open(); err != nil {
			return v, false, fmt.Errorf("stripe %d: %w", m.stripe, err)
		}
	}
	m.rows--
	for _, p := range m.present {
		if ok, err := p.next(); err != nil || !ok {
			return v, false, m.at(err)
		}
	}
	if v.Seconds, err = m.seconds.next(); err == nil {
		v.Nanos, err = m.nanos.next()
	}
	if err != nil {
		return v, false, m.at(err)
	}
	// The lowest bits say how many zeros, less one, were cut from the end.
	zeros := v.Nanos & 7
	if v.Nanos >>= 3; zeros > 0 {
		for range zeros + 1 {
			v.Nanos *= 10
		}
	}
	if v.Nanos <= -1e9 || v.Nanos >= 1e9 {
		return v, false, m.at(fmt.Errorf("a timestamp of %d nanoseconds", v.Nanos))
	}
	const far = 1 << 53
	if v.Seconds > far || v.Seconds < -far {
		return v, false, m.at(fmt.Errorf("a timestamp %d seconds from 2015", v.Seconds))
	}
	v.Seconds += m.epoch
	if m.zone != time.UTC { // the time of day is what was meant
		_, offset := time.Unix(v.Seconds, 0).In(m.zone).Zone()
		v.Seconds += int64(offset)
	}
	switch {
	case v.Nanos < 0: // as pyarrow writes before 1970
		v.Seconds, v.Nanos = v.Seconds-1, v.Nanos+1e9
	case v.Seconds < 0 && v.Nanos > 999_999:
		// Other writers round seconds towards 1970, unless less than a millisecond is over, and readers take it so.
		v.Seconds--
	}
	return v, true, nil
}

func (m *Timestamps) at(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stripe %d: %w", m.stripe-1, err)
}

// read returns the next n rows as an array of the type's unit.
func (m *Timestamps) read(n *column.Type, rows int) (*column.Array, error) {
	a := column.NewArray(n)
	for range rows {
		v, valid, err := m.Next()
		if err == io.EOF {
			err = errors.New("it has fewer rows than other columns")
		}
		if err != nil {
			return nil, err
		}
		if !valid {
			a.AppendNull()
			continue
		}
		t, err := v.Value(n, "the timestamp "+v.String())
		if err != nil {
			a.Fault(err)
		}
		a.Ints = append(a.Ints, t)
		a.AppendEntry(true)
	}
	return a, nil
}

// timestampRanges returns what the timestamps of an ORC file are, as far as pyarrow does not read them: those that it
// reads are in the range of nanoseconds.
func timestampRanges(ctx context.Context, d *input.Set, in input.File) (leaves []input.TimestampLeaf, err error) {
	f, err := in.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tail, err := ReadTail(f, f.Size())
	if err != nil {
		return nil, err
	}
	if _, err := tail.rename(d); err != nil {
		return nil, err
	}
	root := tail.Types[0]
	for i, typ := range root.Subtypes {
		k := tail.Types[typ].Kind
		if k != Timestamp && k != Instant || !tail.exceedsNanoseconds(typ, false) {
			continue
		}
		if len(leaves) == 0 { // they are read by small parts
			if _, err := f.Spool(); err != nil {
				return nil, err
			}
		}
		seen := &column.TimestampRange{}
		leaves = append(leaves, input.TimestampLeaf{Path: root.Names[i], Node: &column.Type{Seen: seen}})
		for m := (&Timestamps{R: f, Tail: tail, Typ: typ}); ; {
			v, valid, err := m.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return leaves, err
			}
			if valid {
				seen.Add(v)
			}
		}
	}
	return leaves, nil
}
