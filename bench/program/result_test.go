package program

import (
	"encoding/json"
	"os"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := Median(c.in); got != c.want {
			t.Errorf("median of %v is %v; want %v", c.in, got, c.want)
		}
	}
}

func TestWriteNamesTheMachine(t *testing.T) {
	dir := t.TempDir()
	if _, err := Write(dir, "x", map[string]int{"n": 2}); err != nil {
		t.Fatal(err)
	}
	path, err := Write(dir, "x", map[string]int{"n": 1})
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadDir(dir); err != nil || len(kept) != 1 {
		t.Errorf("two results of a program lie in %v, %v; want one file", kept, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine Machine
		Result  map[string]int
	}
	if err := json.Unmarshal(data, &got); err != nil || got.Machine.Cores < 1 || got.Result["n"] != 1 {
		t.Errorf("wrote %s, %v", data, err)
	}
}
