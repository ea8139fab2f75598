package format_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// readFile opens a file and decodes all its stripes.
func readFile(file []byte, limits format.Limits) ([]*vector.Column, error) {
	m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), limits)
	if err != nil {
		return nil, err
	}
	var out []*vector.Column
	d := format.NewStripeDecoder(limits)
	if err := use(d, file, m); err != nil {
		return nil, err
	}
	for i := range m.Stripes {
		c := new(vector.Column)
		if err := d.DecodeStripe(c, m, i, stripeBytes(file, m, i), identityGroup(m, i)); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// identityGroup returns an inverse that fits stripe i of a feature of a group, and nil for others.
func identityGroup(m *format.FileMeta, i int) *vector.Column {
	if m.Group == 0 {
		return nil
	}
	s := m.Stripes[i]
	c := &vector.Column{Type: vector.Type{Kind: vector.Inverse}, Rows: int(s.Rows), Slots: int(s.Slots)}
	if s.Rows != s.Slots {
		c.Inverse = make([]int32, s.Rows)
		for row := range c.Inverse {
			c.Inverse[row] = int32(row % int(s.Slots))
		}
	}
	return c
}

// smallFile returns a file with every stream that a weighted feature can have.
func smallFile(t testing.TB) ([]byte, *format.FileMeta) {
	ty := vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}
	rng := rand.New(rand.NewPCG(3, 4))
	return writeFile(fatal{t}, ty, format.WriterOptions{Feature: 1 << 60, Salt: 1<<31 + 7, Name: "user_clicks"},
		makeColumn(rng, ty, shape{rows: 40, null: 20, empty: 10, inverse: 3, maxLength: 4}),
		makeColumn(rng, ty, shape{rows: 33, null: 20, inverse: 1, maxLength: 4, partial: true}))
}

// fatal makes a testing.TB fit what rapid's T has too.
type fatal struct{ testing.TB }

func TestTruncated(t *testing.T) {
	file, _ := smallFile(t)
	for n := range file {
		if _, err := readFile(file[:n], format.Limits{}); !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(file), err)
		}
		// The index knows the length, the object is shorter.
		if _, err := format.OpenFile(bytes.NewReader(file[:n]), 0, int64(len(file)), format.Limits{}); !errors.Is(err,
			format.ErrCorrupt) {
			t.Fatalf("cut below to %d of %d bytes: %v", n, len(file), err)
		}
	}
}

func TestBitFlips(t *testing.T) {
	file, _ := smallFile(t)
	for i := range 8 * len(file) {
		bad := bytes.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := readFile(bad, format.Limits{}); !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("bit %d of byte %d: %v", i%8, i/8, err)
		}
	}
}

func TestErrorSaysWhere(t *testing.T) {
	file, m := smallFile(t)
	s := m.Stripes[1]
	at := s.Offset
	for _, f := range s.Streams {
		bad := bytes.Clone(file)
		bad[at] ^= 1
		_, err := readFile(bad, format.Limits{})
		err = format.Locate(err, "packs/7", "user_clicks", 1000)
		var c *format.CorruptError
		if !errors.As(err, &c) || c.Object != "packs/7" || c.Feature != "user_clicks" || c.Stripe != 1 ||
			c.Stream != f.Kind.String() || c.Offset != int64(at)+1000 {
			t.Fatalf("%v of stripe 1, at %d: %v", f.Kind, at, err)
		}
		if got := format.VerifyStripe(m, 1, stripeBytes(bad, m, 1)); !errors.Is(got, format.ErrCorrupt) {
			t.Fatalf("verify of %v: %v", f.Kind, got)
		}
		at += f.Length
	}
	if err := format.Locate(io.ErrClosedPipe, "o", "f", 1); err != io.ErrClosedPipe {
		t.Fatalf("another error became %v", err)
	}
}

// sealStripe recomputes the checksums of stripe i, so that its decoders are reached.
func sealStripe(m *format.FileMeta, i int, src []byte) {
	for _, f := range m.Stripes[i].Streams {
		seal(m, i, f.Kind, src[:f.Length])
		src = src[f.Length:]
	}
}

