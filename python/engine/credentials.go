package engine

import (
	"context"
	"errors"
	"time"

	"github.com/dsistore/dsistore/storage/object/s3"
)

// providerParams name a function of Python that has credentials: by what stands for it in the storage options.
type providerParams struct {
	Provider string `json:"provider"`
}

// credentialsWanted waits until credentials are wanted of a provider. A thread of Python waits for it: the engine calls
// no function of Python, for which it would have to wait for the interpreter.
func (e *Engine) credentialsWanted(ctx context.Context, p *providerParams) (any, error) {
	return nil, s3.ExchangeOf(p.Provider).Wanted(ctx)
}

// credentialsParams are what was wanted, or why there is none.
type credentialsParams struct {
	providerParams
	AccessKeyID     string  `json:"access_key_id"`
	SecretAccessKey string  `json:"secret_access_key"`
	Token           string  `json:"token"`
	ExpiresAt       float64 `json:"expires_at"` // Unix seconds; 0: never
	Error           string  `json:"error"`
}

func (e *Engine) credentialsGive(_ context.Context, p *credentialsParams) (any, error) {
	var end time.Time
	if p.ExpiresAt > 0 {
		end = time.UnixMilli(int64(p.ExpiresAt * 1000))
	}
	var err error
	if p.Error != "" {
		err = errors.New(p.Error)
	}
	s3.ExchangeOf(p.Provider).Give(p.AccessKeyID, p.SecretAccessKey, p.Token, end, err)
	return nil, nil
}
