// Package lru keeps values within a bound on their sizes: those used last.
package lru

import (
	"container/list"
	"iter"
)

// A Cache keeps values by key. When their sizes exceed the bound it evicts those that were used longest ago, but never
// the last one that is left. It is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	max     int64
	size    int64
	evicted func(K, V)
	byKey   map[K]*list.Element
	used    *list.List // of *entry[K, V], the last one used in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

// New returns a Cache of about max bytes. evicted, unless nil, is called for each value that leaves it.
func New[K comparable, V any](max int64, evicted func(K, V)) *Cache[K, V] {
	return &Cache[K, V]{max: max, evicted: evicted, byKey: map[K]*list.Element{}, used: list.New()}
}

// Max returns the bound.
func (c *Cache[K, V]) Max() int64 { return c.max }

// Size returns the sizes of all values, added up.
func (c *Cache[K, V]) Size() int64 { return c.size }

// Get returns the value of a key, and makes it the one used last.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	e := c.byKey[key]
	if e == nil {
		return value, false
	}
	c.used.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Put keeps a value under a key that has none.
func (c *Cache[K, V]) Put(key K, value V, size int64) {
	c.byKey[key] = c.used.PushFront(&entry[K, V]{key, value, size})
	c.size += size
	for c.size > c.max && c.used.Len() > 1 {
		c.remove(c.used.Back())
	}
}

// Has reports whether there is a value of a key, without using it.
func (c *Cache[K, V]) Has(key K) bool { return c.byKey[key] != nil }

// Oldest returns the key of the value that was used longest ago; false: there is none.
func (c *Cache[K, V]) Oldest() (key K, ok bool) {
	e := c.used.Back()
	if e == nil {
		return key, false
	}
	return e.Value.(*entry[K, V]).key, true
}

// Remove evicts the value of a key, where there is one.
func (c *Cache[K, V]) Remove(key K) {
	if e := c.byKey[key]; e != nil {
		c.remove(e)
	}
}

// Clear evicts everything.
func (c *Cache[K, V]) Clear() {
	for c.used.Len() > 0 {
		c.remove(c.used.Back())
	}
}

// All yields the values, the last one used first. The Cache must not change meanwhile.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := c.used.Front(); e != nil; e = e.Next() {
			if x := e.Value.(*entry[K, V]); !yield(x.key, x.value) {
				return
			}
		}
	}
}

func (c *Cache[K, V]) remove(e *list.Element) {
	x := c.used.Remove(e).(*entry[K, V])
	delete(c.byKey, x.key)
	c.size -= x.size
	if c.evicted != nil {
		c.evicted(x.key, x.value)
	}
}
