package usage

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
)

// drawFile draws what an object may hold.
func drawFile(t *rapid.T) *file {
	f := &file{kind: recordsKind, day: dayOf(noon), written: noon.Unix()}
	if rapid.Bool().Draw(t, "rollup") {
		f.kind = rollupKind
		for i := range rapid.IntRange(0, 3).Draw(t, "merged") {
			f.merged = append(f.merged, mergedID{id{byte(i), 7}, noon.Unix() + int64(i)})
		}
	}
	sums := map[Key]*sum{}
	for range rapid.IntRange(0, 5).Draw(t, "records") {
		r := drawRecord(t, noon)
		r.clean()
		if sums[r.Key] == nil {
			sums[r.Key] = newSum(r.Key)
		}
		sums[r.Key].add(r)
	}
	for _, s := range sums {
		f.records = append(f.records, &s.Record)
	}
	return f
}

// What is written is read back, by this package and by one that knows the specification alone; every byte counts.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		b := f.append([]byte("before"))[len("before"):]
		d, err := decode("x", b)
		if err != nil {
			t.Fatal(err)
		}
		if d.kind != f.kind || d.day != f.day || d.written != f.written || !reflect.DeepEqual(d.merged, f.merged) {
			t.Fatalf("%+v, want %+v", d.file, f)
		}
		var got []*Record
		if err := d.each(func(r *Record) error {
			c := *r
			c.Features = append([]FeatureUse(nil), r.Features...)
			got = append(got, &c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, f.records) && len(got)+len(f.records) > 0 {
			t.Fatalf("%+v, want %+v", got, f.records)
		}
		if specified := readSpecified(b); !reflect.DeepEqual(specified, f.records) &&
			len(specified)+len(f.records) > 0 {
			t.Fatalf("by the specification %+v, want %+v", specified, f.records)
		}
		at := rapid.IntRange(0, len(b)-1).Draw(t, "damage")
		damaged := bytes.Clone(b)
		damaged[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		for _, x := range [][]byte{damaged, b[:at], append(bytes.Clone(b), 0)} {
			if _, err := decode("x", x); !errors.Is(err, format.ErrCorrupt) {
				t.Fatalf("damaged at %d of %d: %v", at, len(b), err)
			}
		}
	})
}

// readSpecified reads an object as SPEC.md has it, and shares no code with decode. It panics at damage.
func readSpecified(b []byte) []*Record {
	if string(b[:8]) != "DSIUSGE\x02" {
		panic("magic")
	}
	end := len(b) - 8
	if xxhash.Sum64(b[:end]) != binary.LittleEndian.Uint64(b[end:]) {
		panic("sum")
	}
	p := b[8:end]
	n := func() uint64 {
		v, k := binary.Uvarint(p)
		p = p[k:]
		return v
	}
	take := func(k uint64) []byte {
		out := p[:k]
		p = p[k:]
		return out
	}
	take(1)
	n()
	n()
	for range n() {
		take(16)
		n()
	}
	var texts []string
	for range n() {
		texts = append(texts, string(take(n())))
	}
	type feature struct {
		id   uint64
		name string
	}
	var features []feature
	for range n() {
		features = append(features, feature{binary.LittleEndian.Uint64(take(8)), string(take(n()))})
	}
	var out []*Record
	for range n() {
		r := &Record{Key: Key{Job: texts[n()], User: texts[n()], Program: texts[n()], Branch: texts[n()],
			List: texts[n()]}, Host: texts[n()]}
		r.Purpose = texts[n()]
		r.Filter = binary.LittleEndian.Uint64(take(8))
		r.PID, r.Snapshot = n(), n()
		r.Start = time.Unix(int64(n()), 0).UTC()
		r.End = r.Start.Add(time.Duration(n()) * time.Second)
		r.Readers, r.Rows, r.Batches, r.Requests, r.BytesNeeded, r.BytesUnneeded = n(), n(), n(), n(), n(), n()
		r.Stall, r.Decode, r.Assemble, r.Read = time.Duration(n()), time.Duration(n()), time.Duration(n()),
			time.Duration(n())
		r.StoredRows, r.StoredSlots, r.EmittedRows, r.EmittedSlots = n(), n(), n(), n()
		r.SentReads, r.SentLists, r.BytesDown, r.BytesCached = n(), n(), n(), n()
		at := uint64(0)
		for range n() {
			at += n()
			f := features[at]
			at++
			u := FeatureUse{ID: catalog.FeatureID(f.id), Name: f.name, Readers: n(), Stripes: n(), Rows: n(),
				BytesNeeded: n(), BytesUnneeded: n()}
			u.Last = r.End.Add(-time.Duration(n()) * time.Second)
			r.Features = append(r.Features, u)
		}
		out = append(out, r)
	}
	if len(p) > 0 {
		panic("left over")
	}
	return out
}

