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
	"github.com/dsistore/dsistore/storage/object"
)

// listings are the commands of dsi that list what there is of a kind.
var listings = map[string]string{
	"table": "tables", "feature": "features", "overlay": "overlay list", "sample list": "samples list",
	"branch": "branch list", "snapshot": "snapshots", "lease": "leases", "lease of": "leases",
}

// A Place is what a command works on.
type Place struct {
	Store string
	Endpoint
	Table string // perhaps with a branch; empty: none, or any of several
}

// Typed returns the place as a person types it behind the name of another command: STORE TABLE --endpoint-url URL, of
// which only the store must be there.
func (p Place) Typed() string {
	text := ShellWord(p.Store)
	if p.Table != "" {
		text += " " + ShellWord(p.Table)
	}
	if object.OptionsFor(p.Store, p.StorageOptions()) != nil { // else it is that of an ingest's sources
		text += " --endpoint-url " + ShellWord(p.EndpointURL)
	}
	return text
}

// Look adds to the error of a name that does not exist, and to which none is close, the command that lists those that
// do; and to that of a directory that does not exist, others with such a name, or that it may be a mistyped command
// (near, or nil); and to that of damage, the command that finds all of it.
func Look(err error, at Place, near error) error {
	if errors.Is(err, storage.ErrNoStore) {
		if _, serr := os.Stat(at.Store); errors.Is(serr, fs.ErrNotExist) {
			if near != nil {
				return fmt.Errorf("%w, and %w", err, near)
			}
			err = fmt.Errorf("%w%s", err, suggest.Question(plain.Near(at.Store)))
		}
		return err
	}
	table, _, _ := strings.Cut(at.Table, "@")
	if errors.Is(err, format.ErrCorrupt) && !errors.Is(err, ErrDamage) {
		at.Table = "" // what is damaged may be of several
		return fmt.Errorf("%w; dsi verify %s --deep finds all that is damaged", err, at.Typed())
	}
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.Overlay != "" || len(missing.Close) > 0 && !missing.Dropped ||
		listings[missing.Kind] == "" {
		return err
	}
	switch at.Table = table; {
	case missing.Kind == "table":
		at.Table = ""
	case table == "": // it may be any of several
		return err
	}
	if missing.Dropped {
		return fmt.Errorf("%w; dsi features restore %s %s takes that back", err, at.Typed(), ShellWord(missing.Name))
	}
	return fmt.Errorf("%w; dsi %s %s lists what there is", err, listings[missing.Kind], at.Typed())
}

// ReadToo adds to the error of a feature that only an overlay has the flag, of a command that has one, which reads it.
func ReadToo(err error, flag string) error {
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.Overlay == "" {
		return err
	}
	return fmt.Errorf("%w; add %s %s", err, flag, ShellWord(missing.Overlay))
}
