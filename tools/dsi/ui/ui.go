package ui

import (
	"context"
	"crypto/rand"
	"net"
	"os/exec"
	"runtime"

	"github.com/dsistore/dsistore/internal/serve"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/prices"
	"github.com/dsistore/dsistore/tools/terminal"
)

// UI serves the page of dsistat.
type UI struct {
	app.StoreArg
	Table  []string `arg:"" optional:"" complete:"tables" help:"Names of tables. Default: all."`
	Listen string   `default:":0" placeholder:"HOST:PORT" help:"Address to serve at. Without a host, only this machine can reach it; port 0 selects a free port. With a host, as in 0.0.0.0:8080, other machines can reach it. They need the key that is part of the address; the connection is not encrypted."`
	Open   bool     `help:"Open the page in the browser."`
}

// So many seconds are between two looks at the store, as long as a page is open.
const (
	lookEvery        = 5
	lookEveryOutside = 60 // at a store of a service, which takes money for requests
)

// Run runs the command until it is interrupted.
func (c *UI) Run(ctx context.Context, e *app.Env) error {
	store, err := c.StoreArg.Open(ctx, e)
	if err != nil {
		return err
	}
	s := &site{ctx: ctx, store: store, names: c.Table, every: lookEvery, key: rand.Text(),
		warn: func(text string) { e.Warnf("%s", text) }}
	if object.HighLatency(store.Blobs()) {
		s.every = lookEveryOutside
	}
	s.opts.Endpoint = c.EndpointURL
	if s.opts.Prices, err = prices.For(store.Blobs().URI(), ""); err != nil {
		return terminal.UsageError{Err: err}
	}
	err = s.look(ctx)
	if s.current == nil { // rather than a page that says it
		return err
	}
	s.looked(err)
	defer s.looking.Wait()
	s.host, _, _ = net.SplitHostPort(c.Listen) // Serve says what is wrong
	server, err := serve.Serve("--listen", c.Listen, s)
	if err != nil {
		return terminal.UsageError{Err: err}
	}
	defer server.Close()
	address := server.Addr()
	url := "http://" + address.String() + "/" + s.key + "/"
	if !address.IP.IsLoopback() {
		s.outside.Store(true)
		e.Warnf("every machine that reaches %v can see the figures if it knows the key in the address; nothing is "+
			"encrypted", address)
	}
	if e.JSON {
		err = e.PrintJSON(struct {
			URL string `json:"url"`
		}{url})
	} else {
		e.Printf("%s\nCtrl-C ends it.\n", url)
	}
	if err != nil {
		return err
	}
	if err := e.Out.Flush(); err != nil {
		return err
	}
	if c.Open {
		if err := openBrowser(url); err != nil {
			e.Warnf("--open: %v: open the address in a browser", err)
		}
	}
	<-ctx.Done()
	return nil
}

// openBrowser asks the system to show a page.
func openBrowser(url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // some stay until the browser ends
	return nil
}
