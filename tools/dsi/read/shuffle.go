package read

import (
	"fmt"
	"strconv"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/terminal"
)

// shuffleFlags say in which order scan reads.
type shuffleFlags struct {
	Shuffle string `placeholder:"UNIT" help:"Interleave the sessions (session) or the samples (row) of a buffer of stripes; none keeps the table's order. Also print what the batches contain."`
	Buffer  int    `name:"shuffle-buffer" placeholder:"K" help:"Stripes in a shuffle buffer; with more stripes, a batch mixes more sessions. Default: 16."`
	Seed    uint64 `help:"Seed of the shuffle; every epoch has its own order."`
}

func (f *shuffleFlags) shuffle() (reader.Shuffle, error) {
	s := reader.Shuffle{BufferStripes: f.Buffer, Seed: f.Seed}
	unit := f.Shuffle
	if unit == "" {
		unit = "none"
	}
	var err error
	switch s.Unit, err = reader.ParseUnit(unit); {
	case err != nil:
		return s, terminal.Usagef("--%v", err)
	case s.Unit == reader.UnitNone && f.Buffer != 0:
		return s, terminal.Usagef("--shuffle-buffer %d needs --shuffle session or --shuffle row", f.Buffer)
	case s.Unit == reader.UnitNone && f.Seed != 0:
		return s, terminal.Usagef("--seed %d needs --shuffle session or --shuffle row", f.Seed)
	case f.Buffer < 0 || f.Buffer > reader.MaxBufferStripes:
		return s, terminal.Usagef("--shuffle-buffer %d: want 1 to %d stripes", f.Buffer, reader.MaxBufferStripes)
	}
	return s, nil
}

// shuffleJSON is what scan says of a shuffle: medians and means over batches.
type shuffleJSON struct {
	Unit           string      `json:"unit"`
	BufferStripes  int         `json:"buffer_stripes"` // 0 for none
	Seed           uint64      `json:"seed"`
	DedupeMedian   float64     `json:"dedupe_factor_median"`
	DedupeMean     float64     `json:"dedupe_factor_mean"`
	SessionsMedian float64     `json:"sessions_median"` // 0: not known
	SessionsMean   float64     `json:"sessions_mean"`
	Labels         []labelJSON `json:"labels"`
}

type labelJSON struct {
	Feature   string  `json:"feature"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"batch_deviation"` // of the batches' means
}

func newShuffleJSON(p *reader.Plan, s reader.InfoSummary) *shuffleJSON {
	out := &shuffleJSON{
		Unit: p.Shuffle.Unit.String(), BufferStripes: p.Shuffle.BufferStripes, Seed: p.Shuffle.Seed,
		DedupeMedian: s.DedupeMedian, DedupeMean: s.DedupeMean, SessionsMedian: s.SessionsMedian,
		SessionsMean: s.SessionsMean, Labels: make([]labelJSON, len(s.Labels)),
	}
	for i, l := range s.Labels {
		out.Labels[i] = labelJSON{p.Features[l.Feature].Name, l.Mean, l.Deviation}
	}
	return out
}

func (s *shuffleJSON) facts() [][2]string {
	if s == nil {
		return nil
	}
	order := s.Unit
	if s.BufferStripes > 0 {
		order += fmt.Sprintf(", buffers of %d stripes, seed %d", s.BufferStripes, s.Seed)
	}
	sessions := "not known: read the session key too"
	if s.SessionsMean > 0 {
		sessions = fmt.Sprintf("median %s per batch, mean %.1f", strconv.FormatFloat(s.SessionsMedian, 'f', -1, 64),
			s.SessionsMean)
	}
	facts := [][2]string{
		{"shuffle", order},
		{"sessions", sessions},
		{"shared", fmt.Sprintf("median %.2f rows per slot in a batch, mean %.2f", s.DedupeMedian, s.DedupeMean)},
	}
	for _, l := range s.Labels {
		facts = append(facts, [2]string{"label",
			fmt.Sprintf("%s %.4f, batches deviate by %.4f", l.Feature, l.Mean, l.Deviation)})
	}
	return facts
}
