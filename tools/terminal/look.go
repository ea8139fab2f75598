package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/plain"
	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// listings are the commands of dsi that list what there is of a kind.
var listings = map[string]string{
	"table": "tables", "feature": "features", "overlay": "overlay list", "sample list": "samples list",
	"branch": "branch list", "snapshot": "snapshots", "lease": "leases", "lease of": "leases",
}

// Look adds to the error of a name that does not exist, and to which none is close, the command that lists those that
// do; and to that of a directory that does not exist, others with such a name, or that it may be a mistyped command
// (near, or nil); and to that of damage, the command that finds all of it. table may name a branch.
func Look(err error, store, table string, near error) error {
	if errors.Is(err, storage.ErrNoStore) {
		if _, serr := os.Stat(store); errors.Is(serr, fs.ErrNotExist) {
			if near != nil {
				return fmt.Errorf("%w, and %w", err, near)
			}
			err = fmt.Errorf("%w%s", err, suggest.Question(plain.Near(store)))
		}
		return err
	}
	if errors.Is(err, format.ErrCorrupt) && !errors.Is(err, ErrDamage) {
		return fmt.Errorf("%w; dsi verify %s finds all that is damaged", err, ShellWord(store))
	}
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.Overlay != "" || len(missing.Close) > 0 && !missing.Dropped ||
		listings[missing.Kind] == "" {
		return err
	}
	at := " " + ShellWord(store)
	table, _, _ = strings.Cut(table, "@")
	switch {
	case missing.Kind == "table":
	case table == "": // it may be any of several
		return err
	default:
		at += " " + ShellWord(table)
	}
	if missing.Dropped {
		return fmt.Errorf("%w; dsi features restore%s %s takes that back", err, at, ShellWord(missing.Name))
	}
	return fmt.Errorf("%w; dsi %s%s lists what there is", err, listings[missing.Kind], at)
}

// ReadToo adds to the error of a feature that only an overlay has the flag, of a command that has one, which reads it.
func ReadToo(err error, flag string) error {
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.Overlay == "" {
		return err
	}
	return fmt.Errorf("%w; add %s %s", err, flag, ShellWord(missing.Overlay))
}
