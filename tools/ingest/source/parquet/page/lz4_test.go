package page

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"
)

// oldLZ4 compresses parts as one page: in Hadoop's framing, or, without it, the first as a block.
func oldLZ4(t *rapid.T, frames [][][]byte, hadoop bool) (page, packed []byte) {
	for _, frame := range frames {
		whole := bytes.Join(frame, nil)
		page = append(page, whole...)
		packed = binary.BigEndian.AppendUint32(packed, uint32(len(whole)))
		for _, part := range frame {
			block := lz4Block(t, part)
			packed = append(binary.BigEndian.AppendUint32(packed, uint32(len(block))), block...)
		}
	}
	if !hadoop {
		packed = lz4Block(t, page)
	}
	return page, packed
}

// lz4Block compresses b, as one literal where it does not compress.
func lz4Block(t *rapid.T, b []byte) []byte {
	out := make([]byte, lz4.CompressBlockBound(len(b)))
	n, err := lz4.CompressBlock(b, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		return out[:n]
	}
	token := []byte{byte(min(len(b), 15) << 4)}
	if left := len(b) - 15; left >= 0 {
		for ; left >= 255; left -= 255 {
			token = append(token, 255)
		}
		token = append(token, byte(left))
	}
	return append(token, b...)
}

// TestOldLZ4 reads pages in both framings, and never more or less than the page, whatever the bytes are.
func TestOldLZ4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 1, 400),
			rapid.Map(rapid.IntRange(1, 4000), func(n int) []byte { return bytes.Repeat([]byte{7, 0, 0}, n) }),
		)
		frames := rapid.SliceOfN(rapid.SliceOfN(part, 1, 3), 1, 3).Draw(t, "frames")
		page, packed := oldLZ4(t, frames, rapid.Bool().Draw(t, "hadoop"))
		p := &Reader{}
		got := make([]byte, len(page))
		if err := p.decompress(got, packed, compress.Codecs.Lz4); err != nil || !bytes.Equal(got, page) {
			t.Fatalf("%v", err)
		}
		for _, wrong := range []int{len(page) - 1, len(page) + 1} {
			if err := p.decompress(make([]byte, wrong), packed, compress.Codecs.Lz4); wrong > 0 && err == nil {
				t.Fatalf("a page of %d bytes was read as one of %d", len(page), wrong)
			}
		}
		bad := bytes.Clone(packed)
		bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		_ = p.decompress(got, bad[:rapid.IntRange(0, len(bad)).Draw(t, "cut")], compress.Codecs.Lz4)
	})
}
