package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/plain"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// usageError is an error of what was asked, not of what was found.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// unlessOfSystem makes an error one of what was asked, if it has no kind of its own and is not the system's.
func unlessOfSystem(err error) error {
	var path *fs.PathError
	var number syscall.Errno
	if errors.As(err, &path) || errors.As(err, &number) {
		return err
	}
	return usageError{err}
}

// readToo adds to the error of a feature that only an overlay has the parameter that reads it.
func readToo(err error) error {
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.Overlay == "" {
		return err
	}
	return fmt.Errorf("%w; add overlay=%q", err, missing.Overlay)
}

// wireError is an error as Python gets it. Kind decides on the exception's class.
type wireError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Object  string `json:"object,omitempty"`
	Feature string `json:"feature,omitempty"`
	Stripe  *int   `json:"stripe,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
}

// kinds are the kinds of errors that errors.py knows, besides "corrupt", "usage" and, the rest, "error".
var kinds = []struct {
	err  error
	kind string
}{
	{format.ErrUnsupported, "unsupported"},
	{storage.ErrNotFound, "not_found"},
	{object.ErrNoBucket, "not_found"},
	{storage.ErrDuplicateSource, "duplicate_source"},
	{storage.ErrConflict, "conflict"},
	{storage.ErrExists, "exists"},
	{context.Canceled, "canceled"},
	{storage.ErrName, "usage"},
}

func wire(err error) *wireError {
	w := &wireError{Kind: "error", Message: plain.Text(err)}
	var corrupt *format.CorruptError
	if errors.As(err, &corrupt) {
		w.Kind, w.Object, w.Feature = "corrupt", corrupt.Object, corrupt.Feature
		if corrupt.Stripe >= 0 {
			w.Stripe = &corrupt.Stripe
		}
		if corrupt.Offset >= 0 {
			w.Offset = &corrupt.Offset
		}
		return w
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			w.Kind = k.kind
			return w
		}
	}
	var usage usageError
	var inexact *reader.InexactError
	if errors.As(err, &usage) || errors.As(err, &inexact) {
		w.Kind = "usage"
	}
	return w
}

// Failure is the answer of a call that failed with err.
func Failure(err error) []byte {
	text, _ := json.Marshal(answer{Error: wire(err)})
	return text
}
