package text

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A family is files that go together: each shares a column with another one of them.
type family struct {
	shown
	index int // in families.all
	paths []string
	known bool // some column is the table's, or of the mapping file
}

// families are the families of a dump. A directory of a table's files may have a README.txt, or another table's file.
type families struct {
	mapped func(name string) (rename string, ok bool) // in the mapping file
	known  func(name string) catalog.Feature
	all    []*family // those without paths have become part of others
	of     map[string]*family
	bare   shown // what files without columns show
}

func newFamilies(t *inference) *families {
	mapped := func(name string) (string, bool) {
		m := t.d.Mapping.Columns[name]
		if m == nil {
			return "", false
		}
		return m.Rename, true
	}
	return &families{mapped: mapped, known: t.known(), of: map[string]*family{},
		bare: shown{columns: map[string]*textValues{}}}
}

// add adds a file, and makes one family of those that it shares columns with.
func (f *families) add(path string, s *shown) {
	if len(s.order) == 0 {
		f.bare.merge(s)
		return
	}
	names := make([]string, 0, len(s.order)+1)
	for _, name := range s.order {
		known := f.known(name).Name != ""
		if rename, ok := f.mapped(name); ok {
			known, name = true, cmp.Or(rename, name)
		}
		if known {
			names = append(names, "") // what all known ones have in common
		}
		names = append(names, name)
	}
	var joined []*family // in the order of their first files
	for _, name := range names {
		if x := f.of[name]; x != nil && !slices.Contains(joined, x) {
			joined = append(joined, x)
		}
	}
	slices.SortFunc(joined, func(a, b *family) int { return cmp.Compare(a.index, b.index) })
	if len(joined) == 0 {
		joined = append(joined, &family{index: len(f.all), shown: shown{columns: map[string]*textValues{}}})
		f.all = append(f.all, joined[0])
	}
	into := joined[0]
	into.known = into.known || slices.Contains(names, "")
	for _, x := range joined[1:] {
		into.merge(&x.shown)
		into.paths, into.known = append(into.paths, x.paths...), into.known || x.known
		for name, of := range f.of {
			if of == x {
				f.of[name] = into
			}
		}
		x.paths, x.known = nil, false
	}
	into.merge(s)
	into.paths = append(into.paths, path)
	for _, name := range names {
		f.of[name] = into
	}
}

// table returns what the files of the table show, and why the others are left out. The table's are those that have
// something known, else several columns. If that is true of two families, all of both are left out.
func (f *families) table() (*shown, map[string]error) {
	faults := map[string]error{}
	if len(f.all) == 0 {
		return &f.bare, faults
	}
	best := slices.MaxFunc(f.all, func(a, b *family) int { // the first of equal ones
		if a.known != b.known {
			if a.known {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(min(len(a.order), 2), min(len(b.order), 2)), cmp.Compare(a.rows, b.rows))
	})
	refuse := func(x, other *family) {
		for _, path := range x.paths {
			faults[path] = column.Apart(path, column.Refuse("", "it has no column of %s: files of one table are "+
				"ingested together, others into tables of their own", other.paths[0]))
		}
	}
	for _, x := range f.all {
		if x == best || len(x.paths) == 0 {
			continue
		}
		refuse(x, best)
		if x.known == best.known && min(len(x.order), 2) == min(len(best.order), 2) { // either may be the table's
			refuse(best, x)
		}
	}
	if f.bare.files > 0 {
		best.merge(&f.bare)
	}
	return &best.shown, faults
}
