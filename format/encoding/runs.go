package encoding

import (
	"encoding/binary"
	"sort"
)

// Run-length (id 7): the value and the length of each run.
//
//	+-------+-----------------+-------------------+------------------+-----------------+
//	| 7 (1) | runs r (uvarint)| length of values  | values: ints, r  | lengths: ints,r |
//	|       |                 | chunk (uvarint)   |                  |                 |
//	+-------+-----------------+-------------------+------------------+-----------------+
//
// r is at most n, each length at least 1, their sum n. With id 21 the values are a floats chunk.
const (
	IDRuns      ID = 7
	IDFloatRuns ID = 21
)

const (
	nsRunFill = 0.3 // a value
	nsRun     = 8.0 // a run
)

func init() {
	registerInts(&intCodec{
		codec: codec{IDRuns, "runs", describeCounted},
		turn:  40, deepest: maxDepth - 1, offer: offerRuns, encode: encodeRuns,
		decode: decodeRuns(&intFamily), seeks: seekFew,
	})
	registerFloats(&floatCodec{
		codec: codec{IDFloatRuns, "runs", describeCounted},
		turn:  20, deepest: maxDepth - 1, offer: offerFloatRuns, encode: encodeFloatRuns,
		floats: decodeRuns(&floatFamily.family), doubles: decodeRuns(&doubleFamily.family), seeks: seekFew,
	})
}

func offerRuns(_ *encoder, c *intChoice) {
	if r := float64(c.stats.runs); c.stats.runs < c.stats.n/2 {
		c.offer(IDRuns, c.stats.runsSize()+12, c.n*nsRunFill+r*(nsRun+2*nsFOR))
	}
}

func offerFloatRuns(_ *encoder, c *floatChoice) {
	if r := float64(c.vals.runs); c.vals.runs < len(c.vals.raw)/2 {
		c.offer(IDFloatRuns, r*(float64(c.vals.width)+1)+16, c.n*nsRunFill+r*(nsRun+nsPlain+nsFOR))
	}
}

func encodeRuns(e *encoder, dst []byte, m *memory, vals []int64, s *intStats, depth int) ([]byte, bool) {
	return e.appendRuns(append(dst, byte(IDRuns)), m, vals, s.runs, depth, (*encoder).appendInts), true
}

func encodeFloatRuns(e *encoder, dst []byte, m *memory, v *floatValues, depth int) ([]byte, bool) {
	return e.appendRuns(append(dst, byte(IDFloatRuns)), m, v.raw, v.runs, depth, v.append), true
}

// appendRuns appends the payload. nest appends the values chunk.
func (e *encoder) appendRuns(dst []byte, m *memory, vals []int64, runs, depth int, nest appendFunc) []byte {
	mark, bmark := e.ints.mark(), e.bytes.mark()
	defer e.ints.release(mark)
	values, lengths := e.ints.grab(runs), e.ints.grab(runs)
	splitRuns(values, lengths, vals)
	dst = binary.AppendUvarint(dst, uint64(runs))
	chunk := nest(e, e.bytes.grab(chunkRoom(runs))[:0], m.kid(0), values, depth+1)
	dst = appendNested(dst, chunk)
	e.bytes.release(bmark)
	return e.appendInts(dst, m.kid(1), lengths, depth+1)
}

// splitRuns writes the value and the length of each run of vals, of which there are len(values).
func splitRuns(values, lengths, vals []int64) {
	r, start := -1, 0
	for i, v := range vals {
		if i > 0 && v == values[r] {
			continue
		}
		if r >= 0 {
			lengths[r] = int64(i - start)
		}
		r++
		values[r] = v
		start = i
	}
	if r >= 0 {
		lengths[r] = int64(len(vals) - start)
	}
}

// decodeRuns returns the decodeFunc of run-length of a family. It has a loop for all values and one for spans, because
// decoding all values as one span takes a sixth longer.
func decodeRuns[T any](f *family[T]) decodeFunc[T] {
	return func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error {
		r, p, err := takeCount(p, n)
		if err != nil {
			return err
		}
		chunk, p, err := takeNested(p)
		if err != nil {
			return err
		}
		a := f.arena(d)
		m, am := d.ints.mark(), a.mark()
		defer d.ints.release(m)
		defer a.release(am)
		values, lengths := a.grab(r), d.ints.grab(r)
		if err := f.decode(d, values, chunk, depth+1); err != nil {
			return err
		}
		if err := d.decodeInts(lengths, p, depth+1); err != nil {
			return err
		}
		if spans == nil {
			return fillRuns(dst, values, lengths)
		}
		return fillSpans(dst, n, spans, values, lengths)
	}
}

// fillRuns writes each value lengths[i] times.
func fillRuns[T any](dst, values []T, lengths []int64) error {
	values = values[:len(lengths)]
	for i, l := range lengths {
		if l < 1 || l > int64(len(dst)) {
			return errRuns
		}
		v := values[i]
		run := dst[:l]
		for j := range run {
			run[j] = v
		}
		dst = dst[l:]
	}
	if len(dst) != 0 {
		return errRuns
	}
	return nil
}

// fillSpans writes the values of spans. It turns lengths into the ends of the runs.
func fillSpans[T any](dst []T, n int, spans []Span, values []T, lengths []int64) error {
	ends := lengths
	sum := int64(0)
	for i, l := range lengths {
		if l < 1 || l > int64(n)-sum {
			return errRuns
		}
		sum += l
		ends[i] = sum
	}
	if sum != int64(n) {
		return errRuns
	}
	run := 0
	for _, s := range spans {
		from, to := int64(s.From), int64(s.To)
		if from == to {
			continue
		}
		if run >= len(ends) || ends[run] <= from || run > 0 && ends[run-1] > from {
			run = sort.Search(len(ends), func(i int) bool { return ends[i] > from })
		}
		for from < to {
			k := min(ends[run], to) - from
			fill(dst[:k], values[run])
			dst = dst[k:]
			if from += k; from < to {
				run++
			}
		}
	}
	return nil
}