// golden is a file whose bytes stay as they are for ever.
func golden() *file {
	r := Record{
		Key: Key{Job: "train", User: "ann", Program: "python", Purpose: PurposeRead, Branch: "exp", List: "panel",
			Filter: 0x0123456789abcdef},
		Host: "h1", PID: 4711, Snapshot: 17, Start: noon, End: noon.Add(300 * time.Second),
		Counters: Counters{
			Readers: 1, Rows: 100_000, Batches: 25, Requests: 176, BytesNeeded: 20_800_000, BytesUnneeded: 4096,
			Stall:  120 * time.Millisecond,
			Decode: time.Second, Assemble: 300 * time.Millisecond, Read: 2 * time.Second, StoredRows: 489,
			StoredSlots: 100, EmittedRows: 237, EmittedSlots: 100, SentReads: 180, SentLists: 1, BytesDown: 21_000_000,
			BytesCached: 1 << 20,
		},
		Features: []FeatureUse{
			{ID: 3, Name: "click", Readers: 1, Stripes: 7, Rows: 100_000, BytesNeeded: 20_000_000,
				Last: noon.Add(300 * time.Second)},
			{ID: 1 << 60, Name: "user_history_00000", Readers: 1, Stripes: 7, Rows: 100_000, BytesNeeded: 800_000,
				BytesUnneeded: 4096, Last: noon},
		},
	}
	return &file{kind: rollupKind, day: dayOf(noon), written: noon.Unix(),
		merged: []mergedID{{id{1, 2, 3}, noon.Unix()}}, records: []*Record{&r}}
}

func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "golden-2.hex")
	got := hex.Dump(golden().append(nil))
	want, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && os.Getenv("DSISTORE_GOLDEN") != "" {
		err = os.WriteFile(path, []byte(got), 0o666)
		want = []byte(got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the bytes have changed:\n%s", got)
	}
}

// sealed gives a body its head and checksum.
func sealed(body []byte) []byte {
	return sealedAs(version, body)
}

