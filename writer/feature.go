package writer

import (
	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Feature is one that segments are written with.
type Feature struct {
	catalog.Feature        // as its files are to say
	Number          int    // stands for the feature in Rows, spill files and columns that are opened
	RawBytes        uint64 // that its rows decode to
	// Of a Rewrite: memory of its opened columns, one of each input, and what one of them takes at most.
	HeldBytes, MostBytes int64

	choice dedup.Choice // by the worker that writes the feature
}
