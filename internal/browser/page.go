package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Page is a tab. Its methods are called one at a time.
type Page struct {
	b       *Browser
	target  string
	session string
	loaded  chan struct{} // has an element after a load

	mu       sync.Mutex // guards what follows
	messages []string
	requests []string
}

// NewPage opens an empty tab of width and height, in pixels.
func (b *Browser) NewPage(ctx context.Context, width, height int) (*Page, error) {
	p := &Page{b: b, loaded: make(chan struct{}, 1)}
	var target struct {
		ID string `json:"targetId"`
	}
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	p.target = target.ID
	var session struct {
		ID string `json:"sessionId"`
	}
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true},
		&session); err != nil {
		return nil, err
	}
	p.session = session.ID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := p.Call(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return p, p.Resize(ctx, width, height)
}

// Close closes the tab.
func (p *Page) Close(ctx context.Context) error {
	err := p.b.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": p.target}, nil)
	p.b.mu.Lock()
	delete(p.b.pages, p.session)
	p.b.mu.Unlock()
	return err
}

// Call calls a method of the DevTools Protocol.
func (p *Page) Call(ctx context.Context, method string, params, result any) error {
	return p.b.call(ctx, p.session, method, params, result)
}

// event keeps what the page did.
func (p *Page) event(method string, params json.RawMessage) {
	var e struct {
		Type string `json:"type"`
		Args []struct {
			Value       json.RawMessage `json:"value"`
			Description string          `json:"description"`
		} `json:"args"`
		ExceptionDetails struct {
			Text      string `json:"text"`
			Line      int    `json:"lineNumber"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
		} `json:"entry"`
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
	}
	_ = json.Unmarshal(params, &e) // events that we do not know have none of it
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case "Runtime.consoleAPICalled":
		text := e.Type + ":"
		for _, a := range e.Args {
			text += " " + string(a.Value) + a.Description
		}
		p.messages = append(p.messages, text)
	case "Runtime.exceptionThrown":
		p.messages = append(
			p.messages,
			fmt.Sprintf("exception: %s %s (line %d)", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description,
				e.ExceptionDetails.Line),
		)
	case "Log.entryAdded":
		p.messages = append(p.messages, e.Entry.Level+": "+e.Entry.Text)
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, e.Request.URL)
	}
}

// Messages returns what the page wrote to its console, threw, and was told by the browser. Copied.
func (p *Page) Messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// Requests returns the address of everything that the page asked for, itself first. Copied.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Open loads a page and waits until it is.
func (p *Page) Open(ctx context.Context, url string) error {
	select {
	case <-p.loaded:
	default:
	}
	var result struct {
		Error string `json:"errorText"`
	}
	if err := p.Call(ctx, "Page.navigate", map[string]any{"url": url}, &result); err != nil {
		return err
	}
	if result.Error != "" {
		return fmt.Errorf("browser: %s: %s", url, result.Error)
	}
	select {
	case <-p.loaded:
		return nil
	case <-p.b.done:
		return fmt.Errorf("browser: %s: it has ended", url)
	case <-ctx.Done():
		return fmt.Errorf("browser: %s: %w", url, ctx.Err())
	}
}

// Eval computes an expression, waits for it if it is a promise, and puts its value into result, unless that is nil.
func (p *Page) Eval(ctx context.Context, expression string, result any) error {
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := p.Call(
		ctx,
		"Runtime.evaluate",
		map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true},
		&out,
	)
	if err != nil {
		return err
	}
	if out.Exception != nil {
		return fmt.Errorf("browser: %s: %s %s", expression, out.Exception.Text, out.Exception.Exception.Description)
	}
	if result == nil {
		return nil
	}
	if out.Result.Value == nil {
		return fmt.Errorf("browser: %s: it has no value", expression)
	}
	return json.Unmarshal(out.Result.Value, result)
}

// WaitForFrame waits until the browser has made a frame of what was changed before: events of it have been seen, and
// what is done for each frame is done.
func (p *Page) WaitForFrame(ctx context.Context) error {
	return p.Eval(ctx, "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))", nil)
}

// Resize makes the page so many pixels wide and high.
func (p *Page) Resize(ctx context.Context, width, height int) error {
	return p.Call(
		ctx,
		"Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false},
		nil,
	)
}

// Media makes the page believe in a medium, screen or print, and in a preferred scheme, light or dark.
func (p *Page) Media(ctx context.Context, medium, scheme string) error {
	return p.Call(ctx, "Emulation.setEmulatedMedia", map[string]any{"media": medium,
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Move moves the mouse to a point of the window.
func (p *Page) Move(ctx context.Context, x, y float64) error { return p.mouse(ctx, "mouseMoved", x, y) }

// Click clicks there.
func (p *Page) Click(ctx context.Context, x, y float64) error {
	for _, what := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		if err := p.mouse(ctx, what, x, y); err != nil {
			return err
		}
	}
	return nil
}

func (p *Page) mouse(ctx context.Context, what string, x, y float64) error {
	params := map[string]any{"type": what, "x": x, "y": y}
	if what != "mouseMoved" {
		params["button"], params["clickCount"] = "left", 1
	}
	return p.Call(ctx, "Input.dispatchMouseEvent", params, nil)
}

// keys are those that do something other than type themselves, by their DOM names.
var keys = map[string]int{
	"Tab":        9,
	"Enter":      13,
	"Escape":     27,
	"PageUp":     33,
	"PageDown":   34,
	"End":        35,
	"Home":       36,
	"ArrowLeft":  37,
	"ArrowUp":    38,
	"ArrowRight": 39,
	"ArrowDown":  40,
}

// Key presses a key by its DOM name, as in ArrowDown.
func (p *Page) Key(ctx context.Context, name string) error {
	code, ok := keys[name]
	if !ok {
		return fmt.Errorf("browser: key %q is not one of %s", name, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
	}
	for _, what := range []string{"rawKeyDown", "keyUp"} {
		params := map[string]any{"type": what, "key": name, "code": name, "windowsVirtualKeyCode": code}
		if name == "Enter" && what == "rawKeyDown" {
			params["type"], params["text"] = "keyDown", "\r"
		}
		if err := p.Call(ctx, "Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}

// Type types a text into what has the focus.
func (p *Page) Type(ctx context.Context, text string) error {
	return p.Call(ctx, "Input.insertText", map[string]any{"text": text}, nil)
}

// Screenshot returns a PNG of the window, or of the whole page.
func (p *Page) Screenshot(ctx context.Context, whole bool) ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := p.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &out)
	return out.Data, err
}

// PDF returns the page as it would be printed.
func (p *Page) PDF(ctx context.Context) ([]byte, error) {
	var out struct {
		Data []byte `json:"data"`
	}
	err := p.Call(ctx, "Page.printToPDF", map[string]any{"preferCSSPageSize": true, "printBackground": true}, &out)
	return out.Data, err
}
