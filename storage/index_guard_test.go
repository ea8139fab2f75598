package storage

import (
	"errors"
	"runtime"
	"testing"
)

// TestGuardLetsDefectsThrough: a panic of the runtime is a defect, and no damage of the database, which a rebuild would mend.
func TestGuardLetsDefectsThrough(t *testing.T) {
	x := &Index{dir: "here", log: &fatalLog{}}
	if err := x.guard(func() error { panic(errors.New("the disk is full")) }); err == nil {
		t.Error("an error of the disk was lost")
	}
	defer func() {
		if _, ok := recover().(runtime.Error); !ok {
			t.Error("the panic did not go on")
		}
	}()
	err := x.guard(func() error {
		var none []int
		_ = none[len(x.dir)]
		return nil
	})
	t.Errorf("a defect became %v", err)
}
