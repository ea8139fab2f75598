package memory

import "testing"

func TestBytePool(t *testing.T) {
	p := BytePool{Max: 1 << 14}
	a := p.Get(5000)
	if len(a) != 5000 || cap(a) != 5120 {
		t.Fatalf("%d of %d", len(a), cap(a))
	}
	p.Put(a)
	if b := p.Get(5120); &b[0] != &a[0] {
		t.Fatal("the buffer is not used again")
	}
	for range 4 {
		p.Put(make([]byte, 0, 8192))
	}
	if p.idle != 1<<14 {
		t.Fatalf("keeps %d bytes", p.idle)
	}
}

func TestSizeClasses(t *testing.T) {
	for n := 1; n < 1<<18; n++ {
		if c := classOf(n); classSize(c) < n || c > 0 && classSize(c-1) >= n {
			t.Fatalf("%d bytes in class %d of %d", n, c, classSize(c))
		}
	}
	for c := range 150 {
		if classOf(classSize(c)) != c {
			t.Fatalf("class %d of %d bytes is not its own", c, classSize(c))
		}
	}
}
