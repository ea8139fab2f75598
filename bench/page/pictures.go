package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/dsistore/dsistore/internal/browser"
)

// A picture is one of the documentation: of the simulated month that bench/month wrote, or of so many made-up features.
type picture struct {
	name     string
	features int    // 0: the month's
	medium   string // screen or print
	scheme   string
	height   int
	do       string // before it is taken
}

// from brings a section to the top.
func from(id string) string { return "document.getElementById('" + id + "').scrollIntoView()" }

var allPictures = []picture{
	{"dsistat-top.png", 0, "screen", "light", 1330, "0"},
	{"dsistat-reads.png", 0, "screen", "light", 1210, from("popularity")},
	{"dsistat-dark.png", 0, "screen", "dark", 1010, from("map")},
	{"dsistat-feature.png", 0, "screen", "light", 1030, choose("history")},
	{"dsistat-print.png", 0, "print", "light", 1330, "0"},
	{"dsistat-20000.png", 20000, "screen", "light", 1060, choose("user clicks sparse")},
}

// pictures takes them all.
func (f *flags) pictures(ctx context.Context, b *browser.Browser, dir string) error {
	if f.Month == "" {
		return errors.New("pictures: want --month FILE, of go run ./bench/month --profile wide --only check --html " +
			"FILE")
	}
	month, err := filepath.Abs(f.Month)
	if err != nil {
		return err
	}
	for _, picture := range allPictures {
		address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(month)}).String()
		if picture.features > 0 {
			if address, _, err = write(dir, picture.features); err != nil {
				return err
			}
		}
		if err := picture.take(ctx, b, address, f.Pictures); err != nil {
			return err
		}
	}
	return nil
}

func (x *picture) take(ctx context.Context, b *browser.Browser, address, to string) error {
	width := 1280
	if x.medium == "print" {
		width = 794 // of A4
	}
	p, err := b.NewPage(ctx, width, x.height)
	if err != nil {
		return err
	}
	if err := p.Media(ctx, x.medium, x.scheme); err != nil {
		return err
	}
	if err := p.Open(ctx, address); err != nil {
		return err
	}
	if err := p.Eval(ctx, x.do, nil); err != nil {
		return err
	}
	if err := p.WaitForFrame(ctx); err != nil {
		return err
	}
	image, err := p.Screenshot(ctx, false)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, x.name), image, 0o644); err != nil {
		return err
	}
	return p.Close(ctx)
}

// choose searches, and chooses the first feature found that is in a group, or the first.
func choose(words string) string {
	return `(() => {
	const search = document.querySelector("#features input");
	search.value = "` + words + `";
	search.dispatchEvent(new Event("input"));
	const rows = [...document.querySelectorAll("#features tbody.body tr")];
	(rows.find((tr) => tr.lastChild.textContent) || rows[0]).firstChild.click();
	document.getElementById("features").scrollIntoView();
})()`
}
