package compaction

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/writer"
)

// A PackOrder describes the order of features in the packs of new segments. Its JSON keys are stable.
type PackOrder struct {
	// By is "popularity", or "size" if no feature is known to be read. Then the features other than keys and labels are
	// sorted from small to large.
	By string `json:"by"`
	// Popular are the first maxPopular of the Read features that are read, in the order of packs: keys and labels come
	// first.
	Popular []PopularFeature `json:"popular"`
	Read    int              `json:"features_read"`
	Unread  int              `json:"features_unread"` // they come last, from small to large
}

// A PopularFeature is a feature that is read.
type PopularFeature struct {
	Name       string  `json:"feature"`
	Role       string  `json:"role,omitempty"`
	Popularity float64 `json:"popularity"`
}

// maxPopular is how many features a PackOrder names, and shownPopular how many of them it prints.
const (
	maxPopular   = 1000
	shownPopular = 8
)

// packOrder returns the order of the table's features. It reads only the schema.
func packOrder(ctx context.Context, snap *storage.Snapshot, p Popularity) (*PackOrder, error) {
	out := &PackOrder{By: "size", Popular: []PopularFeature{}}
	features, err := snap.Features(ctx)
	if err != nil {
		return nil, err
	}
	var popular []float64
	if p != nil {
		popular = p.Popularity(features)
	}
	type read struct {
		PopularFeature
		order int
	}
	var all []read
	for i, f := range features {
		if i >= len(popular) || !(popular[i] > 0) {
			out.Unread++
			continue
		}
		r := read{PopularFeature{Name: f.Name, Popularity: popular[i]}, writer.RoleOrder(f.Role)}
		if f.Role != catalog.RoleFeature {
			r.Role = f.Role.String()
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b read) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(b.Popularity, a.Popularity),
			cmp.Compare(a.Name, b.Name))
	})
	if out.Read = len(all); out.Read > 0 {
		out.By = "popularity"
	}
	for _, r := range all[:min(len(all), maxPopular)] {
		out.Popular = append(out.Popular, r.PopularFeature)
	}
	return out, nil
}

// String prints o as one line.
func (o *PackOrder) String() string {
	if o.By == "size" {
		return "packs: keys and labels first, then from small to large: it is not known which features are read"
	}
	names := make([]string, 0, shownPopular)
	for _, f := range o.Popular[:min(len(o.Popular), shownPopular)] {
		names = append(names, f.Name)
	}
	text := "packs: keys and labels first, then what is read most: " + strings.Join(names, ", ")
	if more := o.Read - len(names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	if o.Unread > 0 {
		text += fmt.Sprintf("; then %d that are not read, from small to large", o.Unread)
	}
	return text
}
