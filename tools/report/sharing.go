package report

import (
	"context"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

const (
	// scattered is how many pieces a session has on average before merging is worth a look: it would make one of them.
	scattered = 1.05
	// mostSpread is the most rows of which session keys are read to find their pieces.
	mostSpread = 64 << 20
	// stripeRows is how many rows the stripes have that compaction writes.
	stripeRows = 16384
	// adjacent is the fewest rows of a piece, on average, that show how often values change from one row of a session
	// to the next.
	adjacent = 1.2
)

// A sharing is what merging segments would save because the pieces of their sessions come together.
type sharing struct {
	sessions, pieces     uint64
	elements             uint64     // of rows
	before               float64    // elements stored
	after                [3]float64 // if least is shared, by the estimate, and if most is
	least, saved, most   float64    // bytes
	rowsAPiece, together float64    // rows of a piece, and of a session
}

// sharingOf estimates it from the session keys, and from what the directories say of each feature; nil: sessions are
// not scattered over the segments, or the table has none.
//
// A feature that stores v values for each piece of r rows changes its value from one row to the next with probability p
// = (v - 1) / (r - 1). A session of s rows in one piece then stores 1 + p (s - 1) of them, in place of v a piece. Lists
// that are slices of longer ones count as so many values as their stored elements make lists. Where pieces are single
// rows, p is not known: the estimate lies in the middle of what it may be.
func sharingOf(ctx context.Context, snap *storage.Snapshot, segments []catalog.SegmentDescriptor) (*sharing, error) {
	rows := uint64(0)
	for _, d := range segments {
		rows += d.Rows
	}
	if len(segments) < 2 || rows > mostSpread {
		return nil, nil
	}
	spread, err := compaction.SpreadOf(ctx, snap, segments...)
	if err != nil || float64(spread.Pieces) <= scattered*float64(spread.Sessions) {
		return nil, err
	}
	features, err := pieceFeatures(ctx, snap, segments)
	if err != nil {
		return nil, err
	}
	out := &sharing{sessions: spread.Sessions * spread.OneIn, pieces: spread.Pieces * spread.OneIn}
	pieces, sessions := float64(out.pieces), float64(out.sessions)
	out.rowsAPiece, out.together = float64(rows)/pieces, float64(rows)/sessions
	for _, f := range features {
		out.elements += f.elements
		out.before += float64(f.stored)
		left := out.leftOf(f.values() / pieces)
		for i, to := range []*float64{&out.least, &out.saved, &out.most} {
			*to += (1 - left[i]) * float64(f.bytes)
			out.after[i] += left[i] * float64(f.stored)
		}
	}
	return out, nil
}

// add adds what other segments would save.
func (s *sharing) add(o sharing) {
	s.sessions, s.pieces, s.elements = s.sessions+o.sessions, s.pieces+o.pieces, s.elements+o.elements
	s.before, s.least, s.saved, s.most = s.before+o.before, s.least+o.least, s.saved+o.saved, s.most+o.most
	for i := range s.after {
		s.after[i] += o.after[i]
	}
}

// leftOf returns which share of a feature's values is left, of which pieces store so many each: at most, by the
// estimate, and at least.
func (s *sharing) leftOf(values float64) [3]float64 {
	if values <= 1e-9 {
		return [3]float64{1, 1, 1}
	}
	if values < 1 { // different sessions share values already; how many of those that go were, is a guess
		gone := 1 - s.rowsAPiece/s.together
		return [3]float64{1 - values*gone, 1 - math.Sqrt(values)*gone, 1 - gone}
	}
	p := [3]float64{1, 0.5, 0}
	if s.rowsAPiece >= adjacent {
		known := min((values-1)/(s.rowsAPiece-1), 1)
		p = [3]float64{min(1.25*known+0.02, 1), known, 0.75 * known}
	}
	var left [3]float64
	for i := range p {
		left[i] = min((1+p[i]*(s.together-1))/(values*s.together/s.rowsAPiece), 1)
	}
	return left
}

// A pieceFeature is what the directories of some segments say of a feature.
type pieceFeature struct {
	rows, present, elements, stored, slots uint64
	bytes                                  uint64 // of its values, and of which are null and how long lists are
}

// values is how many values are stored: slots, or as many lists of mean length as its stored elements make.
func (f *pieceFeature) values() float64 {
	if f.elements == 0 || f.present == 0 || f.rows == 0 {
		return float64(f.slots)
	}
	mean := float64(f.elements) / float64(f.rows) // a row that is null is a value, too
	return min(float64(f.stored)/mean, float64(f.slots))
}

func pieceFeatures(ctx context.Context, snap *storage.Snapshot,
	segments []catalog.SegmentDescriptor) (map[uint64]*pieceFeature, error) {
	out := map[uint64]*pieceFeature{}
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			return nil, err
		}
		err = g.Each(ctx, func(e *segment.Entry) error {
			m := e.Meta
			if isInverse(m) {
				return nil
			}
			f := out[m.Feature]
			if f == nil {
				f = new(pieceFeature)
				out[m.Feature] = f
			}
			f.rows += m.Rows
			f.present += m.Rows - min(m.Stats.NullRows, m.Rows)
			f.elements += m.Stats.Elements
			f.bytes += m.Dictionary.Length
			for i := range m.Stripes {
				s := &m.Stripes[i]
				f.stored += s.Elements
				f.slots += uint64(s.Slots)
				for _, x := range s.Streams {
					switch x.Kind {
					case format.InverseRuns, format.InverseChanges, format.InverseCodes:
					default:
						f.bytes += x.Length
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// String says what becomes of the dedupe factor: within which bounds, where these are far from each other.
func (s *sharing) String() string {
	factor := func(stored float64) float64 { return ratio(float64(s.elements), stored) }
	text := fmt.Sprintf("from %.2f to about %.2f", factor(s.before), factor(s.after[1]))
	if low, high := factor(s.after[0]), factor(s.after[2]); high > 1.5*low {
		text += fmt.Sprintf(" (%.2f to %.2f)", low, high)
	}
	return text
}
