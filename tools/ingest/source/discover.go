package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/internal/processors"
	"github.com/dsistore/dsistore/storage/catalog"
	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/lakehouse"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
	"github.com/dsistore/dsistore/tools/ingest/source/stream"
	"golang.org/x/sync/errgroup"
)

// Discover lists the files that the paths ("-" is stdin) hold, in a deterministic order: that of the paths, and of the
// names below each. Directories are read as Hive lays them out: "key=value" names partitions, names that begin with _
// or . are skipped, and so are empty files. A path may be a URI of an object store: see package files. The mapping and
// DDL files of opts are read. What is opened later lives under the context of its Open.
func Discover(ctx context.Context, paths []string, opts Options) ([]File, error) {
	opts.Limits = opts.Limits.WithDefaults()
	if opts.ChunkBytes <= 0 {
		opts.ChunkBytes = defaultChunkBytes
	}
	if opts.PageBytes <= 0 {
		opts.PageBytes = defaultPageBytes
	}
	if opts.Threads <= 0 {
		opts.Threads = processors.Workers()
	}
	if opts.Stdin == nil {
		opts.Stdin = os.Stdin
	}
	if opts.Format == "" {
		opts.Format = "auto"
	}
	f := formatNamed(opts.Format)
	if f == nil {
		return nil, fmt.Errorf("format %q: want one of %s", opts.Format, strings.Join(formatNames(), ", "))
	}
	if len(paths) == 0 {
		return nil, errors.New("no source given: name files or directories, or - for stdin")
	}
	d := &discovery{opts: &opts, format: f, system: files.NewSystem(opts.StorageOptions, opts.TempDir)}
	d.above.In = d.system
	d.Known, d.Inferred, d.LeftOut, d.Lenient = opts.Known, opts.Inferred, opts.LeftOut, opts.OnBadRow != nil
	d.ReadOptions = column.ReadOptions{Limits: opts.Limits, ChunkBytes: opts.ChunkBytes, PageBytes: opts.PageBytes,
		Threads: opts.Threads}
	var err error
	if d.Mapping, err = mapping.Read(opts.MappingFile); err != nil {
		return nil, err
	}
	if opts.DDLFile != "" {
		if d.Ddl, err = hive.ReadTable(opts.DDLFile, &opts.Limits); err != nil {
			return nil, err
		}
	}
	for _, p := range paths {
		if err := d.path(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := d.tellFormats(ctx); err != nil {
		return nil, err
	}
	if err := d.unifyPartitions(); err != nil {
		return nil, err
	}
	for _, f := range d.files {
		d.Inputs = append(d.Inputs, input.File{Path: f.Path, Size: f.Size, Format: f.Format, From: d.system})
	}
	d.openers, d.timestamps = map[string]input.Opener{}, &timestampUnits{d: d}
	for _, f := range formats {
		if f.Begin != nil {
			d.openers[f.Name] = f.Begin(&d.Set)
		}
	}
	for i := range d.files {
		d.bindFile(&d.files[i])
	}
	return d.files, nil
}

// A discovery lists the files of a dump and opens them.
type discovery struct {
	input.Set
	opts       *Options
	format     *input.Format // that the caller asked for
	system     *files.System
	files      []File
	stdin      bool
	above      lakehouse.Ancestors
	openers    map[string]input.Opener // by the name of the format
	timestamps *timestampUnits
}

func (d *discovery) path(ctx context.Context, p string) error {
	if p == "-" {
		if d.stdin {
			return errors.New("- given twice: stdin can be read once")
		}
		d.stdin = true
		if d.format.FilesOnly {
			return fmt.Errorf("format %s cannot be read from stdin: give a path", d.format.Name)
		}
		format := d.format
		if format.Begin == nil {
			format = arrowsource.Format
		}
		d.files = append(d.files, File{Path: "-", Size: -1, Format: format.Name})
		return nil
	}
	if p == "" {
		return errors.New("the name of a source is empty: name a file or a directory, or - for stdin")
	}
	st, err := d.system.Stat(ctx, p)
	if err != nil {
		return err
	}
	dir := p
	if !st.IsDir() {
		dir = files.Dir(p)
	}
	if err := d.above.Check(ctx, p, dir); err != nil {
		return err
	}
	if !st.IsDir() {
		if err := d.linkedFile(ctx, p); err != nil {
			return err
		}
	}
	// The directories above what is named say what partition it is in, as those below a root do.
	above, err := hive.DirectoryPartition(filepath.ToSlash(filepath.Clean(dir)))
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	if !st.IsDir() {
		return d.file(p, st, above, true)
	}
	before := len(d.files)
	if err := d.directory(ctx, p, above); err != nil {
		return err
	}
	if len(d.files) == before {
		return fmt.Errorf("%s: no files with data in it; empty files, and those whose names begin with _ or ., do "+
			"not count", p)
	}
	return nil
}

// linkedFile returns a refusal when path is, or links to, a file in a table that has a log.
func (d *discovery) linkedFile(ctx context.Context, path string) error {
	if files.IsURI(path) {
		return lakehouse.CheckName(path, files.Base(path))
	}
	real := path
	if r, err := filepath.EvalSymlinks(path); err == nil { // else it is a pipe that has no path: /dev/fd/63
		real = r
	}
	for _, name := range []string{filepath.Base(path), filepath.Base(real)} {
		if err := lakehouse.CheckName(path, name); err != nil {
			return err
		}
	}
	return d.above.Check(ctx, path, filepath.Dir(real))
}

// directory lists dir, whose partition is part, in the order of names.
func (d *discovery) directory(ctx context.Context, dir string, part catalog.Partition) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := d.system.ReadDir(ctx, dir) // sorted by name
	if err != nil {
		return err
	}
	if found := lakehouse.Marked(ctx, d.system, dir, entries); found != nil {
		return found.Refusal(dir)
	}
	for _, e := range entries {
		if hive.Hidden(e.Name()) {
			continue
		}
		path := files.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), "._COPYING_") {
			return fmt.Errorf("%s: a copy that is not finished", path)
		}
		st, err := d.entry(ctx, path, e)
		if err != nil {
			return err
		}
		if !st.IsDir() {
			if e.Type()&fs.ModeSymlink != 0 {
				if err := d.linkedFile(ctx, path); err != nil {
					return err
				}
			}
			if err := d.file(path, st, part, false); err != nil {
				return err
			}
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s: a link to a directory could lead in circles: give the directory itself", path)
		}
		below := part
		if v, ok, err := hive.PartitionValue(e.Name()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		} else if ok {
			if below, err = hive.AppendPartition(part, v); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := d.directory(ctx, path, below); err != nil {
			return err
		}
	}
	return nil
}