// seal makes the checksum right that src ends with, a chunk of stripe i and its checksum. Stripe -1, kind 0: the
// dictionary.
func seal(m *format.FileMeta, i int, kind format.StreamKind, src []byte) {
	chunk := src[:len(src)-4]
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, m.Salt), uint32(i))
	b = append(b, byte(kind))
	binary.LittleEndian.PutUint32(src[len(chunk):], crc32.Checksum(append(b, chunk...),
		crc32.MakeTable(crc32.Castagnoli)))
}

// Bytes with the right checksums but the wrong content decode to a valid column or to ErrCorrupt.
func TestSealedDamage(t *testing.T) {
	d := format.NewStripeDecoder(format.Limits{StripeBytes: 1 << 22})
	dst := new(vector.Column)
	rapid.Check(t, func(t *rapid.T) {
		ty := vectortest.DrawType(t)
		opts := format.WriterOptions{}
		file, m := writeFile(t, ty, opts, drawColumn(t, ty))
		src := stripeBytes(file, m, 0)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			if len(src) > 0 {
				src[rapid.IntRange(0, len(src)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
		}
		s := &m.Stripes[0]
		switch rapid.IntRange(0, 4).Draw(t, "count") {
		case 0:
			s.Elements = uint64(rapid.IntRange(0, 1000).Draw(t, "elements"))
		case 1:
			s.Slots = uint32(rapid.IntRange(0, 1000).Draw(t, "slots"))
		case 2:
			s.Present = uint32(rapid.IntRange(0, int(s.Slots)).Draw(t, "present"))
		}
		sealStripe(m, 0, src)
		err := d.DecodeStripe(dst, m, 0, src, nil)
		if err == nil {
			if err := dst.Validate(); err != nil {
				t.Fatalf("decoded to a column that is not valid: %v", err)
			}
			return
		}
		if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
			t.Fatalf("untyped error %v", err)
		}
		if dst.Rows != 0 || dst.Validate() != nil {
			t.Fatalf("after an error the column has %d rows: %v", dst.Rows, dst.Validate())
		}
	})
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// metaBytes builds a directory by hand: its head up to the stripes of a list<int64>, then what is given.
func metaBytes(kind vector.Kind, rest ...byte) []byte {
	b := []byte{1, 0, byte(kind)}
	if kind < vector.Bytes {
		b = append(b, byte(vector.Int64))
	}
	b = append(b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 0) // feature, salt, empty name
	return append(b, rest...)
}

func uv(vals ...uint64) []byte {
	var b []byte
	for _, v := range vals {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func TestUntrustedDirectory(t *testing.T) {
	presence, values, lengths := uint64(1), uint64(1<<5), uint64(1<<4)
	cases := []struct {
		name string
		src  []byte
		want string
	}{
		{"empty", nil, "ends early"},
		{"stripes without bytes", metaBytes(vector.Sparse, uv(1<<16)...), "65536 stripes in 0 bytes"},
		{"many stripes", metaBytes(vector.Sparse, uv(1<<60)...), "over the limit"},
		{"many rows", metaBytes(vector.Sparse, uv(1, 0, 0, 1<<40)...), "the limit is"},
		{"negative rows", metaBytes(vector.Sparse, uv(1, 0, 0, 1)...), "the limit is"},
		{"rows past 64 bits", metaBytes(vector.Sparse, uv(1, 0, 0, math.MaxUint64-1)...), "the limit is"},
		{"many slots", metaBytes(vector.Sparse, uv(1, 1<<3, 1, 2, 1<<31)...), "over the limit"},
		{"more nulls than slots", metaBytes(vector.Sparse, uv(1, presence, 2, 2, 5)...), "5 null slots of 1"},
		{"many elements", metaBytes(vector.Sparse, uv(1, values|lengths, 0, 2, 1<<31, 9, 9)...), "elements"},
		{"many decoded bytes", metaBytes(vector.Sparse, uv(1, values|lengths, 0, 2, 1<<30, 9, 9)...), "decodes to"},
		{"streams past 64 bits", metaBytes(vector.Dense, uv(1, values, 0, 2, math.MaxUint64)...), "stream values of"},
		{"a stored stripe of a terabyte", metaBytes(vector.Dense, uv(1, values, 0, 2, 1<<40)...),
			"stored in 1099511627776 bytes"},
		{"no values", metaBytes(vector.Dense, uv(1, 0, 0, 2)...), "values do not fit"},
		{"no inverse", metaBytes(vector.Dense, uv(1, values, 1, 8, 2, 9)...), "no inverse for 4 rows of 2 slots"},
		{"empty stream", metaBytes(vector.Dense, uv(1, values, 0, 2, 4)...), "stream values of 4 bytes"},
		{"trailing bytes", metaBytes(vector.Dense, uv(0, 0)...), "1 bytes after the directory"},
		{"long name", append([]byte{1, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9}, uv(1<<40)...), "name of"},
		{"bounds of strings", metaBytes(vector.String, uv(1, 0, 1<<4|1<<2, 2, 0, 0)...),
			"bounds of a feature of kind string"},
		{"dense in an inverse file", metaBytes(vector.Inverse, uv(1, values, 0, 2, 9)...), "more than an inverse"},
		{"dimensions", []byte{1, 0, 4, 5, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 0, 0},
			"dimensions"},
	}
	for _, c := range cases {
		var err error
		n := allocated(func() { _, err = format.DecodeMeta(c.src, format.Limits{}) })
		if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if n > 1<<16 {
			t.Errorf("%s: %d bytes allocated for %d", c.name, n, len(c.src))
		}
	}
}

// The worst that the bytes of a directory can ask for is a small multiple of their number.
func TestDirectoryMemory(t *testing.T) {
	src := metaBytes(vector.Sparse, uv(1<<17)...)
	for range 1 << 17 {
		src = append(src, 0, 0, 0) // a stripe without rows, the shortest entry
	}
	var err error
	n := allocated(func() { _, err = format.DecodeMeta(src, format.Limits{}) })
	if err != nil || n > 100*uint64(len(src)) {
		t.Fatalf("%d bytes allocated for %d: %v", n, len(src), err)
	}
	// A length that no read bears out costs a read of the end.
	n = allocated(func() {
		_, err = format.OpenFile(bytes.NewReader(src), 0, 1<<60, format.Limits{})
	})
	if !errors.Is(err, format.ErrCorrupt) || n > 1<<16 {
		t.Fatalf("%d bytes allocated: %v", n, err)
	}
}

// What a newer writer may have written is refused by name and number, not called damage.
func TestUnsupported(t *testing.T) {
	cases := []struct {
		name string
		src  []byte
		want string
	}{
		{"version", []byte{2, 0, 1, 5}, "directory version 2"},
		{"flags", []byte{1, 8, 1, 5}, "directory flags 0x8"},
		{"kind", []byte{1, 0, 8, 5}, "feature kind 8"},
		{"element", []byte{1, 0, 2, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 0, 0}, "element type 12"},
		{"score", []byte{1, 0, 3, 5, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 0, 0}, "element type 12"},
		{"stream", metaBytes(vector.Sparse, uv(1, 1<<9, 0, 2)...), "stream kind 10"},
		{"stripe flags", metaBytes(vector.Sparse, uv(1, 0, 1<<6, 2)...), "stripe flags 0x40"},
		{"field", append([]byte{1, 2, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 0, 0}, uv(2, 4, 1, 0, 7, 0)...),
			"directory field 7"},
	}
	for _, c := range cases {
		_, err := format.DecodeMeta(c.src, format.Limits{})
		if !errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrCorrupt) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// A field that may be skipped is.
	if _, err := format.DecodeMeta(append([]byte{1, 2, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 0, 0}, uv(1, 4, 1, 0)...),
		format.Limits{}); err != nil {
		t.Error(err)
	}
	// A codec of a later registry, and codec 0, which no version will know.
	c := makeMonotone(8)
	for codec, want := range map[byte]error{200: format.ErrUnsupported, 0: format.ErrCorrupt} {
		codecFile, m := writeFile(fatal{t}, c.Type, format.WriterOptions{}, c)
		src := stripeBytes(codecFile, m, 0)
		src[0] = codec
		sealStripe(m, 0, src)
		if _, err := readFile(codecFile, format.Limits{}); !errors.Is(err, want) || codec != 0 &&
			!strings.Contains(err.Error(), "codec 200") {
			t.Error(err)
		}
	}
	// A file of the next version whose checksum holds.
	file, _ := smallFile(t)
	file[len(file)-1] = 2
	sealTail(file)
	if _, err := readFile(file, format.Limits{}); !errors.Is(err, format.ErrUnsupported) ||
		!strings.Contains(err.Error(), "format version 2") {
		t.Error(err)
	}
}

// sealTail recomputes the checksum of a file's or a pack's directory, where its length allows.
func sealTail(file []byte) {
	if len(file) < 16 {
		return
	}
	tail := file[len(file)-12:]
	n := uint64(binary.LittleEndian.Uint32(tail))
	if n > uint64(len(file)-16) {
		return
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Checksum(file[len(file)-12-int(n):len(file)-12], table)
	sum = crc32.Update(sum, table, tail[:4])
	sum = crc32.Update(sum, table, tail[8:])
	binary.LittleEndian.PutUint32(tail[4:], sum)
}

// A stripe over the decoder's limits costs no memory, whatever the index said when it was opened.
func TestDecodeLimits(t *testing.T) {
	ty := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	c := vector.NewColumn(ty)
	c.Ints = make([]int64, 1<<20)
	c.Rows, c.Slots = 1<<20, 1<<20
	file, m := writeFile(fatal{t}, ty, format.WriterOptions{}, c)
	d := format.NewStripeDecoder(format.Limits{StripeBytes: 1 << 20})
	var err error
	n := allocated(func() { err = d.DecodeStripe(new(vector.Column), m, 0, stripeBytes(file, m, 0), nil) })
	if !errors.Is(err, format.ErrCorrupt) || n > 1<<16 {
		t.Fatalf("%d bytes allocated: %v", n, err)
	}
	if _, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)),
		format.Limits{StripeRows: 1 << 10}); !errors.Is(err, format.ErrCorrupt) {
		t.Fatal(err)
	}
}

// The writer refuses what readers would refuse, and what it refused leaves no trace.
func TestWriterRefuses(t *testing.T) {
	str := vector.NewColumn(vector.Type{Kind: vector.String})
	str.Data = append(str.Data, "ok\xff"...)
	str.AddSlot()
	small := vector.NewColumn(vector.Type{Kind: vector.Dense, Elem: vector.Int8})
	small.Ints = append(small.Ints, 128)
	small.AddSlot()
	broken := vector.NewColumn(vector.Type{Kind: vector.Dense, Elem: vector.Int8})
	broken.Rows, broken.Slots = 2, 2
	for _, c := range []struct {
		column *vector.Column
		want   string
	}{{str, "UTF-8"}, {small, "128, out of the range of int8"}, {broken, "0 values for 2 slots"}} {
		var b bytes.Buffer
		w, err := format.NewWriter(&b, c.column.Type, format.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteStripe(c.column); err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err,
			format.ErrCorrupt) {
			t.Errorf("%v, want %q", err, c.want)
		}
		good := vector.NewColumn(c.column.Type)
		good.AppendNulls(3)
		if err := w.WriteStripe(good); err != nil {
			t.Error(err)
		}
		if _, _, err := w.Finish(); err != nil {
			t.Error(err)
		}
		if got, err := readFile(b.Bytes(), format.Limits{}); err != nil || len(got) != 1 || got[0].Rows != 3 {
			t.Errorf("%v, %v", got, err)
		}
		if err := w.WriteStripe(good); err == nil {
			t.Error("a stripe after Finish")
		}
	}
	if err := new(format.StripeDecoder).DecodeStripe(new(vector.Column), &format.FileMeta{Type: small.Type, Group: 3,
		Stripes: []format.StripeMeta{{}}}, 0, nil, nil); err == nil || errors.Is(err, format.ErrCorrupt) {
		t.Errorf("a feature of a group without the inverse: %v", err)
	}
}

// failing fails at the write that takes it past n bytes.
type failing struct{ n int }

func (f *failing) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	file, _ := smallFile(t)
	c := makeMonotone(10)
	for n := range file {
		w, err := format.NewWriter(&failing{n}, c.Type, format.WriterOptions{})
		if err == nil {
			err = w.WriteStripe(c)
		}
		if err == nil {
			if _, _, err = w.Finish(); err == nil {
				break // n bytes were enough
			}
		}
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		if w != nil {
			if err := w.WriteStripe(c); !errors.Is(err, io.ErrClosedPipe) {
				t.Fatalf("afterwards: %v", err)
			}
		}
	}
}
