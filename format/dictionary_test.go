package format_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// sharedFile returns a file whose stripes share most of their values, and the stripes.
func sharedFile(t testing.TB, ty vector.Type) ([]byte, *format.FileMeta, []*vector.Column) {
	rng := rand.New(rand.NewPCG(5, 6))
	var stripes []*vector.Column
	for _, s := range sharedShapes {
		s.partial = s.partial && ty.IsList()
		stripes = append(stripes, makeColumn(rng, ty, s))
	}
	file, m := writeFile(fatal{t}, ty, format.WriterOptions{Feature: 7, Salt: 0xfedcba98, Name: "f"}, stripes...)
	if m.Dictionary.Length == 0 {
		t.Fatalf("%v: the stripes share nothing", ty)
	}
	return file, m, stripes
}

func hasCodes(s *format.StripeMeta) bool {
	for _, f := range s.Streams {
		if f.Kind == format.Codes {
			return true
		}
	}
	return false
}

// listsOf returns a stripe of lists of one value each.
func listsOf(vals []int64) *vector.Column {
	c := &vector.Column{Type: sparse(vector.Int64), Rows: len(vals), Slots: len(vals), Ints: slices.Clone(vals),
		Offsets: make([]int32, len(vals)+1)}
	for i := range c.Offsets {
		c.Offsets[i] = int32(i)
	}
	return c
}

func hashed(n int) int64 { return int64(uint64(n+1) * 0x9e3779b97f4a7c15 >> 1) }

// Values of several stripes are stored once, those of one stripe beside its codes, whatever the profile.
func TestSharedValuesAreStoredOnce(t *testing.T) {
	const shared, own, stripes = 1000, 100, 6
	var columns []*vector.Column
	alone := 0
	for s := range stripes {
		var vals []int64
		for i := range 4 * shared {
			vals = append(vals, hashed(i*7%shared))
		}
		for i := range own {
			vals = append(vals, hashed(shared+s*own+i))
		}
		c := listsOf(vals)
		columns = append(columns, c)
		file, _ := writeFile(fatal{t}, c.Type, format.WriterOptions{}, c)
		alone += len(file)
	}
	for _, profile := range []encoding.Profile{encoding.Balanced, encoding.Speed, encoding.Size} {
		file, m := writeFile(fatal{t}, columns[0].Type, format.WriterOptions{Profile: profile}, columns...)
		if m.Dictionary.Values != shared {
			t.Fatalf("profile %v: dictionary of %d values, want %d", profile, m.Dictionary.Values, shared)
		}
		if want := alone - (stripes-1)*shared*6; len(file) > want {
			t.Errorf("profile %v: %d bytes, want %d at most: each stripe alone takes %d", profile, len(file), want,
				alone/stripes)
		}
		for i := range m.Stripes {
			if s := &m.Stripes[i]; !hasCodes(s) || s.Own != own {
				t.Errorf("profile %v, stripe %d: %d values of its own, want %d", profile, i, s.Own, own)
			}
		}
		got, err := readFile(file, format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if s := diff(got[i], columns[i]); s != "" {
				t.Fatalf("profile %v, stripe %d: %s", profile, i, s)
			}
		}
	}
}

// A file whose stripes share nothing costs no byte for it.
func TestNothingShared(t *testing.T) {
	var columns []*vector.Column
	for s := range 3 {
		var vals []int64
		for i := range 3000 {
			vals = append(vals, hashed(s*3000+i))
		}
		columns = append(columns, listsOf(vals))
	}
	small := &vector.Column{Type: dense(vector.Int64), Rows: 3000, Slots: 3000}
	for i := range 3000 {
		small.Ints = append(small.Ints, int64(i%50))
	}
	for _, stripes := range [][]*vector.Column{columns, {small, small, small}, {columns[0]}, nil} {
		ty := small.Type
		if len(stripes) > 0 {
			ty = stripes[0].Type
		}
		if _, m := writeFile(fatal{t}, ty, format.WriterOptions{}, stripes...); m.Dictionary.Length != 0 {
			t.Errorf("%d stripes of %v: dictionary %+v", len(stripes), ty, m.Dictionary)
		}
	}
}

