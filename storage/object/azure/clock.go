package azure

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// A clock is the service's, as its answers tell it. Safe for concurrent use.
type clock struct {
	mu   sync.Mutex
	date time.Time // of the newest answer; guarded by mu
	at   time.Time // when it came, by this machine's clock; guarded by mu
}

var _ policy.Policy = (*clock)(nil)

// Do sees every answer.
func (c *clock) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err == nil {
		if date, derr := http.ParseTime(resp.Header.Get("Date")); derr == nil {
			c.mu.Lock()
			c.date, c.at = date, time.Now()
			c.mu.Unlock()
		}
	}
	return resp, err
}

// now returns the service's time. ask makes a request where there was none yet; its error counts where there is no
// answer.
func (c *clock) now(ask func() error) (time.Time, error) {
	if now, ok := c.told(); ok {
		return now, nil
	}
	err := ask()
	now, ok := c.told()
	if ok {
		return now, nil
	}
	if err == nil {
		err = errors.New("the service does not tell the time")
	}
	return time.Time{}, err
}

func (c *clock) told() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.date.Add(time.Since(c.at)), !c.at.IsZero()
}