func sealedAs(version byte, body []byte) []byte {
	b := append(append([]byte(magic), version), body...)
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// Bytes whose checksum is right are refused where they make no sense, with what is wrong and where; none sizes an
// allocation.
func TestUntrustedBytes(t *testing.T) {
	day := binary.AppendUvarint(nil, uint64(dayOf(noon)))
	head := func(kind byte) []byte { return append(append([]byte{kind}, day...), 1) }
	huge := binary.AppendUvarint(nil, 1<<62)
	record := func(change func(b []byte)) []byte {
		b := append(head(1), 0, 1, 0, 0, 1) // no merged ids, the string "", no features, 1 record
		r := make([]byte, minRecord)
		change(r)
		return append(b, r...)
	}
	for _, x := range []struct {
		name string
		body []byte
		want string
	}{
		{"kind", append(head(9), 0, 0, 0, 0), "unknown kind"},
		{"day", append([]byte{1}, huge...), "day out of range"},
		{"merged in records", append(append(head(1), 1), make([]byte, 17)...), "merge others"},
		{"many merged", append(head(2), huge...), "more than there is room for"},
		{"many strings", append(append(head(1), 0), huge...), "more than there is room for"},
		{"strings twice", append(head(1), 0, 2, 0, 0, 0, 0), "strings out of order"},
		{"no UTF-8", append(head(1), 0, 1, 1, 0xff, 0, 0), "not UTF-8"},
		{"long string", append(append(head(1), 0, 1), append(binary.AppendUvarint(nil, 5000),
			make([]byte, 5000)...)...), "length out of range"},
		{"feature 0", append(append(head(1), 0, 0, 1), make([]byte, 10)...), "features out of order"},
		{"many records", append(append(head(1), 0, 0, 0), huge...), "more than there is room for"},
		{"string position", record(func(b []byte) { b[3] = 1 }), "no such string"},
		{"feature position", append(record(func(b []byte) { b[minRecord-1] = 1 }), make([]byte, minUse)...),
			"no such feature"},
		{"left over", append(record(func([]byte) {}), 0), "bytes left over"},
		{"cut", record(func([]byte) {})[:20], "more than there is room for"},
	} {
		_, err := decode("obj", sealed(x.body))
		if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), x.want) ||
			!strings.Contains(err.Error(), "obj") {
			t.Errorf("%s: %v, want %s", x.name, err, x.want)
		}
	}
	if _, err := decode("obj", sealed(record(func([]byte) {}))); err != nil {
		t.Errorf("a record of nothing: %v", err)
	}
	for v := range byte(version) {
		if _, err := decode("obj", sealedAs(v, record(func([]byte) {}))); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("version %d: %v", v, err)
		}
	}
	_, err := decode("obj", sealedAs(version+1, []byte("whatever comes")))
	if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "version 2") ||
		!strings.Contains(err.Error(), "obj") {
		t.Errorf("a newer version: %v", err)
	}
	damaged := golden().append(nil)
	damaged[7] = version + 1
	if _, err := decode("obj", damaged); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("a version that is damaged: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	b := golden().append(nil)
	f.Add(b[headBytes : len(b)-sumBytes])
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		b := sealed(body)
		d, err := decode("x", b)
		if err != nil {
			if !errors.Is(err, format.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		// What is read is written as the same bytes, but for numbers that took more of them than they need.
		again := d.file
		if err := d.each(func(r *Record) error {
			c := *r
			c.Features = append([]FeatureUse(nil), r.Features...)
			again.records = append(again.records, &c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := decode("x", again.append(nil)); err != nil {
			t.Fatalf("written again: %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	const prefix = "tables/t/usage/"
	i := id{0xab, 1}
	for _, p := range []objectName{
		{name: recordsName(prefix, dayOf(noon), i, 1), day: dayOf(noon), id: i, sequence: 1},
		{name: recordsName(prefix, 0, i, maxSequence), id: i, sequence: maxSequence},
		{name: rollupName(prefix, dayOf(noon), 3), rollup: true, day: dayOf(noon), sequence: 3},
	} {
		if got, ok := parseObjectName(prefix, p.name); !ok || got != p {
			t.Errorf("%s: %+v, %v", p.name, got, ok)
		}
	}
	for _, name := range []string{
		"tables/t/usage/", "tables/t/usage/x", "tables/u/usage/rollup/2026-11-22-0000000001",
		"tables/t/usage/rollup/2026-11-22-1",
		"tables/t/usage/rollup/2026-13-22-0000000001", "tables/t/usage/rollup/2026-11-22-0000000000",
		"tables/t/usage/rollup/",
		"tables/t/usage/2026-11-22/" + strings.Repeat("AB", 16) + "-000001",
		"tables/t/usage/2026-11-22/" + strings.Repeat("ab", 16) + "-0000001",
		"tables/t/usage/2026-11-22/" + strings.Repeat("ab", 15) + "-000001",
		"tables/t/usage/1969-12-31/" + strings.Repeat("ab", 16) + "-000001",
		"tables/t/usage/2026-11-22/x/" + strings.Repeat("ab", 16) + "-000001",
	} {
		if p, ok := parseObjectName(prefix, name); ok {
			t.Errorf("%s is %+v", name, p)
		}
	}
}
