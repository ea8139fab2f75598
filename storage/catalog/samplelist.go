package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/wire"
)

// A SampleList is a named set of rows of a table: for each segment a set, empty where it has none, as of those ingested
// since.
type SampleList struct {
	Name string
	// Definition says what it was made from, for people: "click = 1", "keys of ids.csv", "a + b". At most 4,096 bytes.
	Definition string
	// Added is the snapshot that defined it, anew where it was replaced. Commit sets it.
	Added uint64
}

// Validate returns an error naming the first field that is wrong.
func (l SampleList) Validate() error {
	if err := CheckName("sample list", l.Name); err != nil {
		return err
	}
	if len(l.Definition) > MaxName {
		return fmt.Errorf("sample list %s: definition of %d bytes: want at most %d", l.Name, len(l.Definition), MaxName)
	}
	return nil
}

// AppendList appends the value of a sample list's entry, whose key has the name:
//
//	added | definition
//
// and that of its rows of a segment, like deleted rows: since | the set.
func AppendList(dst []byte, l SampleList) []byte {
	return wire.AppendString(binary.AppendUvarint(dst, l.Added), l.Definition)
}

// DecodeList decodes what AppendList wrote; the reason is empty when it is right.
func DecodeList(name string, b []byte) (SampleList, string) {
	d := wire.Decoder{Rest: b}
	l := SampleList{Name: name, Added: d.Uvarint(), Definition: d.String()}
	d.End()
	if d.Reason != "" {
		return SampleList{}, fmt.Sprintf("sample list %.150q: %s", name, d.Reason)
	}
	if err := l.Validate(); err != nil {
		return SampleList{}, err.Error()
	}
	return l, ""
}
