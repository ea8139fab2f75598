package segment

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// This file makes a whole segment of what is left of a damaged one. Stripes are copied without decoding: of a feature
// file only the checksums and the salt in its directory depend on the segment's id.

// copyBuffer is how much of a feature file is read at once, but for stripes that are longer.
const copyBuffer = 4 << 20

// Copy writes a segment that has some feature files of another, with the same rows in the same stripes: those of
// entries. Features without one are null in every row. keys are the table's key features; those among the entries get a
// key table. If an entry is of a dedup group, the group's inverse must be among them.
func (s *Store) Copy(ctx context.Context, d catalog.SegmentDescriptor, stripes []uint32, entries []*Entry,
	keys []catalog.Feature) (out catalog.SegmentDescriptor, err error) {
	id, err := names.ParseID(d.ID)
	if err != nil {
		return out, err
	}
	w, err := s.NewWriter(ctx, id.Table(), d.Partition, stripes, Options{})
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	// As they lie: a group's inverse before its features, and what is read together together.
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Offset, b.Offset))
	})
	byID := map[uint64]*Entry{}
	for i, e := range entries {
		byID[e.Meta.Feature] = e
		if err := w.copyFile(ctx, i, e); err != nil {
			return out, format.Locate(err, e.Object, e.Meta.Name, 0)
		}
	}
	for _, f := range keys {
		e := byID[uint64(f.ID)]
		k := w.keysOf(f)
		if e == nil || k == nil {
			continue
		}
		if err := s.eachStripe(ctx, e, byID[e.Meta.Group], k.add); err != nil {
			return out, format.Locate(err, e.Object, e.Meta.Name, int64(e.Offset))
		}
		w.keys = append(w.keys, k)
	}
	return w.Finish(ctx)
}

// copyFile adds a feature file of another segment.
func (w *Writer) copyFile(ctx context.Context, order int, e *Entry) error {
	f := catalog.Feature{ID: catalog.FeatureID(e.Meta.Feature), Type: e.Meta.Type,
		Name: cmp.Or(e.Meta.Name, fmt.Sprintf("%016x", e.Meta.Feature))}
	if err := w.begin(ctx, order, f); err != nil {
		return err
	}
	sp := &spool{ctx: ctx, s: w.s, name: w.id.ObjectName(names.FileObject, uint64(order)),
		limit: w.opts.StandAloneBytes}
	defer sp.abort()
	start, _ := e.Meta.Dictionary.Range() // behind the header, whether there is one or not
	length := e.Meta.End() - start
	body := io.NewSectionReader(object.ReaderAt(ctx, w.s.Blobs, e.Object), int64(e.Offset+start), int64(length))
	m, n, err := format.CopyFile(sp, e.Meta, saltOf(w.id, f.ID),
		bufio.NewReaderSize(body, int(min(copyBuffer, length))))
	if err != nil {
		err = format.Locate(wire.Missing(e.Object, err), e.Object, e.Meta.Name, int64(e.Offset))
		w.fail(err)
		return err
	}
	done := finishedFile{feature: f.ID, name: f.Name, length: n, meta: m, file: sp.buf}
	if sp.w != nil {
		done.file = nil
		if err := sp.commit(); err != nil {
			w.fail(err)
			return err
		}
	}
	return w.finished(ctx, order, done)
}

