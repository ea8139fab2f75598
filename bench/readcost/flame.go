package main

import (
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"strings"
)

// A part of a read, and how its functions are known: the first part of which one is in a stack has the stack's time.
type part struct {
	name  string
	known []string
}

// parts are what a read consists of.
var parts = []part{
	{"read from the system", []string{"storage/object."}},
	{"checksum", []string{"hash/crc32."}},
	{"copy into batches: lists", []string{"reader.(*Jagged).fill", "reader.(*listFiller)."}},
	{"copy into batches: matrices", []string{"reader.(*Matrix).fill"}},
	{"slots of batches", []string{"reader.(*groupMaker).selectSlots"}},
	{"decode: zstd", []string{"compress/zstd."}},
	{"decode: dictionaries", []string{"encoding.LookUp", "encoding.lookUp"}},
	{"decode: inverses", []string{"StripeDecoder).decodeInverse"}},
	{"decode: other", []string{"format."}},
	{"open and plan", []string{"versus.(*StoreEngine).Open", "reader.(*Layout).", "storage."}},
	{"the rest of the reader", []string{"reader."}},
	{"runtime and the program", nil},
}

// partOf returns the place in parts of a stack.
func partOf(stack []string) int {
	for i, p := range parts {
		for _, k := range p.known {
			for _, name := range stack {
				if strings.Contains(name, k) {
					return i
				}
			}
		}
	}
	return len(parts) - 1
}

// short is a function's name without its module.
func short(name string) string {
	if at := strings.LastIndex(name, "/"); at >= 0 {
		name = name[at+1:]
	}
	return strings.ReplaceAll(name, "[...]", "")
}

// Of a flame graph, in pixels.
const (
	flameWidth  = 1200
	flameRow    = 17
	flameLeast  = 0.6 // a narrower frame is left out
	flameLetter = 6.6
	flameTop    = 46
)

// writeFlame draws a profile as a flame graph: each function as wide as its share of the time, on top of what called
// it; the share of a function is shown where the pointer rests on it.
func writeFlame(w io.Writer, profile []byte, title string) error {
	root := &frame{name: "all"}
	err := stacks(profile, func(stack []string, value int64) {
		names := make([]string, 0, len(stack))
		for _, s := range stack {
			if n := short(s); n != "sync.(*WaitGroup).Go.func1" && !strings.HasPrefix(n, "reader.(*run).work") &&
				n != "reader.(*run).task" {
				names = append(names, n)
			}
		}
		root.add(names, value)
	})
	if err != nil {
		return err
	}
	root.sort()
	var b strings.Builder
	deepest := 0
	var draw func(f *frame, x float64, depth int)
	draw = func(f *frame, x float64, depth int) {
		width := float64(f.value) / float64(root.value) * flameWidth
		if width < flameLeast {
			return
		}
		deepest = max(deepest, depth)
		h := fnv.New32a()
		_, _ = h.Write([]byte(strings.SplitN(f.name, ".", 2)[0])) // a package has a colour
		hue := h.Sum32() % 360
		name := html.EscapeString(f.name)
		fmt.Fprintf(&b, `<g><title>%s: %.1f %%</title>`+
			`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="hsl(%d 60%% 72%%)"/>`,
			name, 100*float64(f.value)/float64(root.value), x, flameTop+depth*flameRow, max(width-0.5, 0.4), flameRow-1,
			hue)
		if letters := int((width - 4) / flameLetter); letters >= 3 {
			text := f.name
			if len(text) > letters {
				text = text[:letters-1] + "…"
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, x+3, flameTop+depth*flameRow+12, html.EscapeString(text))
		}
		b.WriteString("</g>\n")
		for _, c := range f.children {
			draw(c, x, depth+1)
			x += float64(c.value) / float64(root.value) * flameWidth
		}
	}
	draw(root, 0, 0)
	_, err = fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="monospace" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
<text x="4" y="20" font-size="15">%s</text>
<text x="4" y="38">width: share of the processor's time; what a function calls lies below it; a colour a package</text>
%s</svg>
`, flameWidth, flameTop+(deepest+1)*flameRow+4, html.EscapeString(title), b.String())
	return err
}

// shares returns the time of each of parts as a share of all.
func shares(profile []byte) ([]float64, error) {
	out := make([]float64, len(parts))
	var total float64
	err := stacks(profile, func(stack []string, value int64) {
		out[partOf(stack)] += float64(value)
		total += float64(value)
	})
	for i := range out {
		out[i] /= max(total, 1)
	}
	return out, err
}
