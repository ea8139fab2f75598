package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func corpusRoot(t *testing.T) string {
	root := os.Getenv("DSISTORE_TESTDATA")
	if root == "" {
		root = "../../../../shared/testdata"
	}
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no corpus: set DSISTORE_TESTDATA (%v)", err)
	}
	return root
}

func TestCorpusQuick(t *testing.T) {
	root := corpusRoot(t)
	filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, ".parquet") && !strings.HasSuffix(p, ".parq") && !strings.HasSuffix(p, ".encrypted") && !strings.HasSuffix(p, ".orc") {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		files, err := Discover(ctx, []string{p}, Options{})
		rows, feats := 0, 0
		if err == nil && len(files) > 0 {
			var s Source
			if s, err = files[0].Open(ctx); err == nil {
				for {
					var c *Chunk
					if c, err = s.Next(ctx); err != nil {
						break
					}
					for i, col := range c.Columns {
						if verr := col.Validate(); verr != nil || col.Rows != c.Rows {
							t.Errorf("%s: %s: %v", p, c.Fields[i].Name, verr)
						}
					}
					rows += c.Rows
				}
				if err == io.EOF {
					err = nil
				}
				feats = len(s.Fields())
				s.Close()
			}
		}
		out := fmt.Sprintf("read rows=%d features=%d", rows, feats)
		if err != nil {
			k := "ERR"
			if errors.Is(err, ErrRefused) {
				k = "REFUSED"
			}
			var re *RowError
			if errors.As(err, &re) {
				k = "BADROW"
			}
			out = k + " " + strings.ReplaceAll(err.Error(), p, "")
		}
		fmt.Printf("%-60s %s\n", filepath.Base(p), out)
		return nil
	})
}
