package stream

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// ZstdDecoder returns the decoder that all readers share.
var ZstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		panic(err)
	}
	return d
})
