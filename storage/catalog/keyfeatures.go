package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/wire"
)

// KeyFeatures is the schema's entry of the features whose role is a key:
//
//	number of features that it speaks of | (role (1) | name)...
//
// It holds in a snapshot of as many features, dropped ones not counted: keys are not dropped and keep their role, and a
// commit that adds, drops or renames features brings it up to date. Where it would be too long there is none, and
// readers go through the schema.
type KeyFeatures struct {
	Of   uint64
	Keys []KeyFeature
}

// A KeyFeature is one of them.
type KeyFeature struct {
	Role Role
	Name string
}

// MaxKeyFeatures bounds the entry, in bytes: it is to stay small beside the schema.
const MaxKeyFeatures = 4096

// AppendKeyFeatures appends the stored form of the entry.
func AppendKeyFeatures(dst []byte, k KeyFeatures) []byte {
	dst = binary.AppendUvarint(dst, k.Of)
	for _, f := range k.Keys {
		dst = append(dst, byte(f.Role))
		dst = wire.AppendString(dst, f.Name)
	}
	return dst
}

// DecodeKeyFeatures decodes what AppendKeyFeatures wrote; reason is empty when it is right.
func DecodeKeyFeatures(b []byte) (k KeyFeatures, reason string) {
	d := wire.Decoder{Rest: b}
	k.Of = d.Uvarint()
	for len(d.Rest) > 0 {
		f := KeyFeature{Role(d.Byte()), d.String()}
		if d.Reason == "" && !f.Role.IsKey() {
			d.Fail(fmt.Sprintf("%v is no key", f.Role))
		}
		k.Keys = append(k.Keys, f)
	}
	if d.Reason != "" {
		return KeyFeatures{}, "key features: " + d.Reason
	}
	return k, ""
}
