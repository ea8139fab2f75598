package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/wire"
)

// keyFeatures is the schema's entry of the features whose role is a key:
//
//	number of features that it speaks of | (role (1) | name)...
//
// It holds in a snapshot of as many features, dropped ones not counted: keys are not dropped and keep their role, and a commit that adds, drops
// or renames features brings it up to date. Where it would be too long there is none, and readers go through the schema.
type keyFeatures struct {
	of   uint64
	keys []keyFeature
}

type keyFeature struct {
	role Role
	name string
}

// maxKeyFeatures bounds the entry, in bytes: it is to stay small beside the schema.
const maxKeyFeatures = 4096

func appendKeyFeatures(dst []byte, k keyFeatures) []byte {
	dst = binary.AppendUvarint(dst, k.of)
	for _, f := range k.keys {
		dst = append(dst, byte(f.role))
		dst = wire.AppendString(dst, f.name)
	}
	return dst
}

// decodeKeyFeatures decodes what appendKeyFeatures wrote; reason is empty when it is right.
func decodeKeyFeatures(b []byte) (k keyFeatures, reason string) {
	d := wire.Decoder{Rest: b}
	k.of = d.Uvarint()
	for len(d.Rest) > 0 {
		f := keyFeature{Role(d.Byte()), d.String()}
		if d.Reason == "" && !f.role.IsKey() {
			d.Fail(fmt.Sprintf("%v is no key", f.role))
		}
		k.keys = append(k.keys, f)
	}
	if d.Reason != "" {
		return keyFeatures{}, "key features: " + d.Reason
	}
	return k, ""
}

// keyFeatures returns the entry, nil where there is none that holds. Its cost is one look-up.
func (s *Snapshot) keyFeatures(ctx context.Context) (*keyFeatures, error) {
	if s.m.info.Features == 0 {
		return &keyFeatures{}, nil
	}
	values, err := s.t.s.get(ctx, s.m.schema, keysKey())
	if err != nil || values[0] == nil {
		return nil, err
	}
	k, reason := decodeKeyFeatures(values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.treeName(s.m.schema), reason)
	}
	if k.of != s.m.info.Features {
		return nil, nil
	}
	return &k, nil
}

// KeyFeatures returns the session, request, user and time keys of the schema, in name order. Its cost is two look-ups; in a
// snapshot of a writer that did not note them it is the schema's.
func (s *Snapshot) KeyFeatures(ctx context.Context) ([]Feature, error) {
	k, err := s.keyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	if k == nil {
		all, err := s.Features(ctx)
		return slices.DeleteFunc(all, func(f Feature) bool { return !f.Role.IsKey() }), err
	}
	var names []string
	for _, f := range k.keys {
		names = append(names, f.name)
	}
	slices.Sort(names)
	found, err := s.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	var out []Feature
	for i, f := range found {
		if f == nil || !slices.Contains(k.keys, keyFeature{f.Role, f.Name}) {
			return nil, wire.Corrupt(s.treeName(s.m.schema), fmt.Sprintf("key features: %.100q is not what it is said to be", names[i]))
		}
		out = append(out, *f)
	}
	return out, nil
}

// A renamed feature, in either of its names.
type renamed struct{ from, to string }

// keys brings the entry up to date with the features that the change adds, drops and renames.
func (e *edit) keys(ctx context.Context) error {
	before, after := e.base.m.info.Features, e.info.Features
	if len(e.added) == 0 && len(e.renamed) == 0 && before == after {
		return nil
	}
	k, err := e.base.keyFeatures(ctx)
	if err != nil {
		return err
	}
	if k != nil {
		k.of = after
		for _, f := range e.added {
			if f.Role.IsKey() {
				k.keys = append(k.keys, keyFeature{f.Role, f.Name})
			}
		}
		for _, r := range e.renamed {
			for i := range k.keys {
				if k.keys[i].name == r.from {
					k.keys[i].name = r.to
					break
				}
			}
		}
		if value := appendKeyFeatures(nil, *k); len(value) <= maxKeyFeatures {
			e.schema = append(e.schema, entry{keysKey(), value})
			return nil
		}
	}
	// What does not fit is left out, and readers go through the schema. An entry that stayed could hold again, wrongly: with features dropped
	// their number might come back to it.
	e.schema = append(e.schema, entry{keysKey(), nil})
	return nil
}
