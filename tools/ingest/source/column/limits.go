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
	setDefault(&l.CellBytes, 64<<20)
	setDefault(&l.CellValues, 16<<20)
	setDefault(&l.BatchBytes, 1<<30)
	setDefault(&l.PageBytes, 512<<20)
	setDefault(&l.BlockBytes, 2<<30)
	setDefault(&l.LineBytes, 64<<20)
	setDefault(&l.Depth, 32)
	setDefault(&l.MapKeys, 100_000)
	setDefault(&l.Columns, 1_000_000)
	return l
}

func setDefault[T int | int64](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}
