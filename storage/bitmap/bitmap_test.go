package bitmap

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// randomRows returns rows below limit in containers of all three forms, and what they are.
func randomRows(r *rand.Rand, limit uint64) (*roaring.Bitmap, map[uint32]bool) {
	out, model := roaring.New(), map[uint32]bool{}
	for range 1 + r.IntN(6) {
		first := r.Uint64N(limit)
		n := []uint64{1, 3, 50, 5000, 70000}[r.IntN(5)]
		step := []uint64{1, 1, 2, 7}[r.IntN(4)]
		for at := first; at < min(limit, first+n*step); at += step {
			out.Add(uint32(at))
			model[uint32(at)] = true
		}
	}
	return out, model
}

func TestBitmapRoundTrip(t *testing.T) {
	forms := map[bool]int{}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := []uint64{1, 100, 65536, 65537, 400_000}[seed%5]
		rows, model := randomRows(r, limit)
		before := rows.Clone()
		b, err := Append(nil, rows)
		if err != nil || !rows.Equals(before) {
			t.Fatal(seed, err)
		}
		forms[b[0] == RunsCookie&0xff]++
		if uint64(len(b)) > MaxBytes(limit) {
			t.Fatalf("seed %d: %d bytes, at most %d were promised", seed, len(b), MaxBytes(limit))
		}
		got, reason := Decode(b, uint64(len(model)), limit)
		if reason != "" {
			t.Fatal(seed, reason)
		}
		if got.GetCardinality() != uint64(len(model)) {
			t.Fatalf("seed %d: %d rows, want %d", seed, got.GetCardinality(), len(model))
		}
		for row := range model {
			if !got.Contains(row) {
				t.Fatalf("seed %d: row %d is missing", seed, row)
			}
		}
		// What is decoded keeps nothing of the bytes.
		clear(b)
		if !got.Equals(rows) {
			t.Fatalf("seed %d: the set changed with the bytes that it came from", seed)
		}
		again, err := Append(nil, got)
		if want, _ := Append(nil, rows); err != nil || !bytes.Equal(again, want) {
			t.Fatalf("seed %d: the same rows give other bytes", seed)
		}
	}
	if forms[true] == 0 || forms[false] == 0 {
		t.Fatal(forms)
	}
}

// TestBitmapDamage: whatever a byte is changed to, what is accepted is a set that the library finds no fault with.
func TestBitmapDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refused, limit := 0, uint64(200_000)
	for range 300 {
		rows, _ := randomRows(r, limit)
		b, err := Append(nil, rows)
		if err != nil {
			t.Fatal(err)
		}
		b[r.IntN(min(len(b), 64))] ^= 1 << r.IntN(8)
		if checkDecoded(t, b, limit) {
			refused++
		}
	}
	if refused < 100 {
		t.Fatalf("only %d of 300 were refused", refused)
	}
	last, err := Append(nil, roaring.BitmapOf(70_000))
	if err != nil {
		t.Fatal(err)
	}
	for limit, right := range map[uint64]bool{70_000: false, 70_001: true} {
		if _, reason := Check(last, limit); (reason == "") != right {
			t.Errorf("row 70,000 of a segment of %d: %q", limit, reason)
		}
	}
	for _, b := range [][]byte{nil, {0x3a}, {0x3a, 0x30, 0, 0}, {0x3a, 0x30, 0, 0, 255, 255, 255, 255}, {0x3b, 0x30,
		255, 255, 1}} {
		if _, reason := Check(b, limit); reason == "" {
			t.Errorf("% x is accepted", b)
		}
	}
}

// checkDecoded holds what Check accepts to the library's own check.
func checkDecoded(t *testing.T, b []byte, limit uint64) (refused bool) {
	n, reason := Check(b, limit)
	if reason != "" {
		return true
	}
	got, reason := Decode(b, n, limit)
	if reason != "" {
		t.Fatalf("accepted, then: %s", reason)
	}
	if n == 0 && got.IsEmpty() {
		return false
	}
	if err := got.Validate(); err != nil {
		t.Fatalf("% x: %v", b, err)
	}
	if got.GetCardinality() != n || uint64(got.Maximum()) >= limit {
		t.Fatalf("%d rows up to %d, said %d below %d", got.GetCardinality(), got.Maximum(), n, limit)
	}
	if n > 1<<20 {
		return false // few bytes may stand for many rows
	}
	count := uint64(0)
	for it := got.Iterator(); it.HasNext(); count++ {
		it.Next()
	}
	if count != n {
		t.Fatalf("%d rows, said %d", count, n)
	}
	return false
}

func FuzzBitmap(f *testing.F) {
	for seed := range uint64(10) {
		rows, _ := randomRows(rand.New(rand.NewPCG(seed, 3)), 1<<18)
		b, err := Append(nil, rows)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)], uint64(1<<18))
		if len(b) < 4000 {
			f.Add(b, uint64(1000))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, limit uint64) { checkDecoded(t, b, limit%(1<<32)) })
}

// TestClaimedSets: entries that claim sets of half a gigabyte in objects that are small, or missing, allocate nothing
// like it.
func TestClaimedSets(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	s := Store{Blobs: mem}
	const rows = MaxRows
	there := names.NewID(names.TableID{1})
	if err := mem.PutIfAbsent(ctx, there.RowsName(), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []names.ID{there, names.NewID(names.TableID{1})} {
		entry := AppendRef(nil, Ref{Count: 5, object: i, size: MaxBytes(rows), sum: 1})
		d := wire.Decoder{Rest: entry}
		set := DecodeRef(&d, 1, rows, "x")
		if d.Reason != "" {
			t.Fatal(d.Reason)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.Read(ctx, set)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), i.RowsName()) {
			t.Error(err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%d bytes allocated: %v", n, err)
		}
	}
}
