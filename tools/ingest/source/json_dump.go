package source

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// A jsonDump learns the types of JSON lines from all files of a dump, each read once before any is read for its rows: a key
// may come late, or in one file only, and be whole numbers in one file and fractions in another.
type jsonDump struct {
	mapping *Mapping
	opts    *Options
	files   []string

	// mu guards the rest, and is held while files are read.
	mu     sync.Mutex
	schema *jsonSchema
	faults map[string]error // by file: why it does not go with those before it
}

// filesAtOnce bounds what is held of files before it is merged.
const filesAtOnce = 64

// types returns the types of all files, and the error of the one that is to be opened.
func (d *jsonDump) types(ctx context.Context, path string) (*jsonSchema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.schema == nil {
		if err := d.learn(ctx); err != nil {
			return nil, err
		}
	}
	return d.schema, d.faults[path]
}

// learn is called with mu held.
func (d *jsonDump) learn(ctx context.Context) error {
	all, faults := newJSONSchema(d.mapping, d.opts), map[string]error{}
	for files := d.files; len(files) > 0; {
		some := files[:min(len(files), filesAtOnce)]
		files = files[len(some):]
		schemas, errs := make([]*jsonSchema, len(some)), make([]error, len(some))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(d.opts.threads())
		for i, path := range some {
			g.Go(func() error {
				schemas[i], errs[i] = d.file(gctx, path)
				return gctx.Err()
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i, s := range schemas {
			if errs[i] == nil {
				errs[i] = all.merge(s)
			}
			if errs[i] != nil {
				faults[some[i]] = errs[i]
			}
		}
	}
	d.schema, d.faults = all, faults
	return nil
}

// file returns what a file says. One that cannot be read to its end says what it can: whoever reads it for its rows meets
// the error again, where it belongs.
func (d *jsonDump) file(ctx context.Context, path string) (*jsonSchema, error) {
	s := newJSONSchema(d.mapping, d.opts)
	lines, err := openLines(path, nil, charsetUTF8, &d.opts.Limits)
	if err != nil {
		return s, nil
	}
	defer lines.close()
	err = s.read(ctx, lines, func([]byte) bool { return true })
	if errors.Is(err, ErrRefused) {
		return s, err
	}
	return s, nil
}

// merge takes over what another file says. One that does not go with those before it is left out, and has no say.
func (s *jsonSchema) merge(o *jsonSchema) error {
	var mixed *mixedError
	if errors.As(s.top.clash(o.top), &mixed) {
		return refuse(mixed.path, "%v; give it a type in a mapping file", mixed)
	}
	s.blank = s.blank && o.blank
	return s.top.merge(o.top)
}
