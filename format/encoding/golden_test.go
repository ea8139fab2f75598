package encoding

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "append chunks of codecs that testdata/chunks.txt lacks")

const goldenFile = "testdata/chunks.txt"

// goldenValues suit every codec: sequences, runs, an outlier, and more than a block.
func goldenValues() []int64 {
	vals := make([]int64, 300)
	for i := range vals {
		vals[i] = int64(1000 + i%7*i%50 - i/100)
	}
	vals[17] = 1 << 50
	return vals
}

// Chunks that were written once are read for ever: lines are added to the file, never changed.
func TestGolden(t *testing.T) {
	vals := goldenValues()
	floats, doubles := make([]float32, len(vals)), make([]float64, len(vals))
	raw4, raw8 := make([]int64, len(vals)), make([]int64, len(vals))
	words := make([]uint64, (len(vals)+63)/64)
	var data []byte
	offsets := []int32{0}
	for i, v := range vals {
		doubles[i] = float64(v) / 100
		floats[i] = float32(doubles[i])
		raw4[i], raw8[i] = int64(math.Float32bits(floats[i])), int64(math.Float64bits(doubles[i]))
		if i > 250 && i != 260 {
			words[i/64] |= 1 << (i % 64)
		}
		data = fmt.Append(data, v%9)
		if v%3 == 0 {
			data = append(data, "aa"...)
		}
		offsets = append(offsets, int32(len(data)))
	}
	want := map[string]func() ([]byte, bool){}
	for _, id := range intIDs()[1:] {
		want["ints "+id.String()] = func() ([]byte, bool) { return forceInts(id, vals) }
	}
	for _, id := range floatIDs()[1:] {
		want["floats "+id.String()] = func() ([]byte, bool) { return forceFloats(id, raw4, 4) }
		want["doubles "+id.String()] = func() ([]byte, bool) { return forceFloats(id, raw8, 8) }
	}
	want["bits chosen"] = func() ([]byte, bool) { var c Chooser; return c.AppendBits(nil, 0, words, len(vals)), true }
	for _, id := range stringIDs()[1:] {
		want["strings "+id.String()] = func() ([]byte, bool) { return forceStrings(id, data, offsets) }
	}

	d := new(Decoder)
	file, err := os.ReadFile(goldenFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(file)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		family, rest, _ := strings.Cut(lines.Text(), " ")
		codec, digits, _ := strings.Cut(rest, " ")
		chunk, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		var same bool
		switch family {
		case "ints":
			got := make([]int64, len(vals))
			err = d.Ints(got, chunk)
			same = slices.Equal(got, vals)
		case "floats":
			got := make([]float32, len(vals))
			err = d.Floats(got, chunk)
			same = slices.Equal(got, floats)
		case "doubles":
			got := make([]float64, len(vals))
			err = d.Doubles(got, chunk)
			same = slices.Equal(got, doubles)
		case "bits":
			got := make([]uint64, len(words))
			err = d.Bits(got, len(vals), chunk)
			same = slices.Equal(got, words)
		case "strings":
			got := make([]byte, len(data))
			err = d.Strings(got, offsets, chunk)
			same = string(got) == string(data)
		}
		if err != nil || !same {
			t.Errorf("%s %s: no longer read: %v", family, codec, err)
		}
		delete(want, family+" "+codec)
	}
	var missing []string
	for name := range want {
		missing = append(missing, name)
	}
	slices.Sort(missing)
	if !*update && len(missing) > 0 {
		t.Errorf("%s lacks %v: go test -run Golden -update", goldenFile, missing)
	}
	if *update {
		for _, name := range missing {
			chunk, ok := want[name]()
			if !ok || Describe(chunk) == "?" || !strings.Contains(Describe(chunk), strings.Fields(name)[1]) &&
				name != "bits chosen" {
				t.Fatalf("%s: %v %s", name, ok, Describe(chunk))
			}
			file = fmt.Appendf(file, "%s %x\n", name, chunk)
		}
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenFile, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
