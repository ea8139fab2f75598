package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"syscall"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
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

// wireError is an error as Python gets it. Kind decides on the exception's class.
type wireError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Object  string `json:"object,omitempty"`
	Feature string `json:"feature,omitempty"`
	Stripe  *int   `json:"stripe,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
}

// wire sorts an error into one of the kinds that errors.py knows.
func wire(err error) *wireError {
	w := &wireError{Kind: "error", Message: err.Error()}
	var corrupt *format.CorruptError
	var usage usageError
	var inexact *reader.InexactError
	switch {
	case errors.As(err, &corrupt):
		w.Kind, w.Object, w.Feature = "corrupt", corrupt.Object, corrupt.Feature
		if corrupt.Stripe >= 0 {
			w.Stripe = &corrupt.Stripe
		}
		if corrupt.Offset >= 0 {
			w.Offset = &corrupt.Offset
		}
	case errors.Is(err, format.ErrUnsupported):
		w.Kind = "unsupported"
	case errors.Is(err, storage.ErrNotFound):
		w.Kind = "not_found"
	case errors.Is(err, storage.ErrDuplicateSource):
		w.Kind = "duplicate_source"
	case errors.Is(err, storage.ErrConflict):
		w.Kind = "conflict"
	case errors.Is(err, storage.ErrExists):
		w.Kind = "exists"
	case errors.Is(err, context.Canceled):
		w.Kind = "canceled"
	case errors.As(err, &usage), errors.As(err, &inexact), errors.Is(err, storage.ErrName):
		w.Kind = "usage"
	}
	return w
}

// Failure is an answer of Call that says err.
func Failure(err error) []byte {
	text, _ := json.Marshal(answer{Error: wire(err)})
	return text
}

// strict reads JSON that has no other fields than into's.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
