package ingest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// A lateSource gives its rows when others have been read.
type lateSource struct {
	source.Source
	wait, read *sync.WaitGroup
}

func (s *lateSource) Next(ctx context.Context) (*source.Chunk, error) {
	if s.wait != nil {
		s.wait.Wait()
	}
	return s.Source.Next(ctx)
}

func (s *lateSource) Close() error {
	if s.read != nil {
		s.read.Done()
	}
	return s.Source.Close()
}

// TestPartitionsAreInTheOrderOfFiles: segments of directories' partitions are made in the order of the files, whichever
// is read first.
func TestPartitionsAreInTheOrderOfFiles(t *testing.T) {
	field := &source.Field{Name: "f", Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}
	d := &dump{}
	want := []string{"p=2", "p=1", "p=3"}
	for _, part := range want {
		p := catalog.Partition{{Key: "p", Value: part[2:]}}
		c := &vector.Column{Type: field.Type}
		c.Ints = append(c.Ints, 7)
		c.AddSlot()
		d.files = append(d.files, fakeFile{path: part, part: p, fields: []*source.Field{field},
			chunks: []*source.Chunk{{Rows: 1, Partition: p, Fields: []*source.Field{field},
				Columns: []*vector.Column{c}}}})
	}
	files := d.sources(nil)
	var others sync.WaitGroup
	others.Add(len(files) - 1)
	for i := range files {
		open := files[i].Open
		files[i].Open = func(ctx context.Context) (source.Source, error) {
			s, err := open(ctx)
			if i == 0 {
				return &lateSource{Source: s, wait: &others}, err
			}
			return &lateSource{Source: s, read: &others}, err
		}
	}
	table := newFakeTable()
	e := newEngine(Options{Options: writer.Options{Workers: 2}}.withDefaults(), files, table, &quarantine{})
	if _, err := e.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range table.segments {
		got = append(got, s.part.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("segments of %q: want %q", got, want)
	}
}