// TestFilesDoNotSeeThoseBefore: what stripes share is found in memory that other files used, which leaves no trace.
func TestFilesDoNotSeeThoseBefore(t *testing.T) {
	var columns []*vector.Column
	for first := range 3 { // 2,000 values, three quarters of which the one before has
		var vals []int64
		for i := range 6000 {
			vals = append(vals, hashed(500*first+i*7%2000))
		}
		columns = append(columns, listsOf(vals))
	}
	var apart []*vector.Column // nothing shared, and many values
	for stripe := range 2 {
		var vals []int64
		for i := range 20000 {
			vals = append(vals, hashed(1e6+20000*stripe+i))
		}
		apart = append(apart, listsOf(vals))
	}
	var want [3][]byte
	for round := range 3 {
		for i, file := range [][]*vector.Column{columns, apart, columns[1:]} {
			got, _ := writeFile(fatal{t}, columns[0].Type, format.WriterOptions{}, file...)
			if want[i] == nil {
				want[i] = got
			}
			if !bytes.Equal(got, want[i]) {
				t.Fatalf("round %d, file %d: other bytes than the first time", round, i)
			}
		}
	}
}

// A Writer holds a part of a large file back, not all of it, and uses what it learned from it.
func TestDictionaryIsFinishedEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("millions of values")
	}
	var out bytes.Buffer
	ty := sparse(vector.Int64)
	w, err := format.NewWriter(&out, ty, format.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1 << 18
	vals := make([]int64, n)
	for i := range vals {
		vals[i] = hashed(i % 50000)
	}
	for s := range 4 {
		vals[0] = hashed(1000000 + s)
		c := listsOf(vals)
		if err := w.WriteStripe(c); err != nil {
			t.Fatal(err)
		}
		if waits := out.Len() < 1000; waits != (s == 0) { // 2^19 values wait at most
			t.Fatalf("%d bytes written after stripe %d", out.Len(), s)
		}
	}
	m, _, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if m.Dictionary.Values != 50000 || m.Stripes[3].Own != 1 {
		t.Fatalf("dictionary %+v, %d values of the last stripe's own", m.Dictionary, m.Stripes[3].Own)
	}
	got, err := readFile(out.Bytes(), format.Limits{})
	if err != nil || len(got) != 4 || got[3].Ints[0] != hashed(1000003) || got[3].Ints[1] != hashed(1) {
		t.Fatalf("%d stripes: %v", len(got), err)
	}
}

// Damage of a dictionary is told from that of a stripe, and one that claims much is refused before memory is taken.
func TestDictionaryDamage(t *testing.T) {
	for _, ty := range []vector.Type{sparse(vector.Int64), sparse(vector.Uint32), {Kind: vector.Weighted,
		Elem: vector.Int64, Score: vector.Float32}} {
		file, m, _ := sharedFile(t, ty)
		at, length := m.Dictionary.Range()
		for i := at; i < at+length; i++ {
			bad := bytes.Clone(file)
			bad[i] ^= 1 << (i % 8)
			_, err := readFile(bad, format.Limits{})
			var c *format.CorruptError
			if !errors.As(err, &c) || c.Stream != "dictionary" || c.Stripe != -1 || c.Offset != 4 {
				t.Fatalf("%v, byte %d: %v", ty, i, err)
			}
			seal(m, -1, 0, bad[at:at+length])
			if _, err := readFile(bad, format.Limits{}); err != nil && !errors.Is(err, format.ErrCorrupt) &&
				!errors.Is(err, format.ErrUnsupported) {
				t.Fatalf("%v, byte %d: %v", ty, i, err)
			}
		}
		if _, err := readFile(file, format.Limits{DictionaryValues: uint64(m.Dictionary.Values) - 1}); !errors.Is(err,
			format.ErrCorrupt) || !strings.Contains(err.Error(), "over the limit") {
			t.Errorf("%v: %v", ty, err)
		}
		// Without its dictionary a stripe is the caller's mistake.
		for i := range m.Stripes {
			err := format.NewStripeDecoder(format.Limits{}).DecodeStripe(new(vector.Column), m, i, stripeBytes(file,
				m, i), nil)
			if hasCodes(&m.Stripes[i]) != (err != nil) || errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%v, stripe %d: %v", ty, i, err)
			}
		}
	}
}

