package app

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/dsistore/dsistore/tools/metrics"
)

// A Unit is what the work of a command is counted in; its bar shows how much is done, and how fast.
type Unit string

const (
	UnitBytes   Unit = "bytes"
	UnitSamples Unit = "samples"
	UnitValues  Unit = "values"
)

// A Progress shows how far a command is, with its rate: as a bar when standard error is a terminal, and in the
// command's metrics where it has some. A nil Progress shows nothing. Calls come from one goroutine at a time.
type Progress struct {
	out      io.Writer // nil: no terminal
	throttle time.Duration
	bar      *progressbar.ProgressBar // nil: not begun, or finished
	finished bool
	unit     Unit
	what     string
	total    int64

	metrics *metrics.Metrics
	command string
}

// Progress begins to show how far the command is. Finish ends it.
func (e *Env) Progress(what string, u Unit) *Progress {
	p := &Progress{
		what: what, unit: u, throttle: 100 * time.Millisecond, metrics: e.Metrics, command: e.command,
	}
	if f, ok := e.Err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.out = f
	}
	if p.out == nil && p.metrics == nil {
		return nil
	}
	p.begin()
	return p
}

// begin puts a bar on the terminal.
func (p *Progress) begin() {
	p.total = -1
	if p.out == nil {
		return
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(p.what),
		progressbar.OptionThrottle(p.throttle),
		progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetPredictTime(true), progressbar.OptionShowCount(),
		// Else a goroutine draws too, and goes on with the bar of a phase that is over.
		progressbar.OptionSetSpinnerChangeInterval(0),
	}
	if p.unit == UnitBytes {
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true))
	} else {
		options = append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString(string(p.unit)))
	}
	p.bar = progressbar.NewOptions64(-1, options...)
}

// Set says that done of total are done; a total of 0 is not known.
func (p *Progress) Set(done, total int64) {
	if p != nil {
		p.PhaseIn(p.unit, "", done, total)
	}
}

// Phase is Set for a part of the work that has a name.
func (p *Progress) Phase(what string, done, total int64) {
	if p != nil {
		p.PhaseIn(p.unit, what, done, total)
	}
}

// PhaseIn is Phase for a part that is counted in another unit.
func (p *Progress) PhaseIn(u Unit, what string, done, total int64) {
	if p == nil || p.finished {
		return
	}
	if what == "" {
		what = p.what
	}
	p.metrics.Work(p.command, what, done, total)
	if p.bar == nil {
		return
	}
	if total <= 0 {
		total = -1
	}
	if what != p.what || u != p.unit {
		_ = p.bar.Clear()
		p.what, p.unit = what, u
		p.begin()
	}
	if total != p.total {
		p.total = total
		p.bar.ChangeMax64(total)
	}
	// The bar is an ornament: a terminal that it cannot write to is no reason to stop.
	_ = p.bar.Set64(done)
}

// Clear takes the bar away until it moves again, so that something can be printed in its place.
func (p *Progress) Clear() {
	if p != nil && p.bar != nil {
		_ = p.bar.Clear()
	}
}

// Finish takes the bar away. It may be called again.
func (p *Progress) Finish() {
	if p == nil || p.finished {
		return
	}
	p.finished = true
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
