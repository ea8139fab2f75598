package ingest

import (
	"context"
	"errors"
	"slices"

	"github.com/dsistore/dsistore/tools/ingest/source"
)

// readAgain empties what was read, and returns true, where files that were left out since it began have a say in the
// types of the others: a file that is cut short shall not make floats of ids. Then the dump is read once more, without
// them.
func (e *engine) readAgain(ctx context.Context) (bool, error) {
	leftOut, n := map[string]bool{}, 0
	for i, f := range e.fileOf {
		if f.dropped {
			leftOut[e.files[i].Path] = true
			n++
		}
	}
	if n == e.toldOf || n == len(e.files) || !e.misled() {
		return false, nil
	}
	e.toldOf = n
	if e.rediscover == nil || slices.ContainsFunc(e.files, func(f source.File) bool { return f.Size < 0 }) {
		e.report.WidenedByBadFiles = e.schema.widenedByLeftOut()
		return false, nil
	}
	files, err := e.rediscover(ctx, leftOut)
	if err != nil {
		return false, err
	}
	if !slices.EqualFunc(files, e.files, func(a, b source.File) bool { return a.Path == b.Path && a.Size == b.Size }) {
		return false, errors.New("the files changed while they were read: ingest them when nobody writes them")
	}
	e.sorter.Close()
	e.files = files
	e.begin()
	e.parts, e.partOf = nil, map[string]uint32{}
	e.report.BytesRaw, e.report.Inferred = 0, nil
	for i := range e.fileOf {
		e.fileOf[i] = fileState{dropped: e.fileOf[i].dropped, apart: e.fileOf[i].apart}
	}
	return true, e.bad.forgetRows()
}

// misled reports whether files that are left out had a say in the types of others: by their own types, or because
// types were inferred from the values of all.
func (e *engine) misled() bool {
	if len(e.schema.widenedByLeftOut()) > 0 {
		return true
	}
	for _, inferred := range e.report.Inferred {
		some, kept := false, false
		for i, f := range e.fileOf {
			if e.files[i].Format == inferred.Format {
				some, kept = some || f.dropped && !f.apart, kept || !f.dropped
			}
		}
		if some && kept {
			return true
		}
	}
	return false
}
