package format_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// specDecoder runs testdata/spec_decoder.py, which was written from SPEC.md and encoding/SPEC.md alone, and returns
// what it prints. The test is skipped where Python or every one of its zstd bindings is missing.
func specDecoder(t *testing.T, args ...string) string {
	t.Helper()
	python, err := exec.LookPath(cmp.Or(os.Getenv("DSISTORE_PYTHON"), "python3"))
	if err != nil {
		t.Skipf("no Python: %v", err)
	}
	var out, complaint bytes.Buffer
	cmd := exec.Command(python, append([]string{"testdata/spec_decoder.py"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 77 {
			t.Skipf("%s has no zstd", python)
		}
		t.Fatalf("spec_decoder.py %v: %v\n%s", args, err, complaint.Bytes())
	}
	return out.String()
}

// The decoder that was written from the specification reads the golden files as they were meant, and they have every
// kind of stream.
func TestSpecGolden(t *testing.T) {
	paths, err := filepath.Glob(goldenDir + "/*.dsf")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--codecs"}
	want := ""
	for _, path := range paths {
		args = append(args, path)
		text, err := os.ReadFile(strings.TrimSuffix(path, ".dsf") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if line, _, _ := strings.Cut(string(text), "\n"); !strings.Contains(line, "group 0,") {
			args = append(args, "--group", goldenDir+"/group_inverse.dsf")
		}
		want += string(text)
	}
	got := specDecoder(t, args...)
	rest, ok := strings.CutPrefix(got, want)
	if !ok {
		t.Fatal(firstDifference(got, want))
	}
	for k := format.Presence; k <= format.Starts; k++ {
		if !strings.Contains(rest, "stream "+k.String()+"\n") {
			t.Errorf("no golden file has a stream of %v", k)
		}
	}
}

// Both decoders read new files of all types and shapes alike, one by one and in a pack.
func TestSpecRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	var args []string
	want, packed := "", ""
	var pack bytes.Buffer
	w, err := format.NewPackWriter(&pack)
	if err != nil {
		t.Fatal(err)
	}
	types := []vector.Type{{Kind: vector.Bytes}, {Kind: vector.String}, {Kind: vector.Inverse},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, {Kind: vector.Weighted,
			Elem: vector.Uint64, Score: vector.Float64}}
	for _, e := range vectortest.Elems {
		types = append(types, dense(e), sparse(e), vector.Type{Kind: vector.Embedding, Elem: e, Dim: 3})
	}
	for i, ty := range types {
		opts := format.WriterOptions{Feature: uint64(i + 1), Salt: rng.Uint32(), Name: "x"}
		text := fmt.Sprintf("feature %d %q, group 0, ", opts.Feature, opts.Name)
		var stripes []*vector.Column
		var shapes []shape
		body := ""
		for k := range 3 {
			s := shape{
				rows:      []int{1, 300, 600, 1500}[rng.IntN(4)],
				null:      []int{0, 0, 2, 50, 98}[rng.IntN(5)],
				empty:     []int{0, 10, 100}[rng.IntN(3)],
				inverse:   (i + k) % 7,
				partial:   ty.IsList() && rng.IntN(3) == 0,
				maxLength: 3,
				extremes:  rng.IntN(2) == 0,
				constant:  rng.IntN(8) == 0,
				style:     []string{"", "zipf"}[rng.IntN(2)],
			}
			if ty.Kind == vector.Inverse {
				s.null = 0 // an inverse file has no values to be null
			}
			c := makeColumn(rng, ty, s)
			stripes, shapes = append(stripes, c), append(shapes, s)
			body += columnText(fmt.Sprintf("stripe %d", k), c)
		}
		text += fmt.Sprintf("%d rows\n%s", rowsOf(shapes), body)
		file, _ := writeFile(t, ty, opts, stripes...)
		if _, err := w.Add(opts.Feature, file); err != nil {
			t.Fatal(err)
		}
		packed += text
		path := filepath.Join(dir, fmt.Sprintf("%d.dsf", i))
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
		want += text
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "pack")
	if err := os.WriteFile(path, pack.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := specDecoder(t, append(args, path)...); got != want+packed {
		t.Fatal(firstDifference(got, want+packed))
	}
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	title := ""
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("%s\nline %d is %.200s\nwant %.200s", title, i, g[i], w[i])
		}
		if strings.HasPrefix(g[i], "feature ") {
			title = g[i]
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
