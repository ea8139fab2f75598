package describe

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Inspect prints the annotated bytes of a file.
type Inspect struct {
	File string `arg:"" help:"A feature file or a pack."`
}

// inspectJSON is what inspect prints with --json: the directories, not the bytes.
type inspectJSON struct {
	File         string            `json:"file"`
	Bytes        int64             `json:"bytes"`
	FeatureFiles []featureFileJSON `json:"feature_files"`
}

type featureFileJSON struct {
	ID       string       `json:"id"`
	Name     string       `json:"feature"`
	Type     string       `json:"type"`
	Offset   uint64       `json:"offset"`
	Length   uint64       `json:"length"`
	Rows     uint64       `json:"rows"`
	NullRows uint64       `json:"null_rows"`
	Elements uint64       `json:"elements"`
	RawBytes uint64       `json:"raw_bytes"`
	Stripes  []stripeJSON `json:"stripes"`
}

// stripeJSON is one stripe; its offset is in the file that was inspected.
type stripeJSON struct {
	Offset   uint64 `json:"offset"`
	Length   uint64 `json:"length"`
	Rows     uint32 `json:"rows"`
	Slots    uint32 `json:"slots"`
	Present  uint32 `json:"present"`
	Elements uint64 `json:"elements"`
}

// Run runs the command.
func (c *Inspect) Run(ctx context.Context, e *app.Env) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return terminal.Usagef("%s: not a file", c.File)
	}
	out := inspectJSON{File: c.File, Bytes: info.Size(), FeatureFiles: []featureFileJSON{}}
	if !e.JSON {
		err = format.Dump(e.Out, f, info.Size())
	} else if err = out.read(f); err == nil {
		return e.PrintJSON(out)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return nil
}

// read adds the feature files of a pack, or the one that r is.
func (i *inspectJSON) read(r io.ReaderAt) error {
	entries, packErr := format.OpenPack(r, i.Bytes, format.Limits{})
	if packErr != nil {
		entries = []format.PackEntry{{Length: uint64(i.Bytes)}}
	}
	for _, e := range entries {
		m, err := format.OpenFile(r, int64(e.Offset), int64(e.Length), format.Limits{})
		if err != nil && packErr != nil {
			return fmt.Errorf("neither a pack (%w) nor a feature file (%w)", packErr, err)
		}
		if err != nil {
			return err
		}
		file := featureFileJSON{
			ID: fmt.Sprintf("%016x", m.Feature), Name: m.Name, Type: m.Type.String(), Offset: e.Offset,
			Length: e.Length, Rows: m.Rows, NullRows: m.Stats.NullRows, Elements: m.Stats.Elements,
			RawBytes: m.Stats.RawBytes, Stripes: []stripeJSON{},
		}
		for _, s := range m.Stripes {
			file.Stripes = append(file.Stripes, stripeJSON{e.Offset + s.Offset, s.Length, s.Rows, s.Slots, s.Present,
				s.Elements})
		}
		i.FeatureFiles = append(i.FeatureFiles, file)
	}
	return nil
}
