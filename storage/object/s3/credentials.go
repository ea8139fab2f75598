package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A source has the credentials that requests are signed with. Those that expire are asked for again before. Those that
// the service refuses are asked for where they come from anew, files too: somebody may have changed them. Safe for
// concurrent use.
type source struct {
	find func(context.Context) (aws.CredentialsProvider, error)

	renewing sync.Mutex // held by the one that renews
	at       time.Time  // of the last renewal; guarded by renewing

	mu   sync.Mutex
	from aws.CredentialsProvider // what find has found, first or last; it caches. Guarded by mu
}

const (
	// renewedAfter is how long credentials are used at least: what is refused may be what they sign, and not they.
	renewedAfter = 100 * time.Millisecond
	// renewTimeout bounds a renewal.
	renewTimeout = time.Minute
)

// Retrieve returns the credentials of now.
func (s *source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	s.mu.Lock()
	from := s.from
	s.mu.Unlock()
	return from.Retrieve(ctx)
}

// renew finds other credentials than those that signed a request which was refused. It reports whether there are.
func (s *source) renew(ctx context.Context, refused *http.Request) bool {
	_, by, _ := strings.Cut(refused.Header.Get("Authorization"), "Credential=")
	by, _, _ = strings.Cut(by, "/")
	token := refused.Header.Get("X-Amz-Security-Token")

	s.renewing.Lock()
	defer s.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	was, err := s.Retrieve(ctx)
	if err != nil || was.AccessKeyID != by || was.SessionToken != token { // changed meanwhile
		return err == nil
	}
	if time.Since(s.at) < renewedAfter {
		return false
	}
	// At the end, though it fails: the others that wait here need not wait for the same.
	defer func() { s.at = time.Now() }()
	fresh, err := s.find(ctx)
	if err != nil {
		return false // the service's error says more
	}
	is, err := fresh.Retrieve(ctx)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = fresh
	return was.AccessKeyID != is.AccessKeyID || was.SecretAccessKey != is.SecretAccessKey ||
		was.SessionToken != is.SessionToken
}

// refusals returns for how many answers of a status and a code to one request credentials are asked for anew: 0, they
// are about what was asked for. Answers to HEAD have no code of the service, and may be about either.
func refusals(status int, code string) int {
	switch code {
	case "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "TokenRefreshRequired", "SignatureDoesNotMatch":
		return 3
	case "", "Forbidden", "BadRequest", "Unauthorized":
		if status == http.StatusForbidden || status == http.StatusBadRequest || status == http.StatusUnauthorized {
			return 1
		}
	}
	return 0
}

// An Exchange gives credentials of a program that this one is part of, and that cannot be called from here: it asks
// whether some are wanted, and gives them. Safe for concurrent use, but for Wanted and Give, which one goroutine calls
// by turns.
type Exchange struct {
	wanted chan chan given
	asked  chan given // of the last Wanted
}

type given struct {
	is  aws.Credentials
	err error
}

// exchanges are by name: *Exchange.
var exchanges sync.Map

// ExchangeOf returns the Exchange of a name, which the option aws_credential_provider has.
func ExchangeOf(name string) *Exchange {
	x, _ := exchanges.LoadOrStore(name, &Exchange{wanted: make(chan chan given)})
	return x.(*Exchange)
}

// Wanted waits until credentials are wanted.
func (x *Exchange) Wanted(ctx context.Context) error {
	select {
	case x.asked = <-x.wanted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Give gives what was wanted last: credentials, or why there are none. The zero time is no end.
func (x *Exchange) Give(id, secret, token string, end time.Time, err error) {
	c := aws.Credentials{
		AccessKeyID: id, SecretAccessKey: secret, SessionToken: token, Source: "credential_provider",
		CanExpire: !end.IsZero(), Expires: end,
	}
	if c.CanExpire { // some of their time is left when they are asked for again
		c.Expires = end.Add(-min(max(time.Until(end)/2, 0), early))
	}
	x.asked <- given{c, err} // of one
}

const (
	// early is how long before their end credentials are asked for again, or half of their time.
	early = 5 * time.Minute
	// exchangeTimeout bounds how long the other program may take.
	exchangeTimeout = 2 * time.Minute
)

// Retrieve asks for credentials.
func (x *Exchange) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, exchangeTimeout,
		fmt.Errorf("credential_provider has given nothing for %s", exchangeTimeout))
	defer cancel()
	answer := make(chan given, 1)
	select {
	case x.wanted <- answer:
	case <-ctx.Done():
		return aws.Credentials{}, context.Cause(ctx)
	}
	select {
	case g := <-answer:
		if g.err == nil && (g.is.AccessKeyID == "" || g.is.SecretAccessKey == "") {
			g.err = errors.New("credential_provider has given no access key")
		}
		return g.is, g.err
	case <-ctx.Done():
		return aws.Credentials{}, context.Cause(ctx)
	}
}
