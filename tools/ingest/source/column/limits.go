package column

// Limits bound what an input may make the reader hold. Zero fields take the defaults.
type Limits struct {
	CellBytes  int64 // one string or byte string; default 64 MiB
	CellValues int64 // the values of one row of one column; default 16 Mi
	BatchBytes int64 // one column of one chunk; default 1 GiB
	PageBytes  int64 // a Parquet page, uncompressed; default 512 MiB
	BlockBytes int64 // an Arrow message (a record batch), uncompressed; default 2 GiB
	LineBytes  int64 // one line of text or JSON; default 64 MiB
	Depth      int   // nested types and JSON values; default 32
	MapKeys    int   // features that one map column may explode into; default 100,000
	Columns    int   // of a file; default 1,000,000
}

// WithDefaults returns l with the default in every zero field.
func (l Limits) WithDefaults() Limits {
	def := func(p *int64, v int64) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&l.CellBytes, 64<<20)
	def(&l.CellValues, 16<<20)
	def(&l.BatchBytes, 1<<30)
	def(&l.PageBytes, 512<<20)
	def(&l.BlockBytes, 2<<30)
	def(&l.LineBytes, 64<<20)
	if l.Depth <= 0 {
		l.Depth = 32
	}
	if l.MapKeys <= 0 {
		l.MapKeys = 100_000
	}
	if l.Columns <= 0 {
		l.Columns = 1_000_000
	}
	return l
}
