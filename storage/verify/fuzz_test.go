package verify

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// FuzzRowEntries: what an entry of the listing may say of deletes, layers, lists and branches is refused or understood,
// and what is understood is written as it is read.
func FuzzRowEntries(f *testing.F) {
	segment := names.RandomID()
	d := catalog.SegmentDescriptor{ID: segment.String(), Rows: 100, Bytes: 20, Index: segment.IndexName(),
		IndexSize: 10}
	feature := catalog.Feature{ID: catalog.NewFeatureID("x", 0), Name: "x", Type: vector.Type{Kind: vector.Dense,
		Elem: vector.Int64}}
	var set, inObject bitmap.Ref
	for ref, inline := range map[*bitmap.Ref]int{&set: bitmap.MaxInline, &inObject: 0} {
		store := bitmap.Store{Blobs: object.NewMemory(), InlineBytes: inline}
		var err error
		if *ref, err = store.Put(f.Context(), segment.String(), d.Rows, roaring.BitmapOf(1, 5)); err != nil {
			f.Fatal(err)
		}
		ref.Since = 3
	}
	f.Add(catalog.DeletesKey(segment), bitmap.AppendEntry(nil, set))
	f.Add(catalog.DeletesKey(segment), bitmap.AppendEntry(nil, inObject))
	f.Add(append(catalog.ListRowsPrefix("clicks"), segment[:]...), bitmap.AppendEntry(nil, inObject))
	f.Add(append(catalog.OverlaySegmentPrefix(7), segment[:]...), catalog.AppendOverlaySegment(nil,
		catalog.OverlaySegment{Data: d, All: true, Since: 4}))
	f.Add(append(catalog.OverlaySegmentPrefix(7), segment[:]...), catalog.AppendOverlaySegment(nil,
		catalog.OverlaySegment{Data: d, Covered: set, Since: 4}))
	f.Add(catalog.OverlayKey("o"), catalog.AppendOverlay(nil, catalog.Overlay{Name: "o",
		Features: []catalog.Feature{feature}}))
	f.Add(catalog.ListKey("clicks"), catalog.AppendList(nil, catalog.SampleList{Name: "clicks",
		Definition: "a > 1", Added: 9}))
	f.Add(catalog.BranchKey("b"), catalog.AppendBranch(nil, catalog.Branch{Name: "b", Snapshot: 3,
		Overlays: []catalog.Pin{{Name: "o", Snapshot: 2}}, List: catalog.Pin{Name: "l",
			Snapshot: 1}, Owner: "x", Added: 4}))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) == 0 || entryChecks[lsm.Listing][key[0]].key == nil || checkEntry("o", lsm.Listing, key,
			value) != "" {
			return
		}
		var again []byte
		name := string(key[1:])
		switch key[0] {
		case catalog.DeletesSpace, catalog.ListRowsSpace:
			r, _ := bitmap.DecodeEntry(value, bitmap.MaxRows, "o")
			again = bitmap.AppendEntry(nil, r)
		case catalog.OverlaySegmentSpace:
			l, _ := catalog.ParseOverlaySegment(key, value, "o")
			again = catalog.AppendOverlaySegment(nil, l)
		case catalog.OverlaySpace:
			o, _ := catalog.DecodeOverlay(name, value)
			again = catalog.AppendOverlay(nil, o)
		case catalog.ListSpace:
			l, _ := catalog.DecodeList(name, value)
			again = catalog.AppendList(nil, l)
		case catalog.BranchSpace:
			b, _ := catalog.DecodeBranch(name, value)
			again = catalog.AppendBranch(nil, b)
		default:
			return
		}
		if reason := checkEntry("o", lsm.Listing, key, again); reason != "" {
			t.Fatalf("what was understood is not when it is written again: %s", reason)
		}
		if len(again) > len(value) {
			t.Fatalf("% x is written again as % x", value, again)
		}
	})
}