// A dump says of a dictionary what it says of a stream.
func TestDumpOfDictionary(t *testing.T) {
	file, m, _ := sharedFile(t, sparse(vector.Int64))
	at, length := m.Dictionary.Range()
	chunk := file[at : at+length-4]
	sum := binary.LittleEndian.Uint32(file[at+length-4:])
	dump := func(file []byte) (string, error) {
		var out strings.Builder
		err := format.Dump(&out, bytes.NewReader(file), int64(len(file)))
		return out.String(), err
	}
	text, err := dump(file)
	if want := fmt.Sprintf("dictionary: %s, checksum %08x\n", encoding.Describe(chunk), sum); err != nil ||
		!strings.Contains(text, want) {
		t.Errorf("%v, no %q in\n%s", err, want, text)
	}
	file[at+length-1] ^= 1
	text, err = dump(file)
	var c *format.CorruptError
	if want := fmt.Sprintf("dictionary: checksum %08x, want %08x\n", sum, sum^1<<24); !errors.As(err, &c) ||
		c.Stream != "dictionary" || !strings.Contains(text, want) {
		t.Errorf("%v, no %q in\n%s", err, want, text)
	}
}

// Codes and dictionaries that decode well but fit no file, one by one.
func TestForgedDictionaries(t *testing.T) {
	var e encoding.Chooser
	small, m, _ := sharedFile(t, sparse(vector.Uint32))
	chunk := func(vals ...int64) []byte { return e.AppendInts(nil, 0, vals) }
	forged := *m
	forged.Dictionary.Values = 2
	src := append(chunk(1, 1<<32), 0, 0, 0, 0)
	forged.Dictionary.Length = uint64(len(src))
	seal(&forged, -1, 0, src)
	d := format.NewStripeDecoder(format.Limits{})
	if err := d.DecodeDictionary(new(format.Dictionary), &forged, src); !errors.Is(err, format.ErrCorrupt) ||
		!strings.Contains(err.Error(), "out of the range of uint32") {
		t.Error(err)
	}
	if err := use(d, small, m); err != nil {
		t.Fatal(err)
	}
	all := int64(m.Dictionary.Values) + int64(m.Stripes[0].Own)
	for _, code := range []int64{-1, all, 1 << 40, -1 << 63} {
		vals := make([]int64, m.Stripes[0].Elements)
		vals[3] = code
		fm := *m
		fm.Stripes = append([]format.StripeMeta(nil), m.Stripes...)
		bad := forge(&fm, stripeBytes(small, &fm, 0), format.Codes, chunk(vals...))
		err := d.DecodeStripe(new(vector.Column), &fm, 0, bad, nil)
		if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "of value 3") {
			t.Errorf("code %d: %v", code, err)
		}
	}
	// Directories. Flags 4: a dictionary of 3 values in 9 bytes.
	head := func(kind, elem byte, flags byte, values, length uint64, stripes ...uint64) []byte {
		b := []byte{1, flags, kind}
		if elem != 0 {
			b = append(b, elem)
		}
		b = append(binary.LittleEndian.AppendUint64(b, 1), 9, 9, 9, 9) // feature, salt
		b = binary.AppendUvarint(binary.AppendUvarint(b, values), length)
		return append(append(b, 0), uv(stripes...)...)
	}
	for name, c := range map[string]struct {
		src  []byte
		want string
	}{
		"of no values":    {head(2, 5, 4, 0, 9, 0), "dictionary of no values"},
		"of no bytes":     {head(2, 5, 4, 3, 4, 0), "dictionary of 4 bytes"},
		"of many values":  {head(2, 5, 4, 1<<20+1, 9, 0), "over the limit"},
		"of many bytes":   {head(2, 5, 4, 3, 1<<62, 0), "dictionary of"},
		"of floats":       {head(2, 10, 4, 3, 9, 0), "a dictionary in a file of type"},
		"of strings":      {head(6, 0, 4, 3, 9, 0), "a dictionary in a file of type"},
		"more own values": {head(2, 5, 4, 3, 9, 1, 1<<8|1<<4, 0, 2, 2, 3, 6, 6), "of the stripe's own"},
		"own, no values":  {head(2, 5, 4, 3, 9, 1, 1<<8|1<<4, 0, 2, 2, 1, 6, 6), "do not fit 1 of the stripe's own"},
		"values, not own": {head(2, 5, 4, 3, 9, 1, 1<<8|1<<5|1<<4, 0, 2, 2, 0, 6, 6, 6),
			"do not fit 0 of the stripe's own"},
		"it may be unused": {head(2, 5, 4, 3, 9, 0), ""},
	} {
		_, err := format.DecodeMeta(c.src, format.Limits{})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	codes := metaBytes(vector.Sparse, uv(1, 1<<8|1<<4, 0, 2, 2, 0, 6, 6)...)
	if _, err := format.DecodeMeta(codes, format.Limits{}); !errors.Is(err, format.ErrCorrupt) ||
		!strings.Contains(err.Error(), "codes without a dictionary") {
		t.Error(err)
	}
}
