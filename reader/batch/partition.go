package batch

import (
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// The column of a partition key. All rows of a segment are in one partition, so a piece has one value: its bytes are
// written once, then copied with doubling size.
//
//	pieces       |  ds=2026-11-01  |   ds=null   |  ds=2026-11-02  |
//	present       1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 1
//	data          2026-11-012026-...               2026-11-022026-...

// measurePartition adds the arrays of presence, if a value is null, and offsets.
func (e *exactColumn) measurePartition(b *Batch) {
	for i := range b.pieces {
		if _, ok := partitionValue(b.pieces[i].Stripe.Segment.Partition, e.partitionKey); !ok {
			add[uint64](&b.block, e.arrays.present, vector.BitmapWords(b.Rows))
			break
		}
	}
	add[int32](&b.block, e.arrays.offsets, b.Rows+1)
}

// measurePartitionValues adds the array of the values' bytes.
func (e *exactColumn) measurePartitionValues(b *Batch, l *batchLayout) error {
	size := 0
	for i := range b.pieces {
		p := &b.pieces[i]
		v, _ := partitionValue(p.Stripe.Segment.Partition, e.partitionKey)
		if size += len(v) * (p.Hi - p.Lo); size > vector.MaxElements {
			return tooLarge(b, l, e.feature)
		}
	}
	addValues(&b.block, e, size)
	return nil
}

// fillPartition fills the column, after its arrays were allocated.
func (e *exactColumn) fillPartition(b *Batch) {
	c := &e.column
	clear(c.Present)
	c.Offsets[0] = 0
	at := 0
	for i := range b.pieces {
		p := &b.pieces[i]
		rows := p.Hi - p.Lo
		v, ok := partitionValue(p.Stripe.Segment.Partition, e.partitionKey)
		if ok && c.Present != nil {
			c.Present.SetRange(p.At, p.At+rows)
		}
		ends := c.Offsets[p.At+1 : p.At+1+rows]
		data := c.Data[at : at+rows*len(v)]
		for n := copy(data, v); n < len(data); {
			n += copy(data[n:], data[:n])
		}
		for r := range ends {
			at += len(v)
			ends[r] = int32(at)
		}
	}
}

// partitionValue returns the value of a key; false: it is null, or p has no such key. Because the column is a string,
// bytes that are not UTF-8 become U+FFFD.
func partitionValue(p catalog.Partition, key string) (string, bool) {
	i := slices.IndexFunc(p, func(v catalog.PartitionValue) bool { return v.Key == key })
	if i < 0 || p[i].Null {
		return "", false
	}
	return strings.ToValidUTF8(p[i].Value, "\uFFFD"), true
}
