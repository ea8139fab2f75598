package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A Unit is the unit of rows that a shuffle permutes. The numbers never change meaning.
type Unit uint8

const (
	// UnitNone leaves rows in the plan's own order.
	UnitNone Unit = 0
	// UnitSession permutes sessions: runs of rows of one stripe with equal session keys. A row whose session key is
	// null is a session of its own.
	UnitSession Unit = 1
	// UnitRow permutes rows.
	UnitRow Unit = 2
)

var unitNames = []string{UnitNone: "none", UnitSession: "session", UnitRow: "row"}

func (u Unit) String() string { return nameOf("unit", unitNames, u) }

// ParseUnit returns the Unit that String prints as s.
func ParseUnit(s string) (Unit, error) { return parseName[Unit]("shuffle", unitNames, s) }

const (
	// DefaultBufferStripes is the default of Shuffle.BufferStripes.
	DefaultBufferStripes = 16
	// MaxBufferStripes is the largest number of stripes of a shuffle buffer.
	MaxBufferStripes = 1 << 12
)

// A Shuffle is the order of rows in an epoch. The zero value is the plan's own order. Otherwise the stripes of all
// segments are permuted and divided into shuffle buffers of BufferStripes stripes, and the sessions or rows of each
// buffer are permuted. The order depends only on the plan, the snapshot and the epoch: see package order.
//
// A batch may end within a session, which then continues in the next batch.
type Shuffle struct {
	Unit Unit
	// BufferStripes is how many stripes are interleaved. The more there are, the more sessions a batch has rows of, and
	// the more memory is needed: for a buffer of decoded stripes, and another one to read ahead. Default 16.
	BufferStripes int
	// Seed selects one of the orders.
	Seed uint64
	// Key is the session key, with its stored type before transforms; New sets it. It is read even if Features does not
	// select it. With UnitRow it is used to count a batch's sessions, and is empty if the table has none.
	Key catalog.Feature
}

// find returns s with its defaults and the session key, which is that of features or of the table.
func (s Shuffle) find(ctx context.Context, snap schema, features []catalog.Feature) (Shuffle, error) {
	if s.Key != (catalog.Feature{}) {
		return s, errors.New("shuffle: the session key is found by its role: leave Key empty")
	}
	if s.Unit == UnitNone {
		return s, nil
	}
	if s.BufferStripes == 0 {
		s.BufferStripes = DefaultBufferStripes
	}
	isSessionKey := func(f catalog.Feature) bool { return f.Role == catalog.RoleSessionKey && !IsPartitionKey(f) }
	at := slices.IndexFunc(features, isSessionKey)
	if at < 0 {
		keys, err := snap.KeyFeatures(ctx)
		if err != nil {
			return s, err
		}
		features, at = keys, slices.IndexFunc(keys, isSessionKey)
	}
	switch {
	case at >= 0:
		s.Key = features[at]
	case s.Unit == UnitSession:
		return s, errors.New("shuffle: the table has no session key: shuffle by row, or ingest it with a session key")
	}
	return s, nil
}

// validateShuffle is Validate for Shuffle, after the transforms were validated. The session key may be read as an
// ordinary feature.
func (p *Plan) validateShuffle() error {
	for i, f := range p.Features {
		if f.ID != p.Shuffle.Key.ID || IsPartitionKey(f) {
			continue
		}
		if x := p.transform(i); x != nil {
			f.Type, f.Logical = x.StoredType, x.StoredLogical
		}
		if f.Role == catalog.RoleFeature {
			f.Role = p.Shuffle.Key.Role
		}
		if f != p.Shuffle.Key {
			return fmt.Errorf("plan: feature %q is not what the shuffle takes for it", f.Name)
		}
	}
	return p.Shuffle.validate()
}

// validate returns an error naming the first part of s that is not valid.
func (s *Shuffle) validate() error {
	if s.Unit == UnitNone {
		if *s != (Shuffle{}) {
			return errors.New("plan: shuffle none has no buffer, no seed and no key")
		}
		return nil
	}
	switch {
	case s.Unit > UnitRow:
		return fmt.Errorf("plan: shuffle %v: want %s", s.Unit, oneOf(unitNames))
	case s.BufferStripes < 1 || s.BufferStripes > MaxBufferStripes:
		return fmt.Errorf("plan: shuffle buffer of %d stripes: want 1 to %d", s.BufferStripes, MaxBufferStripes)
	case s.Key == (catalog.Feature{}):
		if s.Unit == UnitSession {
			return errors.New("plan: shuffle session has no session key")
		}
		return nil
	case IsPartitionKey(s.Key) || s.Key.Role != catalog.RoleSessionKey:
		return fmt.Errorf("plan: shuffle key %q is not a session key", s.Key.Name)
	}
	if err := validateFeature(s.Key); err != nil {
		return fmt.Errorf("plan: shuffle key: %w", err)
	}
	return nil
}

func (s *Shuffle) String() string {
	if s.Unit == UnitNone {
		return "none"
	}
	text := fmt.Sprintf("%v, buffers of %d stripes, seed %d", s.Unit, s.BufferStripes, s.Seed)
	if s.Key.Name != "" {
		text += fmt.Sprintf(", sessions by %s", s.Key.Name)
	}
	return text
}
