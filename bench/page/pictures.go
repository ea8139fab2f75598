package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/dsistore/dsistore/internal/browser"
)

// pictures takes the documentation's: the whole page in light colours, its top in dark ones, and the table of 20,000 features, searched, with one
// of them chosen.
func pictures(ctx context.Context, b *browser.Browser, dir, to string) error {
	for _, picture := range []struct {
		name     string
		features int
		scheme   string
		height   int
		whole    bool
		do       string // before it is taken
	}{
		{"dsistat-light.png", 4000, "light", 900, true, "0"},
		{"dsistat-dark.png", 4000, "dark", 1500, false, "0"},
		{"dsistat-20000.png", 20000, "light", 1060, false, choose},
	} {
		address, _, err := write(dir, picture.features)
		if err != nil {
			return err
		}
		p, err := b.NewPage(ctx, 1280, picture.height)
		if err != nil {
			return err
		}
		if err := p.Media(ctx, "screen", picture.scheme); err != nil {
			return err
		}
		if err := p.Open(ctx, address); err != nil {
			return err
		}
		if err := p.Eval(ctx, picture.do, nil); err != nil {
			return err
		}
		if err := p.Settle(ctx); err != nil {
			return err
		}
		image, err := p.Screenshot(ctx, picture.whole)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, picture.name), image, 0o644); err != nil {
			return err
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// choose searches, and chooses the first feature found that is in a group.
const choose = `(() => {
	const search = document.querySelector("#features input");
	search.value = "user clicks sparse";
	search.dispatchEvent(new Event("input"));
	[...document.querySelectorAll("#features tbody.body tr")].find((tr) => tr.lastChild.textContent).firstChild.click();
	document.getElementById("features").scrollIntoView();
})()`
