package versus

import (
	"context"
	"errors"

	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/storage/segment"
)

// What is stored that no family of features has.
const (
	Inverses = "inverses" // of dedup groups
	Rest     = "rest"     // indexes and packs
)

// Families are the names of what a table's bytes divide into, in the order in which reports have them.
var Families = []string{"keys", "labels", "histories", "weighted histories", "user lists", "item lists", "user dense",
	"item dense",
	"context dense", "embedding", Inverses, Rest}

// FamilyName returns the name that reports give to a family.
func FamilyName(f workload.Family) string {
	switch f {
	case workload.SessionKey, workload.RequestKey, workload.UserKey, workload.TimeKey:
		return "keys"
	case workload.Label:
		return "labels"
	case workload.UserHistory:
		return "histories"
	case workload.UserWeighted:
		return "weighted histories"
	case workload.UserList:
		return "user lists"
	case workload.ItemList:
		return "item lists"
	case workload.UserDense:
		return "user dense"
	case workload.ItemDense:
		return "item dense"
	case workload.ContextDense:
		return "context dense"
	case workload.UserEmbedding:
		return "embedding"
	}
	return Rest
}

// EachEntry calls visit for each feature file of the table that Ingest made in dir, until visit returns an error.
func EachEntry(ctx context.Context, dir string, visit func(*segment.Entry) error) (err error) {
	s, err := OpenStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	table, err := s.Table(ctx, Table)
	if err != nil {
		return err
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		return err
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			return err
		}
		entries, err := g.Entries(ctx)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := visit(e); err != nil {
				return err
			}
		}
	}
	return nil
}
