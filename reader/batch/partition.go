package batch

import (
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// fillPartition makes the column of a partition key. A partition is the same in all rows of a segment, so a piece has
// one value: its bytes are written once and then doubled.
//
//	pieces       |  ds=2026-11-01  |   ds=null   |  ds=2026-11-02  |
//	present       1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 1
//	data          2026-11-012026-...               2026-11-022026-...
func (e *exactColumn) fillPartition(b *Batch, l *batchLayout) error {
	c := &e.column
	c.Present = nil
	nulls, size := false, 0
	for i := range b.pieces {
		p := &b.pieces[i]
		v, ok := partitionValue(p.Stripe.Segment.Partition, e.partitionKey)
		nulls = nulls || !ok
		size += len(v) * (p.Hi - p.Lo)
		if size > vector.MaxElements {
			return tooLarge(b, l, e.feature)
		}
	}
	if nulls {
		c.Present = e.present.Resize(l.allocator, vector.BitmapWords(b.Rows))
		clear(c.Present)
	}
	c.Offsets = e.offsets.Resize(l.allocator, b.Rows+1)
	c.Offsets[0] = 0
	c.Data = e.data.Resize(l.allocator, size)
	at := 0
	for i := range b.pieces {
		p := &b.pieces[i]
		rows := p.Hi - p.Lo
		v, ok := partitionValue(p.Stripe.Segment.Partition, e.partitionKey)
		if nulls && ok {
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
	return nil
}

// partitionValue returns the value of a key; false: it is null, or p has no such key. A value that is not UTF-8 gets
// U+FFFD for what is wrong in it, for the column is of strings.
func partitionValue(p catalog.Partition, key string) (string, bool) {
	i := slices.IndexFunc(p, func(v catalog.PartitionValue) bool { return v.Key == key })
	if i < 0 || p[i].Null {
		return "", false
	}
	return strings.ToValidUTF8(p[i].Value, "\uFFFD"), true
}
