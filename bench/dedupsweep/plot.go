package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/dsistore/dsistore/reader"
)

func drain(ctx context.Context, sc *reader.Scanner) error {
	for {
		b, err := sc.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b.Release()
	}
}

// A drawing is one plot over samples a session, a line for each share of unchanged values.
type drawing struct {
	file, y string
	lines   []line
}

type line struct {
	name   string // after the share
	dashed bool
	value  func(p *point) float64
}

var drawings = []drawing{
	{"dedup-factor.svg", "rows a slot, user features", []line{
		{"stored", false, func(p *point) float64 { return p.SlotFactor }},
		{"formula", true, func(p *point) float64 { return p.Formula }},
	}},
	{"dedup-bytes.svg", "bytes a row", []line{
		{"", false, func(p *point) float64 { return p.BytesPerRow }},
		{"without dedup", true, func(p *point) float64 { return p.OffPerRow }},
	}},
	{"dedup-rate.svg", "samples/s, all features, one thread", []line{
		{"ikjt", false, func(p *point) float64 { return p.IKJTRate }},
		{"kjt", true, func(p *point) float64 { return p.KJTRate }},
	}},
}

func drawAll(dir string, points []point) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, d := range drawings {
		if err := d.draw(filepath.Join(dir, d.file), points); err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	return nil
}

func (d *drawing) draw(path string, points []point) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "samples a session", d.y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks(points))
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for _, l := range d.lines {
		for i, share := range shares(points) {
			var xy plotter.XYs
			for k := range points {
				if points[k].Unchanged == share {
					xy = append(xy, plotter.XY{X: points[k].Samples, Y: l.value(&points[k])})
				}
			}
			drawn, marks, err := plotter.NewLinePoints(xy)
			if err != nil {
				return err
			}
			drawn.Color, marks.Color, marks.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
			if l.dashed {
				drawn.Dashes = plotutil.Dashes(1)
			}
			p.Add(drawn, marks)
			p.Legend.Add(fmt.Sprintf("%.0f %% unchanged %s", 100*share, l.name), drawn, marks)
		}
	}
	return p.Save(18*vg.Centimeter, 11*vg.Centimeter, path)
}

func shares(points []point) []float64 {
	var out []float64
	for _, p := range points {
		if len(out) == 0 || out[len(out)-1] != p.Unchanged {
			out = append(out, p.Unchanged)
		}
	}
	return out
}

func ticks(points []point) []plot.Tick {
	var out []plot.Tick
	for _, p := range points {
		if p.Unchanged == points[0].Unchanged {
			out = append(out, plot.Tick{Value: p.Samples, Label: fmt.Sprint(p.Samples)})
		}
	}
	return out
}
