package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/storage/segment"
)

// parts are what bytes say, in the order in which they are shown.
var parts = []string{"dictionary", "values", "scores", "lengths", "starts", "inverse", "presence", "rest"}

// sizes are bytes per row by part.
type sizes map[string]float64

func (s sizes) total() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum
}

func (s sizes) add(o sizes) {
	for k, v := range o {
		s[k] += v
	}
}

// A line is what features take together, and what they take at least: what the generator drew, each draw once and at
// its entropy (workload.LowerBound).
type line struct {
	Name   string `json:"name"`
	Bound  sizes  `json:"lower_bound"`
	Stored sizes  `json:"stored"`
	codecs string
}

// lines returns a line for each family, for each feature where asked, and for all, the last.
func (f *flags) lines(ctx context.Context, dir string, dump *versus.Dump, total float64) ([]*line, error) {
	truth, err := workload.NewTruth(dump.Options)
	if err != nil {
		return nil, err
	}
	bounds, err := truth.LowerBounds()
	if err != nil {
		return nil, err
	}
	rows := float64(dump.Rows)
	by := map[string]*line{}
	var families, features []*line
	take := func(name string) *line {
		if by[name] == nil {
			by[name] = &line{Name: name, Bound: sizes{}, Stored: sizes{}}
		}
		return by[name]
	}
	family := map[string]string{}
	for _, name := range versus.Families {
		families = append(families, take(name))
	}
	for i, x := range truth.Features() {
		b := bounds[i]
		least := sizes{"dictionary": b.Dictionary, "values": b.Values, "scores": b.Scores, "lengths": b.Lengths,
			"starts":  b.Starts,
			"inverse": b.Inverse, "presence": b.Presence}
		for k := range least {
			least[k] /= 8 * rows
		}
		family[x.Name] = versus.FamilyName(x.Family)
		take(family[x.Name]).Bound.add(least)
		if f.Features {
			l := take(x.Name)
			l.Bound.add(least)
			features = append(features, l)
		}
	}
	err = versus.EachEntry(ctx, dir, func(e *segment.Entry) error {
		stored, codecs, err := measure(dir, e)
		if err != nil {
			return err
		}
		for k := range stored {
			stored[k] /= rows
		}
		name := family[e.Meta.Name]
		if name == "" {
			name = versus.Inverses
		} else if f.Features {
			l := take(e.Meta.Name)
			l.Stored.add(stored)
			l.codecs = codecs
		}
		take(name).Stored.add(stored)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := &line{Name: "all", Bound: sizes{}, Stored: sizes{}}
	for _, l := range families {
		all.Bound.add(l.Bound)
		all.Stored.add(l.Stored)
	}
	rest := total - all.Stored.total() // indexes and packs
	take(versus.Rest).Stored["rest"] += rest
	all.Stored["rest"] += rest
	return append(append(families, features...), all), nil
}

// kinds says what part each stream is of.
var kinds = map[format.StreamKind]string{
	format.Presence: "presence", format.InverseRuns: "inverse", format.InverseChanges: "inverse",
	format.InverseCodes: "inverse",
	format.Lengths:      "lengths", format.Values: "values", format.Scores: "scores", format.Starts: "starts",
	format.Codes: "values",
}

// measure returns the bytes of a feature file by part, and the codecs of its last stripe's values or codes. What is no
// stream, and checksums, are the rest.
func measure(dir string, e *segment.Entry) (sizes, string, error) {
	file, err := os.Open(filepath.Join(dir, filepath.FromSlash(e.Object)))
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	_, shared := e.Meta.Dictionary.Range()
	out := sizes{"rest": float64(e.Length - shared), "dictionary": float64(shared)}
	codecs := ""
	for i := range e.Meta.Stripes {
		s := &e.Meta.Stripes[i]
		at := s.Offset
		for _, f := range s.Streams {
			chunk := make([]byte, f.Length-4)
			if _, err := io.ReadFull(io.NewSectionReader(file, int64(e.Offset+at), math.MaxInt64), chunk); err != nil {
				return nil, "", err
			}
			at += f.Length
			n := float64(len(chunk))
			out["rest"] -= n
			part := kinds[f.Kind]
			if f.Kind == format.Values || f.Kind == format.Codes {
				codecs = encoding.Describe(chunk)
				d := dictionaryBytes(chunk)
				out["dictionary"] += d
				n -= d
			}
			if f.Kind == format.Values && s.Own > 0 {
				part = "dictionary" // of the stripe
			}
			out[part] += n
		}
	}
	return out, codecs, nil
}

// dictionaryBytes returns how much of a chunk its distinct values take, when it is a dictionary of numbers.
func dictionaryBytes(chunk []byte) float64 {
	if id := encoding.ID(chunk[0]); id != encoding.IDDictionary && id != encoding.IDFloatDictionary {
		return 0
	}
	_, n := binary.Uvarint(chunk[1:])
	length, _ := binary.Uvarint(chunk[1+n:])
	return float64(length)
}

// showLines prints what lines hold, beside the least that the same takes, in all and by part.
func showLines(lines []*line) {
	fmt.Printf("%-26s %11s %8s %6s ", "bytes per row", "lower bound", "stored", "times")
	for _, p := range parts {
		fmt.Printf(" %16s", p)
	}
	fmt.Println()
	for _, l := range lines {
		bound, stored := l.Bound.total(), l.Stored.total()
		times := ""
		if bound > 0 {
			times = fmt.Sprintf("%.2f", stored/bound)
		}
		fmt.Printf("%-26s %11.2f %8.2f %6s ", l.Name, bound, stored, times)
		for _, p := range parts {
			fmt.Printf(" %7.2f %8.2f", l.Bound[p], l.Stored[p])
		}
		fmt.Println(" ", l.codecs)
	}
}
