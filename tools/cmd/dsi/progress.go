package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress shows how far a command is: a bar when standard error is a terminal, and nothing otherwise. A nil progress
// shows nothing. Calls come from one goroutine at a time.
type progress struct {
	bar   *progressbar.ProgressBar
	what  string
	total int64
}

func (a *app) progress(what string) *progress {
	f, ok := a.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	p := &progress{what: what, total: -1}
	p.bar = progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetPredictTime(true))
	return p
}

// set says that done of total are done; a total of 0 is not known.
func (p *progress) set(done, total int64) { p.phase("", done, total) }

// phase is set for a part of the work that has a name.
func (p *progress) phase(what string, done, total int64) {
	if p == nil || p.bar == nil {
		return
	}
	if total <= 0 {
		total = -1
	}
	if what != "" && what != p.what {
		p.what = what
		p.bar.Reset()
		p.bar.Describe(what)
		p.total = 0
	}
	if total != p.total {
		p.total = total
		p.bar.ChangeMax64(total)
	}
	// The bar is an ornament: a terminal that it cannot write to is no reason to stop.
	_ = p.bar.Set64(done)
}

// finish takes the bar away. It may be called again.
func (p *progress) finish() {
	if p == nil || p.bar == nil {
		return
	}
	_ = p.bar.Finish()
	p.bar = nil
}
