package encoding

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every codec, at the lengths that layouts treat apart, is read alike by ../testdata/spec_decoder.py, which was written
// from SPEC.md alone. The test is skipped where Python or every one of its zstd bindings is missing.
func TestSpec(t *testing.T) {
	python, err := exec.LookPath(cmp.Or(os.Getenv("DSISTORE_PYTHON"), "python3"))
	if err != nil {
		t.Skipf("no Python: %v", err)
	}
	var in bytes.Buffer
	var want, what []string
	seen := map[string]bool{}
	add := func(family, counts string, chunk []byte, text string) {
		fmt.Fprintf(&in, "%s %s %x\n", family, counts, chunk)
		want = append(want, text)
		what = append(what, fmt.Sprintf("%s %s %s", family, counts, Describe(chunk)))
		seen[fmt.Sprintf("%s %s", family, ID(chunk[0]))] = true
	}
	sizes := []int{1, 2, 63, 255, 256, 257, 600, 1025}
	for i, s := range intShapes() {
		n := sizes[i%len(sizes)]
		vals := s.make(source(s.name, n), n)
		for _, id := range intIDs() {
			if chunk, ok := forceInts(id, vals); ok {
				add("ints", fmt.Sprint(n), chunk, hexWords(vals))
			}
		}
	}
	for i, s := range doubleShapes() {
		n := sizes[i%len(sizes)]
		raw := make([]int64, n)
		for i, v := range s.make(source(s.name, n), n) {
			raw[i] = int64(math.Float64bits(v))
		}
		for _, id := range floatIDs() {
			if chunk, ok := forceFloats(id, raw, 8); ok {
				add("doubles", fmt.Sprint(n), chunk, hexWords(raw))
			}
		}
	}
	for i, s := range floatShapes() {
		n := sizes[i%len(sizes)]
		raw := make([]int64, n)
		for i, v := range s.make(source(s.name, n), n) {
			raw[i] = int64(math.Float32bits(v))
		}
		for _, id := range floatIDs() {
			if chunk, ok := forceFloats(id, raw, 4); ok {
				add("floats", fmt.Sprint(n), chunk, hexWords(raw))
			}
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, n := range sizes {
		for _, stay := range []int{2, 40, 400, 1 << 30, 0} {
			words, text, bit := make([]uint64, (n+63)/64), make([]byte, n), uint64(n&1)
			for i := range n {
				if stay == 0 { // single ones
					bit = uint64(1 / (1 + r.IntN(200)))
				} else if r.IntN(stay) == 0 {
					bit ^= 1
				}
				words[i/64] |= bit << (i % 64)
				text[i] = '0' + byte(bit)
			}
			var c Chooser
			add("bits", fmt.Sprint(n), c.AppendBits(nil, 0, words, n), string(text))
		}
		data, offsets, lengths := []byte{}, []int32{0}, []string{}
		for range n {
			word := []string{"", "a", "sports", "news/europe", "naïve café"}[r.IntN(5)]
			data = append(data, word...)
			offsets = append(offsets, int32(len(data)))
			lengths = append(lengths, fmt.Sprint(len(word)))
		}
		for _, id := range stringIDs()[1:] {
			if chunk, ok := forceStrings(id, data, offsets); ok {
				add("strings", strings.Join(lengths, ","), chunk, fmt.Sprintf("%x", data))
			}
		}
	}

	var out, complaint bytes.Buffer
	cmd := exec.Command(python, "../testdata/spec_decoder.py", "--chunks")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &complaint
	if err := cmd.Run(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 77 {
			t.Skipf("%s has no zstd", python)
		}
		t.Errorf("spec_decoder.py: %v\n%s", err, complaint.Bytes())
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: %.100s, want %.100s", what[i], got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d chunks read of %d; the next is %s", len(got), len(want), what[len(got)])
	}
	for _, c := range codecs {
		if c == nil {
			continue
		}
		id := c.id
		families := []string{"strings"}
		switch {
		case id < IDFloatConstant:
			families = []string{"ints"}
		case id < IDBitsConstant:
			families = []string{"floats", "doubles"}
		case id < IDStringPlain:
			families = []string{"bits"}
		}
		for _, f := range families {
			if !seen[fmt.Sprintf("%s %s", f, id)] {
				t.Errorf("no chunk of %s %v", f, id)
			}
		}
	}
}

// hexWords returns values as spec_decoder.py prints their bits.
func hexWords(vals []int64) string {
	var b strings.Builder
	for i, v := range vals {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%x", uint64(v))
	}
	return b.String()
}
