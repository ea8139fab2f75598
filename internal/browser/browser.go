package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A Browser is a running Chromium. It may be used by several goroutines.
type Browser struct {
	cmd     *exec.Cmd
	in, out *os.File // what the browser reads, and what it writes
	profile string
	stderr  *bytes.Buffer // read after the process has ended
	done    chan struct{} // closed when nothing comes any more

	mu      sync.Mutex // guards what follows, and writes to in
	last    int
	waiting map[int]chan answer
	pages   map[string]*Page // by session
	ended   error
}

// An answer is to a call, or an event.
type answer struct {
	ID      int             `json:"id"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
		Data    string `json:"data"`
	} `json:"error"`
}

// flags let nothing out of the browser: no name is resolved and no address reached but 127.0.0.1, nothing is updated,
// synchronised or reported. There is no sandbox, because containers and root cannot have one: what is opened are pages
// of ours.
var flags = []string{
	"--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
	"--no-first-run", "--no-default-browser-check",
	"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
	"--disable-quic", "--disable-sync",
	"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
	"--force-color-profile=srgb", "--hide-scrollbars", "--mute-audio",
}

// Start starts the browser at path. The caller owns it until Close.
func Start(path string) (*Browser, error) {
	profile, err := os.MkdirTemp("", "dsistore-browser-")
	if err != nil {
		return nil, err
	}
	b := &Browser{profile: profile, stderr: &bytes.Buffer{}, done: make(chan struct{}), waiting: map[int]chan answer{},
		pages: map[string]*Page{}}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close(), os.RemoveAll(profile))
	}
	b.in, b.out = in, out
	b.cmd = exec.Command(path, append(flags, "--user-data-dir="+profile)...)
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	b.cmd.Stderr = b.stderr
	err = b.cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close(), os.RemoveAll(profile))
	}
	go b.receive()
	return b, nil
}

// Close ends the browser and removes what it wrote.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = b.call(ctx, "", "Browser.close", nil, nil) // it may be gone before it answers
	select {
	case <-b.done:
	case <-ctx.Done():
		_ = b.cmd.Process.Kill()
	}
	_ = b.in.Close()
	_ = b.cmd.Wait() // its exit status says nothing
	_ = b.out.Close()
	<-b.done
	// Its children may be writing still.
	err := os.RemoveAll(b.profile)
	for range 20 {
		if err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
		err = os.RemoveAll(b.profile)
	}
	return err
}

// receive takes what the browser says until it says no more.
func (b *Browser) receive() {
	defer close(b.done)
	r := bufio.NewReaderSize(b.out, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("browser: it has ended")
			}
			b.mu.Lock()
			b.ended = err
			for id, c := range b.waiting {
				close(c)
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) != nil {
			continue
		}
		b.mu.Lock()
		waiting, page := b.waiting[a.ID], b.pages[a.Session]
		delete(b.waiting, a.ID)
		b.mu.Unlock()
		switch {
		case a.ID != 0 && waiting != nil:
			waiting <- a
		case page != nil:
			page.event(a.Method, a.Params)
		}
	}
}

// call does what method says and puts what it returns into result, unless that is nil.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	if params == nil {
		params = struct{}{}
	}
	b.mu.Lock()
	if b.ended != nil {
		defer b.mu.Unlock()
		return b.ended
	}
	b.last++
	id, c := b.last, make(chan answer, 1)
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{id, session, method, params})
	if err == nil {
		b.waiting[id] = c
		_, err = b.in.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("browser: %s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("browser: %s: %w", method, ctx.Err())
	case a, ok := <-c:
		switch {
		case !ok:
			return fmt.Errorf("browser: %s: %w", method, b.ended)
		case a.Error != nil:
			return fmt.Errorf("browser: %s: %s %s", method, a.Error.Message, a.Error.Data)
		case result == nil:
			return nil
		}
		return json.Unmarshal(a.Result, result)
	}
}