// entry describes what an entry of a directory is. Links are followed, as Hive does.
func (d *discovery) entry(ctx context.Context, path string, e fs.DirEntry) (fs.FileInfo, error) {
	if files.IsURI(path) {
		return e.Info()
	}
	return d.system.Stat(ctx, path)
}

// file adds a file. named: the caller gave its path itself, not that of a directory above it.
func (d *discovery) file(path string, st fs.FileInfo, part catalog.Partition, named bool) error {
	pipe := st.Mode()&fs.ModeNamedPipe != 0
	switch {
	case pipe && !named:
		return fmt.Errorf("%s: a pipe, which could wait for ever: name it itself to read it", path)
	case pipe && d.format.Begin != nil && d.format.FilesOnly:
		return fmt.Errorf("%s: format %s cannot be read from a pipe: give a file", path, d.format.Name)
	case !pipe && !st.Mode().IsRegular():
		return fmt.Errorf("%s: neither a file nor a directory", path)
	}
	if st.Mode().IsRegular() && st.Size() == 0 {
		return nil
	}
	f := File{Path: path, Size: st.Size(), Partition: part}
	if d.format.Begin != nil {
		f.Format = d.format.Name
	}
	if !st.Mode().IsRegular() {
		f.Size = -1
	}
	d.files = append(d.files, f)
	return nil
}

// tellsAtOnce is how many files are opened at once for their formats.
const tellsAtOnce = 32

// tellFormats finds out the formats of files, where the caller does not say it. The error is that of the first file
// that has one.
func (d *discovery) tellFormats(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(tellsAtOnce)
	errs := make([]error, len(d.files))
	for i := range d.files {
		f := &d.files[i]
		if f.Format != "" {
			continue
		}
		if f.Size < 0 {
			f.Format = arrowsource.Format.Name
			continue
		}
		g.Go(func() error {
			if gctx.Err() != nil {
				return nil // files are begun in order: one before it has an error
			}
			format, err := d.sniff(gctx, f.Path)
			if err != nil {
				errs[i] = err
				return err
			}
			f.Format = format.Name
			return nil
		})
	}
	err := g.Wait()
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	for _, first := range errs {
		if first != nil && !errors.Is(first, context.Canceled) {
			return first
		}
	}
	return err
}

