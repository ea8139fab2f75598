package lru_test

import (
	"maps"
	"testing"

	"github.com/dsistore/dsistore/internal/lru"
)

func TestCache(t *testing.T) {
	var evicted []string
	c := lru.New(10, func(key string, value int) { evicted = append(evicted, key) })
	keys := func() (out string) {
		for k := range c.All() {
			out += k
		}
		return out
	}
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	if v, ok := c.Get("a"); !ok || v != 1 {
		t.Fatalf("a: %d, %v", v, ok)
	}
	if key, ok := c.Oldest(); !ok || key != "b" {
		t.Fatalf("the oldest is %q, %v", key, ok)
	}
	c.Put("c", 3, 4) // b was used longest ago
	if got := keys(); got != "ca" || c.Size() != 8 {
		t.Fatalf("kept %q of %d bytes: want ca, 8", got, c.Size())
	}
	if _, ok := c.Get("b"); ok {
		t.Fatal("b is kept")
	}
	c.Put("d", 4, 100) // more than the bound: the last one stays
	if got := keys(); got != "d" || c.Size() != 100 {
		t.Fatalf("kept %q of %d bytes: want d, 100", got, c.Size())
	}
	c.Remove("d")
	c.Remove("d")
	c.Put("e", 5, 1)
	c.Clear()
	if key, ok := c.Oldest(); ok {
		t.Fatalf("%q is the oldest of none", key)
	}
	if got := maps.Collect(c.All()); len(got) != 0 || c.Size() != 0 {
		t.Fatalf("kept %v of %d bytes", got, c.Size())
	}
	if got := len(evicted); got != 5 {
		t.Fatalf("%d were evicted, %v: want 5", got, evicted)
	}
}
