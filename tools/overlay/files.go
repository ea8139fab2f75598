package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// A fileFeature is a feature that the files give, or shall give.
type fileFeature struct {
	catalog.Feature        // Type is widened over the files read so far; Feature.ID is set once all were read
	known           *known // nil: the table has none of the name
	typed           bool   // a file said its type; else that is a placeholder
	firstFile       string // that had it
}

// A known feature is one of the table, or of an overlay that is extended.
type known struct {
	catalog.Feature
	in     string // what has it
	advice string // what to do where it does not hold what is given
}

// A filePart is some rows of a file. Its columns are as the file has them.
type filePart struct {
	rows  int
	first uint64 // number of the first row, counted over all files
	keys  []*vector.Column
	// features and columns are what the part has; a feature that is not there is null in every row.
	features []*fileFeature
	columns  []*vector.Column
	chunk    *source.Chunk // released when columns are not needed any more
}

// columnOverhead is the memory of a column without its values, in bytes.
const columnOverhead = 256

// bytes returns the memory that the part's features hold beyond what is there anyhow.
func (p *filePart) bytes() int64 {
	n := -p.chunk.Lent
	for _, c := range p.columns {
		n += columnOverhead + c.HeldBytes()
	}
	return max(n, 0)
}

// files are the rows to join, and what is known of them.
type files struct {
	opts     *Options
	key      []keyPart
	find     func(ctx context.Context, name string) (*known, error) // of the table
	features []*fileFeature                                         // in the order in which the files have them
	byName   map[string]*fileFeature                                // nil: one that is not taken
	places   []filePlace
	rows     uint64
	bytes    int64 // of the files
	skipped  map[string]bool
}

// A filePlace says where rows come from, those from first on.
type filePlace struct {
	first uint64
	source.Place
}

func newFiles(key []keyPart, opts *Options, find func(context.Context, string) (*known, error)) *files {
	return &files{opts: opts, key: key, find: find, byName: map[string]*fileFeature{}, skipped: map[string]bool{}}
}

// read calls take for all rows, part by part in order, until it returns an error. take owns the part.
func (f *files) read(ctx context.Context, progress func(done, total int64), take func(*filePart) error) error {
	found, err := source.Discover(ctx, f.opts.From, source.Options{
		Format: f.opts.Format, MappingFile: f.opts.MappingFile, DDLFile: f.opts.DDLFile,
		ChunkBytes: f.opts.chunkBytes(), PageBytes: f.opts.pageBytes(),
		Threads: f.opts.Workers, Stdin: f.opts.Stdin, Records: f.opts.Records,
	})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("no file to join: empty ones, and those whose names begin with _ or ., do not count")
	}
	for i := range found {
		f.bytes += max(found[i].Size, 0)
	}
	done := int64(0)
	for i := range found {
		if err := f.readFile(ctx, &found[i], take); err != nil {
			return err
		}
		done += max(found[i].Size, 0)
		progress(done, f.bytes)
	}
	return f.finish()
}

// finish checks what can be known only once all files were read.
func (f *files) finish() error {
	for _, name := range f.opts.Features {
		if f.byName[name] == nil {
			var names []string
			for _, x := range f.features {
				names = append(names, x.Name)
			}
			for n := range f.skipped {
				names = append(names, n)
			}
			sort.Strings(names)
			return fmt.Errorf("no file has a feature %q%s", name, suggest.Hint(name, names))
		}
	}
	if len(f.features) == 0 {
		return errors.New("no file has a feature besides the key")
	}
	return nil
}

func (f *files) readFile(ctx context.Context, file *source.File, take func(*filePart) error) (err error) {
	src, err := file.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	bound := map[*source.Field]*fileFeature{}
	bindAll := func() error {
		for _, x := range src.Fields() {
			if _, err := f.bind(ctx, file.Path, x, bound); err != nil {
				return err
			}
		}
		return nil
	}
	if err := bindAll(); err != nil {
		return err
	}
	for {
		c, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return bindAll()
		}
		if err != nil {
			return err
		}
		if c.Rows == 0 {
			c.Release()
			continue
		}
		p, err := f.part(ctx, file.Path, c, bound)
		if err == nil {
			err = take(p)
		}
		if err != nil {
			c.Release()
			return err
		}
	}
}

// part takes a chunk apart into key and features.
func (f *files) part(ctx context.Context, path string, c *source.Chunk,
	bound map[*source.Field]*fileFeature) (*filePart, error) {
	p := &filePart{rows: c.Rows, first: f.rows, keys: make([]*vector.Column, len(f.key)), chunk: c}
	var there []string
	for i, x := range c.Fields {
		if k := f.keyPart(x.Name); k >= 0 {
			there = append(there, x.Name)
			if x.NoValue {
				continue // null in every row
			}
			if err := f.key[k].fits(path, x.Type, x.Logical); err != nil {
				return nil, err
			}
			p.keys[k] = c.Columns[i]
			continue
		}
		feature, err := f.bind(ctx, path, x, bound)
		if err != nil {
			return nil, err
		}
		if feature != nil && !x.NoValue {
			p.features, p.columns = append(p.features, feature), append(p.columns, c.Columns[i])
		}
	}
	for _, k := range f.key {
		if !slices.Contains(there, k.Name) {
			var names []string
			for _, x := range c.Fields {
				names = append(names, x.Name)
			}
			return nil, fmt.Errorf("%s has no column %q, which is the key%s", path, k.Name, suggest.Hint(k.Name, names))
		}
	}
	c.Fields, c.Columns = nil, nil // those that are not taken need not stay
	f.note(c.Place, f.rows)
	f.rows += uint64(c.Rows)
	return p, nil
}

