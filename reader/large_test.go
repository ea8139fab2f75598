package reader

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// A batch whose lists have more values than offsets count is an error that says so, before memory is taken for them;
// what is small as slots, or as partial duplicates, is given.
func TestListsTooLarge(t *testing.T) {
	const values = 100_000
	const rows = 3 * vector.MaxElements / 2 / values // in two stripes, each below the limit
	one := value{numbers: make([]number64, values)}
	shared := writtenTable(t, vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, [][]value{{one}, {one}},
		[][]int32{make([]int32, rows/2), make([]int32, rows/2)})
	for _, c := range []struct {
		dedup Dedup
		ok    bool
	}{{DedupKJT, false}, {DedupIKJT, true}, {DedupPartial, true}} {
		for _, output := range []Output{OutputColumns, OutputTensors} {
			t.Run(fmt.Sprintf("%v/%v", c.dedup, output), func(t *testing.T) {
				s := open(t, shared.dedupLayout([]int{0}, rows, output, c.dedup), Options{})
				defer s.Close()
				for range 2 {
					b, err := s.Next(t.Context())
					if !c.ok {
						if err == nil || !strings.Contains(err.Error(), `feature "f"`) ||
							!strings.Contains(err.Error(), "is too large") {
							t.Fatal(err)
						}
						continue // the same again
					}
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					if b.Slots != 2 {
						t.Errorf("%d slots", b.Slots)
					}
					if output == OutputTensors {
						if err := b.Tensors.Expand(new(Jagged), &b.Tensors.Sparse); err == nil ||
							!strings.Contains(err.Error(), "more than") {
							t.Error(err)
						}
					}
					b.Release()
				}
			})
		}
	}
}
