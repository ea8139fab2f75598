package ingest

// A progress counts what is done of a phase and tells the caller. Its owner's lock guards it.
type progress struct {
	tell func(Progress) // may be nil
	now  Progress
}

func (p *progress) start(phase Phase, totalBytes int64) {
	p.now = Progress{Phase: phase, TotalBytes: totalBytes}
	p.add(0, 0)
}

func (p *progress) add(rows, bytes int64) {
	p.now.Rows += rows
	p.now.Bytes += bytes
	if p.tell != nil {
		p.tell(p.now)
	}
}
