package usage

import (
	"fmt"
	"time"
)

// Options say how a Writer records. The zero value works.
type Options struct {
	// Now dates records. Default time.Now.
	Now func() time.Time
	// User and Host are who reads. Default: who the process belongs to, and where it runs.
	User, Host string
	// Interval is how often what open readers have done is written. Default 5 minutes. Below 0: only Flush writes.
	Interval time.Duration
	// Timeout bounds each write. Default 2 seconds.
	Timeout time.Duration
}

// Validate names the first field that no Writer can have.
func (o *Options) Validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("usage records: timeout %v: want 0 (default) or more", o.Timeout)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Interval == 0 {
		o.Interval = 5 * time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	return o
}
