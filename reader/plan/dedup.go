package plan

// Dedup is the form of duplicates in a Batch. The names are written into plans; the numbers never change meaning.
//
//	rows  0 1 2 3 4      lists   [a b] [a b] [b c] [b c] [b c]
//
//	kjt       lengths 2 2 2 2 2     values a b a b b c b c b c                        a list a row
//	ikjt      lengths 2 2           values a b b c               inverse 0 0 1 1 1    a list a slot
//	partial   lengths 2 2           values a b c   starts 0 1    inverse 0 0 1 1 1    slots may overlap
//
// Batches have the duplicates that the segments store: nothing is hashed and no values are compared.
type Dedup uint8

const (
	// DedupKJT expands duplicates: every row has its own copy. The default.
	DedupKJT Dedup = 0
	// DedupIKJT has each slot that a batch uses once, and for each row its slot.
	DedupIKJT Dedup = 1
	// DedupPartial is DedupIKJT with slots that share values: each has a start and a length.
	DedupPartial Dedup = 2
)

var dedupNames = []string{DedupKJT: "kjt", DedupIKJT: "ikjt", DedupPartial: "partial"}

func (d Dedup) String() string { return nameOf("dedup", dedupNames, d) }

// ParseDedup returns the Dedup that String prints as s.
func ParseDedup(s string) (Dedup, error) { return parseName[Dedup]("dedup", dedupNames, s) }
