package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/storage"
)

// Formats that Options.Format may name.
const (
	formatAuto    = "auto"
	formatParquet = "parquet"
	formatHive    = "hive" // a directory in Hive's layout, of files in any format
	formatORC     = "orc"
	formatText    = "text"
	formatJSONL   = "jsonl"
	formatArrow   = "arrow"
)

var formats = []string{formatAuto, formatParquet, formatHive, formatORC, formatText, formatJSONL, formatArrow}

const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// Discover lists the files that the paths ("-" is stdin) hold, in a deterministic order: that of the paths, and of the
// names below each. Directories are read as Hive lays them out: "key=value" names partitions, names that begin with _
// or . are skipped, and so are empty files. The mapping and DDL files of opts are read.
func Discover(ctx context.Context, paths []string, opts Options) ([]File, error) {
	opts.Limits = opts.Limits.withDefaults()
	if opts.ChunkBytes <= 0 {
		opts.ChunkBytes = defaultChunkBytes
	}
	if opts.PageBytes <= 0 {
		opts.PageBytes = defaultPageBytes
	}
	if opts.Stdin == nil {
		opts.Stdin = os.Stdin
	}
	if opts.Format == "" {
		opts.Format = formatAuto
	}
	if !slices.Contains(formats, opts.Format) {
		return nil, fmt.Errorf("format%s: want one of %s", didYouMean(opts.Format, formats), strings.Join(formats, ", "))
	}
	if len(paths) == 0 {
		return nil, errors.New("no source given: name files or directories, or - for stdin")
	}
	d := &discovery{opts: &opts}
	var err error
	if d.mapping, err = ReadMapping(opts.MappingFile); err != nil {
		return nil, err
	}
	if opts.DDLFile != "" {
		if d.ddl, err = readDDL(opts.DDLFile, &opts.Limits); err != nil {
			return nil, err
		}
	}
	for _, p := range paths {
		if err := d.path(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := d.unifyPartitions(); err != nil {
		return nil, err
	}
	d.json, d.text, d.moments = &jsonDump{mapping: d.mapping, opts: d.opts}, &textDump{d: d}, &momentDump{d: d}
	for i := range d.files {
		f := &d.files[i]
		d.bindFile(f)
		if f.Format == formatJSONL && f.Size >= 0 {
			d.json.files = append(d.json.files, f.Path)
		}
	}
	return d.files, nil
}

type discovery struct {
	opts    *Options
	mapping *Mapping
	ddl     *tableDDL // nil: none given
	files   []File
	stdin   bool
	above   ascent
	json    *jsonDump
	text    *textDump
	moments *momentDump
}

func (d *discovery) path(ctx context.Context, p string) error {
	if p == "-" {
		if d.stdin {
			return errors.New("- given twice: stdin can be read once")
		}
		d.stdin = true
		format := d.opts.Format
		if format == formatHive || format == formatParquet || format == formatORC {
			return fmt.Errorf("format %s cannot be read from stdin: give a path", format)
		}
		if format == formatAuto {
			format = formatArrow
		}
		d.files = append(d.files, File{Path: "-", Size: -1, Format: format})
		return nil
	}
	st, err := os.Stat(p)
	if err != nil {
		return err
	}
	dir := p
	if !st.IsDir() {
		dir = filepath.Dir(p)
	}
	if err := d.above.check(p, dir); err != nil {
		return err
	}
	if !st.IsDir() {
		if err := d.linkedFile(p); err != nil {
			return err
		}
		// The directories above a file that is named alone say what partition it is in, as those below a root do.
		part, err := directoryPartition(filepath.ToSlash(filepath.Dir(p)))
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		return d.file(p, st, part, true)
	}
	above, err := directoryPartition(filepath.ToSlash(filepath.Clean(p)))
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	before := len(d.files)
	if err := d.directory(ctx, p, above); err != nil {
		return err
	}
	if len(d.files) == before {
		return fmt.Errorf("%s: no files with data in it", p)
	}
	return nil
}

// linkedFile returns a refusal when path is, or links to, a file in a table that has a log.
func (d *discovery) linkedFile(path string) error {
	real := path
	if r, err := filepath.EvalSymlinks(path); err == nil { // else it is a pipe that has no path: /dev/fd/63
		real = r
	}
	for _, name := range []string{filepath.Base(path), filepath.Base(real)} {
		if hudiBase.MatchString(name) {
			return (&lakehouse{kind: hudiTable, marker: name}).refusal(path)
		}
	}
	return d.above.check(path, filepath.Dir(real))
}

// directory lists dir, whose partition is part, in the order of names.
func (d *discovery) directory(ctx context.Context, dir string, part storage.Partition) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	if found := markedEntries(dir, entries); found != nil {
		return found.refusal(dir)
	}
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), "._COPYING_") {
			return fmt.Errorf("%s: a copy that is not finished", path)
		}
		st, err := os.Stat(path) // follows links, as Hive does
		if err != nil {
			return err
		}
		if !st.IsDir() {
			if e.Type()&fs.ModeSymlink != 0 {
				if err := d.linkedFile(path); err != nil {
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
		if v, ok, err := partitionValue(e.Name()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		} else if ok {
			if below, err = appendPartition(part, v); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := d.directory(ctx, path, below); err != nil {
			return err
		}
	}
	return nil
}

// hidden reports whether a name stands for no data, as to Spark: a key of partitions may begin with _.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !strings.Contains(name, "=")
}

// file adds a file. named: the caller gave its path itself, not that of a directory above it.
func (d *discovery) file(path string, st fs.FileInfo, part storage.Partition, named bool) error {
	pipe := st.Mode()&fs.ModeNamedPipe != 0
	switch {
	case pipe && !named:
		return fmt.Errorf("%s: a pipe, which could wait for ever: name it itself to read it", path)
	case pipe && (d.opts.Format == formatParquet || d.opts.Format == formatORC):
		return fmt.Errorf("%s: format %s cannot be read from a pipe: give a file", path, d.opts.Format)
	case !pipe && !st.Mode().IsRegular():
		return fmt.Errorf("%s: neither a file nor a directory", path)
	}
	if st.Mode().IsRegular() && st.Size() == 0 {
		return nil
	}
	format := d.opts.Format
	if format == formatAuto || format == formatHive {
		var err error
		if format, err = d.sniff(path, st); err != nil {
			return err
		}
	}
	size := st.Size()
	if !st.Mode().IsRegular() {
		size = -1
	}
	d.files = append(d.files, File{Path: path, Size: size, Format: format, Partition: part})
	return nil
}

// partitionValue reads the name of a directory as key=value; ok is false for a plain name.
func partitionValue(name string) (v storage.PartitionValue, ok bool, err error) {
	key, value, ok := strings.Cut(name, "=")
	if !ok || key == "" {
		return v, false, nil
	}
	v.Key = unescapePath(key)
	if value == hiveNull {
		v.Null = true
		return v, true, nil
	}
	v.Value = unescapePath(value)
	if !utf8.ValidString(v.Key) || !utf8.ValidString(v.Value) {
		return v, false, fmt.Errorf("partition %q: not UTF-8: rename the directory", name)
	}
	return v, true, nil
}

// unescapePath reads Hive's escapes: a % that no two hexadecimal digits follow stands for itself.
func unescapePath(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(c))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func appendPartition(p storage.Partition, v storage.PartitionValue) (storage.Partition, error) {
	for _, o := range p {
		if strings.EqualFold(o.Key, v.Key) { // Hive does not tell them apart
			return nil, refuse(v.Key, "the partition key is given twice in one path")
		}
	}
	return append(slices.Clone(p), v), nil
}

// directoryPartition returns the partition that the last elements of a path name: those key=value that nothing else
// follows.
func directoryPartition(dir string) (storage.Partition, error) {
	var values []storage.PartitionValue
	for dir != "" && dir != "/" && dir != "." {
		v, ok, err := partitionValue(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		values = append(values, v)
		dir = filepath.Dir(dir)
	}
	slices.Reverse(values)
	var p storage.Partition
	for _, v := range values {
		var err error
		if p, err = appendPartition(p, v); err != nil {
			return nil, err
		}
	}
	return p, nil
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
	if d.ddl != nil && len(keys) > 0 {
		if have, want := slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(d.ddl.partitionBy)); !slices.Equal(have, want) {
			return refuse("", "%s is partitioned by (%s), its DDL says (%s)", first.Path, strings.Join(keys, ", "), strings.Join(d.ddl.partitionBy, ", "))
		}
		keys = d.ddl.partitionBy
	}
	for i := range d.files {
		f := &d.files[i]
		byKey := map[string]storage.PartitionValue{}
		for _, v := range f.Partition {
			byKey[v.Key] = v
		}
		var out storage.Partition
		for _, k := range keys {
			if v, ok := byKey[k]; ok {
				out = append(out, v)
			}
		}
		if len(out) != len(keys) || len(byKey) != len(keys) {
			return refuse("", "%s is partitioned by (%s), %s by (%s): all files of a table have the same partition keys",
				f.Path, strings.Join(sortedKeys(byKey), ", "), first.Path, strings.Join(keys, ", "))
		}
		f.Partition = out
	}
	return nil
}

// sniff tells the format of a file by its first bytes, then by its name.
func (d *discovery) sniff(path string, st fs.FileInfo) (string, error) {
	if !st.Mode().IsRegular() {
		return formatArrow, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if format := sniffMagic(head[:n]); format != "" {
		return format, nil
	}
	if what := foreign(path, head[:n]); what != "" {
		return "", refuse("", "%s: %s", path, what)
	}
	name := strings.ToLower(filepath.Base(path))
	packed := false
	for _, suffix := range []string{".gz", ".zst", ".bz2", ".deflate"} {
		if strings.HasSuffix(name, suffix) {
			name, packed = strings.TrimSuffix(name, suffix), true
		}
	}
	switch filepath.Ext(name) {
	case ".parquet", ".parq", ".pq":
		return formatParquet, nil
	case ".orc":
		return formatORC, nil
	case ".json", ".jsonl", ".ndjson":
		return formatJSONL, nil
	case ".txt", ".csv", ".tsv", ".text", ".tbl", ".psv":
		return formatText, nil
	case ".arrow", ".arrows", ".ipc", ".feather":
		return formatArrow, nil
	}
	if d.opts.DDLFile != "" || len(d.mapping.Text.Columns) > 0 || d.mapping.Text.Header {
		return formatText, nil
	}
	if !packed && bytes.HasPrefix(bytes.TrimLeft(head[:n], " \t\r\n"), []byte("{")) {
		return formatJSONL, nil
	}
	return "", refuse("", "%s: neither its first bytes nor its name tell its format: say --format, and how text is laid out with --ddl or --mapping", path)
}

func sniffMagic(head []byte) string {
	for _, m := range []struct{ magic, format string }{
		{"PAR1", formatParquet}, {"PARE", formatParquet}, {"ORC", formatORC}, {"ARROW1", formatArrow}, {"FEA1", formatArrow},
		{"\xff\xff\xff\xff", formatArrow},
	} {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.format
		}
	}
	return ""
}

// bindFile gives f the functions that open it and hash it.
func (d *discovery) bindFile(f *File) {
	file := *f
	var stream *hashingReader
	switch {
	case f.Path == "-" && d.opts.Records != nil:
		file.records = d.opts.Records
	case f.Path == "-":
		stream = newHashingReader(io.NopCloser(d.opts.Stdin))
	case f.Size < 0:
		stream = newHashingReader(&pipe{path: f.Path})
	}
	open := func(ctx context.Context, lenient bool) (*tableSource, error) {
		return newTableSource(&file, d.opts, d.mapping, lenient, func() (batchReader, error) { return d.open(ctx, &file, stream) })
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
		if stream != nil {
			return stream.sum()
		}
		if file.records != nil {
			return file.records.sum()
		}
		return fingerprint(ctx, file.Path)
	}
}