// eachStripe calls visit with each decoded stripe of a feature file, borrowed for the call. group is the file of its
// dedup group's inverse.
func (s *Store) eachStripe(ctx context.Context, e, group *Entry, visit func(*vector.Column)) error {
	if e.Meta.Group != 0 && group == nil {
		return wire.Corrupt(e.Object, fmt.Sprintf("its dedup group %016x is not in the segment", e.Meta.Group))
	}
	dec := format.NewStripeDecoder(s.Limits)
	var raw []byte
	read := func(e *Entry, at, length uint64) ([]byte, error) {
		raw = slices.Grow(raw[:0], int(length))[:length]
		return raw, wire.Missing(e.Object, s.Blobs.ReadAt(ctx, e.Object, raw, int64(e.Offset+at)))
	}
	var dictionary *format.Dictionary
	if at, length := e.Meta.Dictionary.Range(); length > 0 {
		b, err := read(e, at, length)
		if err != nil {
			return err
		}
		dictionary = new(format.Dictionary)
		if err := dec.DecodeDictionary(dictionary, e.Meta, b); err != nil {
			return err
		}
	}
	var column, inverse vector.Column
	decode := func(dst *vector.Column, e *Entry, i int, inverse *vector.Column) error {
		b, err := read(e, e.Meta.Stripes[i].Offset, e.Meta.Stripes[i].Length)
		if err != nil {
			return err
		}
		dst.Type = e.Meta.Type
		return dec.DecodeStripe(dst, e.Meta, i, b, inverse)
	}
	for i := range e.Meta.Stripes {
		dec.Use(nil)
		if group != nil && e.Meta.Group != 0 {
			if err := decode(&inverse, group, i, nil); err != nil {
				return err
			}
		}
		dec.Use(dictionary)
		if err := decode(&column, e, i, &inverse); err != nil {
			return err
		}
		visit(&column)
	}
	return nil
}

// Recover finds the feature files of a segment without its index, by the directories of its packs and of the files
// themselves. The error matches format.ErrCorrupt where they are not all that the segment had, whole.
func (s *Store) Recover(ctx context.Context, d catalog.SegmentDescriptor) (stripes []uint32, entries []*Entry,
	err error) {
	id, err := names.ParseID(d.ID)
	if err != nil {
		return nil, nil, err
	}
	objects, sum := uint32(0), d.IndexSize+d.KeysSize
	known := map[uint64]bool{} // features
	for info, err := range s.Blobs.List(ctx, id.Dir(), "") {
		if err != nil {
			return nil, nil, err
		}
		if _, ok := names.ParseDataName(info.Name); !ok || info.Name == d.Index || info.Name == id.KeysName() ||
			id.IsCondemned(info.Name) {
			continue
		}
		objects++
		sum += uint64(info.Size)
		files := []format.PackEntry{{Length: uint64(info.Size)}}
		r := object.ReaderAt(ctx, s.Blobs, info.Name)
		if id.IsPack(info.Name) {
			if files, err = format.OpenPack(r, info.Size, s.Limits); err != nil {
				return nil, nil, format.Locate(err, info.Name, "", 0)
			}
		}
		for _, f := range files {
			m, err := format.OpenFile(r, int64(f.Offset), int64(f.Length), s.Limits)
			if err != nil {
				return nil, nil, format.Locate(err, info.Name, "", 0)
			}
			e := &Entry{Object: info.Name, ObjectSize: uint64(info.Size), Offset: f.Offset, Length: f.Length, Meta: m}
			if stripes == nil {
				for _, st := range m.Stripes {
					stripes = append(stripes, st.Rows)
				}
			}
			reason := checkEntry(e, id, catalog.FeatureID(m.Feature), stripes)
			if reason == "" && f.Feature != 0 && f.Feature != m.Feature {
				reason = fmt.Sprintf("feature %016x: the pack says %016x", m.Feature, f.Feature)
			}
			if known[m.Feature] {
				reason = fmt.Sprintf("feature %016x is in two files", m.Feature)
			}
			known[m.Feature] = true
			if reason != "" {
				return nil, nil, wire.Corrupt(info.Name, reason)
			}
			entries = append(entries, e)
		}
	}
	rows := uint64(0)
	for _, n := range stripes {
		rows += uint64(n)
	}
	if objects != d.Objects || sum != d.Bytes || len(entries) != int(d.Features) || rows != d.Rows {
		return nil, nil, wire.Corrupt(d.Index, fmt.Sprintf("what is left of the segment without its index: %d "+
			"objects, %d bytes with it, %d features, %d rows: the listing says %d, %d, %d, %d", objects, sum,
			len(entries), rows, d.Objects, d.Bytes, d.Features, d.Rows))
	}
	return stripes, entries, nil
}
