package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage"
)

func TestTexts(t *testing.T) {
	counts := map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"}
	for n, want := range counts {
		if got := Count(n); got != want {
			t.Errorf("%d prints as %q, want %q", n, got, want)
		}
	}
	if got, want := OneLine(" a\nb\x1b[31m\u009bc\t"), "a b?[31m?c"; got != want {
		t.Errorf("printed as %q, want %q", got, want)
	}
}

// TestCodes: an error gives the code that it stands for, however deep it lies, and one line.
func TestCodes(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	tests := []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, ExitDone}, {t.Context(), errors.New("x"), ExitFailed}, {t.Context(), Usagef("x"), ExitUsage},
		{t.Context(), fmt.Errorf("a: %w", ErrDamage), ExitDamage},
		{t.Context(), fmt.Errorf("a: %w", storage.ErrConflict), ExitConflict},
		{t.Context(), fmt.Errorf("a: %w", fs.ErrNotExist), ExitNotFound}, {stopped, errors.New("x"), ExitInterrupted},
	}
	for _, test := range tests {
		var out strings.Builder
		if code := report(test.ctx, "dsi", &out, test.err); code != test.want {
			t.Errorf("%v exits with %d, want %d", test.err, code, test.want)
		}
		if test.err != nil && (!strings.HasPrefix(out.String(), "dsi: ") || strings.Count(out.String(), "\n") != 1) {
			t.Errorf("%v is printed as %q, want one line of dsi", test.err, out.String())
		}
	}
}

// TestCSV: what people would have to quote is quoted.
func TestCSV(t *testing.T) {
	var out strings.Builder
	if err := CSV(&out, []string{"a", "b"}, [][]string{{"x, y", `say "z"`}, {"", "1"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a,b\n\"x, y\",\"say \"\"z\"\"\"\n,1\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
