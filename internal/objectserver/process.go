package objectserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"
)

// serve starts a server, and returns when it answers at its endpoint. stop ends it.
func serve(ctx context.Context, endpoint, path string, args ...string) (stop func(), err error) {
	var log bytes.Buffer
	c := exec.Command(path, args...)
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	stop = func() {
		_ = c.Process.Kill()
		<-ended
	}
	if err := wait(ctx, endpoint, ended); err != nil {
		stop()
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(path), err, log.Bytes())
	}
	return stop, nil
}

// wait returns when the server answers.
func wait(ctx context.Context, endpoint string, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(ask)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
