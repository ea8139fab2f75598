package execution

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestParallel(t *testing.T) {
	bad := []error{nil, errors.New("the second"), nil, errors.New("the fourth")}
	for limit := range 6 {
		if err := Parallel(4, limit, func(i int) error { return bad[i] }); err != bad[1] {
			t.Errorf("limit %d: of several errors: %v", limit, err)
		}
		var calls atomic.Int64
		if err := Parallel(100, limit, func(int) error { calls.Add(1); return nil }); err != nil ||
			calls.Load() != 100 {
			t.Errorf("limit %d: %d calls, %v", limit, calls.Load(), err)
		}
	}
	if err := Parallel(0, 3, func(int) error { return bad[1] }); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}
