package main

import (
	"testing"
	"time"
)

func TestGarbageGoes(t *testing.T) {
	f := flags{Objects: 3000, Segments: 300, Page: time.Millisecond}
	r, err := f.run(t.Context())
	if err != nil || r.Left > 0 || r.Rate == 0 || r.Pages < 16 {
		t.Errorf("%+v: %v", r, err)
	}
}
