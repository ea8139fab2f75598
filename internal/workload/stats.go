package workload

import "github.com/dsistore/dsistore/format/vector"

// Stats are what a table measures, as opposed to what it was drawn from.
type Stats struct {
	// SamplesPerSession is rows over sessions.
	SamplesPerSession float64 `json:"samples_per_session"`
	// Coverage is the share of rows that have a feature, averaged over sparse and dense features.
	Coverage float64 `json:"coverage"`
	// MeanLength is the mean length of a sparse feature's lists that are not null, averaged over features.
	MeanLength float64 `json:"mean_length"`
	// IDsPerRow is the number of ids in all lists of a row.
	IDsPerRow float64 `json:"ids_per_row"`
	// RawBytes is the size of a row without encoding: 8 bytes per id, 4 a score, each dense feature, key and label in
	// its own width whether null or not, embeddings where present; lengths and presence are not counted.
	RawBytes float64 `json:"raw_bytes_per_row"`
}

// A tally counts what passes through a generator.
type tally struct {
	features []Feature
	rows     []int64
	present  []int64
	ids      []int64
	sessions int64
	rawBytes int64
}

func newTally(fs []Feature) *tally {
	return &tally{features: fs, rows: make([]int64, len(fs)), present: make([]int64, len(fs)),
		ids: make([]int64, len(fs))}
}

var elemBytes = map[vector.Elem]int64{
	vector.Bool: 1, vector.Int32: 4, vector.Int64: 8, vector.Float32: 4, vector.Float64: 8,
}

func (t *tally) add(feature int, c *vector.Column) {
	present := int64(c.Present.Count())
	t.rows[feature] += int64(c.Rows)
	t.present[feature] += present
	n := int64(c.Elements())
	switch c.Type.Kind {
	case vector.Embedding:
		n = present * embeddingDim
	case vector.Sparse, vector.Weighted:
		t.ids[feature] += n
	}
	width := elemBytes[c.Type.Elem]
	if c.Type.Kind == vector.Weighted {
		width += elemBytes[c.Type.Score]
	}
	t.rawBytes += n * width
}

func (t *tally) stats(rows int64) Stats {
	s := Stats{
		SamplesPerSession: float64(rows) / float64(t.sessions),
		RawBytes:          float64(t.rawBytes) / float64(rows),
	}
	var features, lists float64
	var ids int64
	for i := range t.features {
		switch t.features[i].Family {
		case UserHistory, UserWeighted, UserList, ItemList:
			if t.present[i] > 0 {
				s.MeanLength += float64(t.ids[i]) / float64(t.present[i])
				lists++
			}
			ids += t.ids[i]
		case UserDense, ItemDense, ContextDense:
		default:
			continue
		}
		s.Coverage += float64(t.present[i]) / float64(t.rows[i])
		features++
	}
	s.Coverage /= max(features, 1)
	s.MeanLength /= max(lists, 1)
	s.IDsPerRow = float64(ids) / float64(rows)
	return s
}