// note remembers where rows from first on come from.
func (f *files) note(at source.Place, first uint64) {
	at.Line = 0 // rows are told by their number: one may take several lines
	if n := len(f.places); n > 0 {
		last := f.places[n-1]
		if last.File == at.File && last.RowGroup == at.RowGroup && last.Row+int64(first-last.first) == at.Row {
			return
		}
	}
	f.places = append(f.places, filePlace{first, at})
}

// place says where a row is, for messages.
func (f *files) place(row uint64) string {
	i := sort.Search(len(f.places), func(i int) bool { return f.places[i].first > row }) - 1
	p := f.places[i]
	p.Row += int64(row - p.first)
	return p.String()
}

func (f *files) keyPart(name string) int {
	return slices.IndexFunc(f.key, func(k keyPart) bool { return k.Name == name })
}

// bind returns the feature that a field of a file is, after widening it to hold the field's type; nil for the key, and
// for what is not taken.
func (f *files) bind(ctx context.Context, path string, x *source.Field,
	bound map[*source.Field]*fileFeature) (*fileFeature, error) {
	if feature, ok := bound[x]; ok {
		return feature, nil
	}
	if f.keyPart(x.Name) >= 0 {
		return nil, nil
	}
	if len(f.opts.Features) > 0 && !slices.Contains(f.opts.Features, x.Name) {
		f.skipped[x.Name] = true
		bound[x] = nil
		return nil, nil
	}
	feature := f.byName[x.Name]
	if feature == nil {
		k, err := f.find(ctx, x.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		feature = &fileFeature{Feature: catalog.Feature{Name: x.Name, Role: f.opts.Role}, known: k, firstFile: path}
		if k != nil {
			feature.Role = k.Role
		}
		f.features = append(f.features, feature)
		f.byName[x.Name] = feature
	}
	if err := feature.merge(path, x); err != nil {
		return nil, err
	}
	bound[x] = feature
	return feature, nil
}

// merge widens a feature to hold a field of a file. Its rules are those of an ingest.
func (x *fileFeature) merge(path string, f *source.Field) error {
	switch {
	case f.Role == catalog.RoleFeature || f.Role == x.Role:
	case f.Role.IsKey():
		return fmt.Errorf("feature %s is a %v in %s: the features of an overlay are no keys", x.Name, f.Role, path)
	case x.known != nil || x.typed:
		return fmt.Errorf("feature %s is a %v in %s, but was a %v before: a feature keeps its role", x.Name, f.Role,
			path, x.Role)
	default:
		x.Role = f.Role
	}
	if x.typed && f.NoValue {
		return nil
	}
	if !x.typed {
		x.typed = !f.NoValue
		x.Type, x.Logical, x.OriginColumn, x.OriginKey = f.Type, f.Logical, f.OriginColumn, f.OriginKey
		x.firstFile = path
		if f.NoValue {
			if x.known != nil {
				x.Type, x.Logical = x.known.Type, x.known.Logical
			}
			return nil
		}
	} else {
		if f.Logical != x.Logical {
			return fmt.Errorf("feature %s is %s in %s and %s in %s: they do not mix", x.Name,
				source.TypeName(x.Type, x.Logical), x.firstFile, source.TypeName(f.Type, f.Logical), path)
		}
		w, err := vector.Widen(x.Type, f.Type)
		if err != nil {
			return fmt.Errorf("feature %s is %v in %s and %v in %s: no type holds both exactly; rename or drop one "+
				"with a mapping",
				x.Name, x.Type, x.firstFile, f.Type, path)
		}
		x.Type = w
	}
	return x.fitsKnown(path)
}

// fitsKnown returns an error when the known feature of that name cannot hold x.
func (x *fileFeature) fitsKnown(where string) error {
	k := x.known
	if k == nil {
		return nil
	}
	if k.Logical != x.Logical {
		return fmt.Errorf("feature %s is %s in %s and %s in %s: they do not mix; %s", x.Name,
			source.TypeName(k.Type, k.Logical), k.in, source.TypeName(x.Type, x.Logical), where, k.advice)
	}
	if _, err := vector.Widen(k.Type, x.Type); err != nil {
		return fmt.Errorf("feature %s is %v in %s and %v in %s: no type holds both exactly; %s", x.Name, k.Type, k.in,
			x.Type, where, k.advice)
	}
	return nil
}

// canonical appends the keys of a part, or says which is null.
func (f *files) canonical(p *filePart, add func(row int, key []byte) error) error {
	var key []byte
	for row := range p.rows {
		var null int
		if key, null = appendKey(key[:0], p.keys, row); null >= 0 {
			return fmt.Errorf("%s: key %s is null: no row of the table is meant by it", f.place(p.first+uint64(row)),
				f.key[null].Name)
		}
		if err := add(row, key); err != nil {
			return err
		}
	}
	return nil
}

// twice is the error of a key that two rows have.
func (f *files) twice(a, b uint64, key []byte) error {
	if a > b {
		a, b = b, a
	}
	var names []string
	for _, k := range f.key {
		names = append(names, k.Name)
	}
	return fmt.Errorf("key %s %s is in %s and in %s: each key comes once", strings.Join(names, ", "),
		keyText(f.key, key), f.place(a), f.place(b))
}
