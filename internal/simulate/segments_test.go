package simulate

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// rowFeature is what every segment has: a number of its own for each row. labelFeature is what overlays add.
const (
	rowFeature   = "row"
	labelFeature = "label"
)

var int64Type = vector.Type{Kind: vector.Dense, Elem: vector.Int64}

func feature(name string) catalog.Feature {
	return catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name, Type: int64Type}
}

// A recorder takes the objects of a segment, so that what the real writer makes is made once for each id and values:
// writing takes longer than all else that happens to a segment.
type recorder struct {
	objects []recorded
}

type recorded struct {
	name string
	data []byte
}

type recorderKey struct{}

// withRecorder returns the context for a segment writer whose objects are taken.
func withRecorder(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, &recorder{})
}

func (r *recorder) create(name string) object.Writer {
	return &blobWriter{put: func(data []byte) error {
		r.objects = append(r.objects, recorded{name, data})
		return nil
	}}
}

// A madeSegment is what the real writer made.
type madeSegment struct {
	descriptor catalog.SegmentDescriptor
	objects    []recorded
}

// madeSegments are the segments of the process, by what they are made of.
var madeSegments = map[string]madeSegment{}

// maxMade bounds madeSegments.
const maxMade = 50_000

// writeSegment writes a segment that holds the values of a feature, with the real writer, and puts its objects through
// the client of the machine. recording is the context, of withRecorder, that the writer began with.
func (m *machine) writeSegment(ctx, recording context.Context, w *segment.Writer, p catalog.Partition,
	f catalog.Feature, values []int64) (catalog.SegmentDescriptor, error) {
	key := fmt.Sprint(w.ID(), p, f.Name, values)
	m.r.model.lock()
	made, ok := madeSegments[key]
	m.r.model.unlock()
	if ok {
		w.Abort()
	} else {
		err := w.AddFeature(recording, 0, f, func(fw *format.Writer) error {
			c := vector.NewColumn(int64Type)
			for _, v := range values {
				c.Ints = append(c.Ints, v)
				c.AddSlot()
			}
			return fw.WriteStripe(c)
		})
		if err != nil {
			w.Abort()
			return catalog.SegmentDescriptor{}, err
		}
		if made.descriptor, err = w.Finish(recording); err != nil {
			w.Abort()
			return catalog.SegmentDescriptor{}, err
		}
		made.objects = recording.Value(recorderKey{}).(*recorder).objects
		m.r.model.lock()
		if len(madeSegments) > maxMade {
			clear(madeSegments)
		}
		madeSegments[key] = made
		m.r.model.unlock()
	}
	for _, o := range made.objects {
		blob, err := m.store.Blobs().Create(ctx, o.name)
		if err != nil {
			return catalog.SegmentDescriptor{}, err
		}
		if _, err := blob.Write(o.data); err != nil {
			return catalog.SegmentDescriptor{}, err
		}
		if err := blob.Commit(ctx); err != nil {
			return catalog.SegmentDescriptor{}, err
		}
	}
	return made.descriptor, nil
}

// newSegment writes a segment of the table with the given rows.
func (m *machine) newSegment(ctx context.Context, t *storage.Table, p catalog.Partition,
	rows []int64) (catalog.SegmentDescriptor, error) {
	recording := withRecorder(ctx)
	w, err := t.NewSegment(recording, p, []uint32{uint32(len(rows))}, segment.Options{})
	if err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	return m.writeSegment(ctx, recording, w, p, feature(rowFeature), rows)
}

// A value is what a row has of a feature.
type value struct {
	n     int64
	there bool // else it is null
}

// readFeature reads the values of a feature of a segment, one for each row; nil when the segment does not have it.
func readFeature(ctx context.Context, s *storage.Store, d catalog.SegmentDescriptor, name string) ([]value, error) {
	g, err := s.Segments().Open(ctx, d)
	if err != nil {
		return nil, err
	}
	entries, err := g.Lookup(ctx, feature(name).ID)
	if err != nil || entries[0] == nil {
		return nil, err
	}
	e := entries[0]
	out := make([]value, 0, d.Rows)
	decoder := format.NewStripeDecoder(format.Limits{})
	for i, stripe := range e.Meta.Stripes {
		b := make([]byte, stripe.Length)
		if err := s.Blobs().ReadAt(ctx, e.Object, b, int64(e.Offset+stripe.Offset)); err != nil {
			return nil, err
		}
		c := vector.NewColumn(e.Meta.Type)
		if err := decoder.DecodeStripe(c, e.Meta, i, b, nil); err != nil {
			return nil, err
		}
		for row := range c.Rows {
			if c.IsNull(row) {
				out = append(out, value{})
			} else {
				out = append(out, value{c.Ints[c.Slot(row)], true})
			}
		}
	}
	return out, nil
}
