package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse([]byte("goos: linux\nBenchmarkUnpack/width17 \t 123\t 456 ns/op\t 7800.5 MB/s\t 17.00 bits/value\t " +
		"0.9 ns/value\nBenchmarkOther 1 2 ns/op\nPASS\n"))
	if want := []line{{name: "Unpack/width17", ns: 0.9, mb: 7800.5, bits: 17}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPackages: each package has a benchmark that the default of --only matches. One that moves away is not left out of
// the tables without a word.
func TestPackages(t *testing.T) {
	only, _ := reflect.TypeFor[flags]().FieldByName("Only")
	benchmark := regexp.MustCompile(`(?m)^func Benchmark(` + only.Tag.Get("default") + `)`)
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join("..", "..", p, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || benchmark.Match(text)
		}
		if !found {
			t.Errorf("%s has no benchmark that %s matches", p, benchmark)
		}
	}
}

func TestGigahertz(t *testing.T) {
	if g := gigahertz(); g <= 0 {
		t.Errorf("%v GHz", g)
	}
}
