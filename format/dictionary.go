package format

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// DictionaryMeta is the size of a feature file's dictionary, which is between the header and the first stripe. Length
// is 0 if there is none.
type DictionaryMeta struct {
	Values uint32
	Length uint64 // bytes, its checksum included
}

// Range returns the position of the dictionary in the feature file, in bytes.
func (d DictionaryMeta) Range() (offset, length uint64) { return headerLength, d.Length }

// DecodedBytes returns the memory of the decoded dictionary.
func (d DictionaryMeta) DecodedBytes() uint64 { return 8 * uint64(d.Values) }

// check returns what is wrong with the dictionary of a file of type t, or "".
func (d DictionaryMeta) check(t vector.Type, limits Limits) string {
	switch {
	case !mayShare(t):
		return fmt.Sprintf("a dictionary in a file of type %v", t)
	case d.Values == 0:
		return "a dictionary of no values"
	case uint64(d.Values) > limits.DictionaryValues:
		return fmt.Sprintf("dictionary of %d values, over the limit of %d", d.Values, limits.DictionaryValues)
	case d.Length <= checksumLength || d.Length > storedSlack+2*d.DecodedBytes():
		return fmt.Sprintf("dictionary of %d bytes for %d values", d.Length, d.Values)
	}
	return ""
}

// mayShare reports whether a dictionary may hold values of type t: integers, except in embeddings.
func mayShare(t vector.Type) bool {
	return t.Physical() == vector.Int64Values && t.Kind != vector.Embedding && t.Kind != vector.Inverse
}

// A Dictionary is the decoded dictionary of a feature file: the values that several of its stripes share. Many decoders
// may use it concurrently, unless one decodes into it. The zero Dictionary is empty.
type Dictionary struct {
	values []int64
}

// dictionaryStream is the dictionary's name in CorruptError.Stream.
const dictionaryStream = "dictionary"

// DecodeDictionary decodes the dictionary of m from src, its m.Dictionary.Length bytes, into dst, whose memory is
// reused. Errors are as in DecodeStripe, with Stripe -1. After an error dst is empty.
func (d *StripeDecoder) DecodeDictionary(dst *Dictionary, m *FileMeta, src []byte) error {
	dst.values = dst.values[:0]
	if reason := m.Dictionary.check(m.Type, d.limits); reason != "" {
		return dictionaryError(errors.New(reason))
	}
	if err := VerifyDictionary(m, src); err != nil {
		return err
	}
	values := vector.Resize(dst.values, int(m.Dictionary.Values))
	if err := d.codec.Ints(values, src[:len(src)-checksumLength]); err != nil {
		return dictionaryError(err)
	}
	if err := outOfRange(m.Type, values, nil); err != nil {
		return dictionaryError(err)
	}
	dst.values = values
	return nil
}

// VerifyDictionary checks the checksum of the dictionary, whose bytes are src, without decoding it.
func VerifyDictionary(m *FileMeta, src []byte) error {
	if uint64(len(src)) != m.Dictionary.Length || len(src) <= checksumLength {
		return dictionaryError(fmt.Errorf("%d bytes, want %d", len(src), m.Dictionary.Length))
	}
	chunk := src[:len(src)-checksumLength]
	got := newStreamContext(m.Salt, dictionaryStripe).sum(dictionaryKind, chunk)
	if want := binary.LittleEndian.Uint32(src[len(chunk):]); got != want {
		return dictionaryError(fmt.Errorf("checksum %08x, want %08x", got, want))
	}
	return nil
}

func dictionaryError(err error) error {
	return streamError(CorruptError{Stripe: -1, Stream: dictionaryStream, Offset: headerLength}, err)
}

// Use sets the dictionary for the stripes that are decoded next; nil for none. It is borrowed until the next Use.
func (d *StripeDecoder) Use(dictionary *Dictionary) { d.dictionary = dictionary }
