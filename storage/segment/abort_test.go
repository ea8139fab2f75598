package segment

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// unreachable answers no deletion.
type unreachable struct{ object.Store }

func (unreachable) Delete(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestAbortEnds: a segment whose service does not answer is left to gc within a minute, however many objects it has.
func TestAbortEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStore(unreachable{object.NewMemory()}, format.Limits{}, 0)
		w, err := s.NewWriter(t.Context(), names.TableID{1}, nil, []uint32{1}, Options{StandAloneBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			name := fmt.Sprint("f", i)
			f := catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name, Type: int64Type}
			err := w.AddFeature(t.Context(), i, f, func(w *format.Writer) error {
				c := vector.NewColumn(int64Type)
				c.Ints = append(c.Ints, 1)
				c.AddSlot()
				return w.WriteStripe(c)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		w.Abort()
		if took := time.Since(begin); took == 0 || took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}
