package writer

import (
	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Feature is a feature of the segments to write.
type Feature struct {
	catalog.Feature        // written to its files
	Number          int    // identifies the feature in Rows, spill files and Rewrite.Open
	RawBytes        uint64 // decoded bytes of all its rows; an estimate will do
	// Of a Rewrite, in bytes: the memory of all inputs' opened columns of the feature together, and of the largest one.
	HeldBytes, MostBytes int64

	choice   dedup.Choice // used by the one worker that writes the feature
	distinct float64      // of the segment's sample: dedup.Sampled.Distinct
}
