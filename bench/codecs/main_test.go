package main

import (
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse([]byte("goos: linux\nBenchmarkUnpack/width17 \t 123\t 456 ns/op\t 7800.5 MB/s\t 17.00 bits/value\t " +
		"0.9 ns/value\nBenchmarkOther 1 2 ns/op\nPASS\n"))
	if want := []line{{name: "Unpack/width17", ns: 0.9, mb: 7800.5, bits: 17}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestGigahertz(t *testing.T) {
	if g := gigahertz(); g <= 0 {
		t.Errorf("%v GHz", g)
	}
}
