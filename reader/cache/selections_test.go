package cache

import (
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// Selections forget what was used longest ago.
func TestSelectionsAreBounded(t *testing.T) {
	key := func(i int) Key { return Key{Segment: fmt.Sprint(i)} }
	s := NewSelections(3 * (selectionOverhead + 200))
	for i := range 3 {
		s.Put(key(i), roaring.BitmapOf(uint32(i)))
	}
	s.Put(key(0), nil) // as another goroutine does: the first stands
	if b, ok := s.Get(key(0)); !ok || !b.Contains(0) {
		t.Fatal("the first is not kept")
	}
	for i := 3; i < 50; i++ {
		s.Get(key(0))
		s.Put(key(i), roaring.BitmapOf(uint32(i)))
	}
	if _, ok := s.Get(key(0)); !ok || s.kept.Size() > s.max {
		t.Fatalf("%d bytes of %d", s.kept.Size(), s.max)
	}
	if _, ok := s.Get(key(1)); ok {
		t.Fatal("what was used longest ago is kept")
	}
	large := roaring.New()
	for i := range uint32(1000) {
		large.Add(i << 20)
	}
	s.Put(key(99), large)
	if _, ok := s.Get(key(99)); ok || s.kept.Size() == 0 {
		t.Fatal("one that is larger than the bound is kept, or all others went for it")
	}
}