// unifyPartitions gives all files the key order of the first, and refuses files with other keys.
func (d *discovery) unifyPartitions() error {
	if len(d.files) == 0 {
		return nil
	}
	first := d.files[0]
	var keys []string
	for _, v := range first.Partition {
		keys = append(keys, v.Key)
	}
	if d.Ddl != nil && len(keys) > 0 {
		// Hive does not tell upper from lower case; the directories say how the keys are spelled.
		if !slices.Equal(foldAll(keys), foldAll(d.Ddl.PartitionBy)) {
			return column.Refuse("", "%s is partitioned by (%s), its DDL says (%s)", first.Path,
				strings.Join(keys, ", "), strings.Join(d.Ddl.PartitionBy, ", "))
		}
		slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(d.ddlPlace(a), d.ddlPlace(b)) })
	}
	for i := range d.files {
		f := &d.files[i]
		byKey := map[string]catalog.PartitionValue{}
		for _, v := range f.Partition {
			byKey[v.Key] = v
		}
		var out catalog.Partition
		for _, k := range keys {
			if v, ok := byKey[k]; ok {
				out = append(out, v)
			}
		}
		if len(out) != len(keys) || len(byKey) != len(keys) {
			return column.Refuse("", "%s is partitioned by (%s), %s by (%s): all files of a table have the same "+
				"partition keys",
				f.Path, strings.Join(slices.Sorted(maps.Keys(byKey)), ", "), first.Path, strings.Join(keys, ", "))
		}
		f.Partition = out
	}
	return nil
}

// ddlPlace returns the place of a partition key among those of the DDL.
func (d *discovery) ddlPlace(key string) int {
	return slices.IndexFunc(d.Ddl.PartitionBy, func(k string) bool { return strings.EqualFold(k, key) })
}

// foldAll returns names in lower case, sorted.
func foldAll(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToLower(name)
	}
	slices.Sort(out)
	return out
}

// sniff tells the format of a file.
func (d *discovery) sniff(ctx context.Context, path string) (*input.Format, error) {
	head, err := d.system.Head(ctx, path, 512)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if found := sniffMagic(head); found != nil {
		return found, nil
	}
	if what := stream.Foreign(path, head); what != "" {
		return nil, column.Refuse("", "%s: %s", path, what)
	}
	if found, err := sniff(&d.Set, path, head); found != nil || err != nil {
		return found, err
	}
	return nil, column.Refuse("", "%s: neither its first bytes nor its name tell its format: say --format; "+
		"--format text finds what is between columns, and Hive's text needs --ddl or --mapping", path)
}

// bindFile gives f the functions that open it and hash it.
func (d *discovery) bindFile(f *File) {
	file := *f
	var src *stream.Reader
	switch {
	case f.Path == "-" && d.opts.Records != nil:
		file.records = d.opts.Records
	case f.Path == "-":
		src = stream.NewReader(io.NopCloser(d.opts.Stdin))
	case f.Size < 0:
		src = stream.NewReader(&stream.Pipe{Path: f.Path})
	}
	in := input.File{Path: f.Path, Size: f.Size, Format: f.Format, From: d.system}
	if src != nil {
		in.Stream = src
	}
	open := func(ctx context.Context, lenient bool) (*tableSource, error) {
		return newTableSource(&file, d.opts, d.Mapping, lenient,
			func() (column.Reader, error) { return d.open(ctx, in, file.records) })
	}
	f.openLenient = func(ctx context.Context) (*tableSource, error) { return open(ctx, true) }
	f.Open = func(ctx context.Context) (Source, error) {
		s, err := open(ctx, false)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	f.Fingerprint = func(ctx context.Context) (string, error) {
		if src != nil {
			return src.Sum()
		}
		if file.records != nil {
			return file.records.Sum()
		}
		if print, err := d.system.Fingerprint(ctx, file.Path); err != nil || print != "" {
			return print, err
		}
		return stream.Fingerprint(ctx, file.Path)
	}
}

// open opens the reader of an input, whose timestamps have their units. records are what it gives instead; nil: none.
func (d *discovery) open(ctx context.Context, in input.File, records *arrowsource.Records) (column.Reader, error) {
	r, err := d.reader(ctx, in, records)
	if err != nil {
		return nil, err
	}
	if err := d.timestamps.choose(ctx, r, in.Stream != nil || records != nil); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// reader opens the reader of an input.
func (d *discovery) reader(ctx context.Context, in input.File, records *arrowsource.Records) (column.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if records != nil && in.Format == arrowsource.Format.Name {
		return arrowsource.OpenRecords(ctx, records, &d.ReadOptions)
	}
	return d.openers[in.Format](ctx, in)
}
