package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/dsi/describe"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Overlay adds or replaces features of a table without rewriting it.
type Overlay struct {
	Add    overlayAdd    `cmd:"" help:"Add or replace features of a table: from files joined by a key, or from an expression." example:"dsi overlay add store ads returned --from returns.csv --key request_id --label"`
	Extend overlayExtend `cmd:"" help:"Add values for rows that have none in an overlay, such as rows ingested since: from files, or from an expression." example:"dsi overlay extend store ads bought --from more_labels.csv --key request_id"`
	List   overlayList   `cmd:"" help:"List a table's overlays, and how much they cover." example:"dsi overlay list store ads"`
	Show   overlayShow   `cmd:"" help:"Show an overlay's features, and how much of each segment it covers." example:"dsi overlay show store ads bought"`
	Drop   overlayDrop   `cmd:"" destructive:"" help:"Drop an overlay." example:"dsi overlay drop store ads bought"`
	Merge  overlayMerge  `cmd:"" help:"Make an overlay part of the table, for all readers." example:"dsi overlay merge store ads bought"`
}

// policies are the words for missing-value policies.
var policies = map[string]catalog.MissingPolicy{
	"fallthrough": catalog.FallThrough, "null": catalog.Null, "refuse": catalog.Refuse,
}

func policyText(u catalog.MissingPolicy) string {
	for name, v := range policies {
		if v == u {
			return name
		}
	}
	return u.String()
}

// overlaySource is where the features of an overlay come from.
type overlaySource struct {
	From    []string `placeholder:"FILE" help:"Files or directories to join, or - for an Arrow IPC stream on standard input. May be repeated."`
	Key     []string `placeholder:"FEATURE" help:"Feature by which rows of the files and the table are joined; several, separated by commas, form one key. Default: the table's request key."`
	Format  string   `default:"auto" enum:"auto,parquet,hive,orc,csv,text,jsonl,arrow" help:"auto, parquet, hive, orc, csv or text (the same), jsonl or arrow."`
	Mapping string   `placeholder:"FILE" help:"Mapping file: names, kinds and roles of columns, and columns to drop."`
	DDL     string   `name:"ddl" placeholder:"FILE" help:"The schema of a text dump, as Hive's SHOW CREATE TABLE prints it."`
	Expr    []string `sep:"none" placeholder:"EXPR" help:"A feature and a condition, as in 'label_v2 = click = 1 AND dwell > 10': 1 where the condition is true, 0 where it is false, null where it is unknown; or a number, as in 'ctr = clicks / shows'. May be repeated."`
	Over    []string `sep:"none" placeholder:"NAME" help:"An overlay to apply when the features of --expr are read. May be repeated, lowest first."`
	Memory  app.Size `default:"1GiB" placeholder:"SIZE" help:"Memory to stay within, as in 512MiB, 1GiB or 4g."`
	app.UsageFlags
}

// OverlayFlag returns the flag that reads another overlay.
func (s overlaySource) OverlayFlag() string { return "--over" }

// options returns what the flags say, and the default job.
func (s *overlaySource) options(ctx context.Context, e *app.Env, job string) overlay.Options {
	opts := overlay.Options{
		From: s.From, Key: s.Key, MappingFile: s.Mapping, DDLFile: s.DDL, Exprs: s.Expr, Over: s.Over,
		Memory: int64(s.Memory), Usage: s.Usage(job),
	}
	if s.Format != "auto" {
		opts.Format = s.Format
	}
	if slices.Contains(s.From, "-") {
		opts.Stdin = e.Interruptible(ctx)
	}
	return opts
}

type overlayAdd struct {
	app.TableArgs
	app.MetricsFlag
	overlayArg
	overlaySource
	Features      []string `placeholder:"NAMES" help:"The features of the files to take. Default: all but the key."`
	Label         bool     `help:"Give features that are new to the table the role label."`
	MissingRows   string   `default:"fallthrough" enum:"fallthrough,null" help:"Value in rows that the overlay has no value for: fallthrough, the value below, or null."`
	MissingLayers string   `default:"fallthrough" enum:"fallthrough,null,refuse" help:"Value in segments that are ingested later: fallthrough, the value below, null, or refuse (reading such a segment is an error)."`
	Replace       bool     `help:"Drop an existing overlay of this name in the same commit."`
}

func (c *overlayAdd) Run(ctx context.Context, e *app.Env) error {
	opts := c.options(ctx, e, "overlay add")
	opts.Features, opts.Replace = c.Features, c.Replace
	opts.MissingRows, opts.MissingLayers = policies[c.MissingRows], policies[c.MissingLayers]
	if c.Label {
		opts.Role = catalog.RoleLabel
	}
	return c.cover(ctx, e, c.TableArgs, opts, overlay.Add)
}

type overlayExtend struct {
	app.TableArgs
	app.MetricsFlag
	overlayArg
	overlaySource
}

func (c *overlayExtend) Run(ctx context.Context, e *app.Env) error {
	return c.cover(ctx, e, c.TableArgs, c.options(ctx, e, "overlay extend"), overlay.Extend)
}

// cover runs what makes an overlay, or covers more rows by it, and prints its report.
func (c overlayArg) cover(ctx context.Context, e *app.Env, t app.TableArgs, opts overlay.Options,
	run func(context.Context, *storage.Store, string, string, overlay.Options) (overlay.Report, error)) error {
	switch {
	case len(opts.From) == 0 && len(opts.Exprs) == 0:
		return terminal.Usagef("say what the overlay is made from: --from FILE or --expr EXPR")
	case len(opts.From) > 0 && len(opts.Exprs) > 0:
		return terminal.Usagef("--from and --expr: want one of them")
	}
	if err := opts.Validate(); err != nil {
		return terminal.UsageError{Err: err}
	}
	store, err := t.Open(ctx, e)
	if err != nil {
		return err
	}
	bar := e.Progress("overlay", app.UnitSamples)
	defer bar.Finish()
	opts.Progress = func(p overlay.Progress) {
		unit := app.UnitSamples
		if p.Phase == overlay.PhaseRead {
			unit = app.UnitBytes
		}
		bar.PhaseIn(unit, string(p.Phase), p.Done, p.Total)
	}
	r, err := run(ctx, store, t.Table, c.Overlay, opts)
	bar.Finish()
	if err != nil {
		return err
	}
	if r.Unmatched > 0 {
		what := "the table has no row"
		if r.Before != nil {
			what = "the segments with rows to cover have no row"
		}
		e.Warnf("%s of %s of the files, as %s in %s",
			what, terminal.Plural(r.Unmatched, "key"), terminal.OneLine(r.Unknown[0].Key), terminal.OneLine(
				r.Unknown[0].Place))
	}
	return e.Print(r, overlayFacts(r)...)
}

// shownPartial is how many segments with rows that are not covered a report names.
const shownPartial = 10

func overlayFacts(r overlay.Report) [][2]string {
	var features []string
	for _, f := range r.Features {
		text := f.Name + " " + f.Type
		if f.Replaces {
			text += " (replaces the table's"
			if f.ReplacedType != f.Type {
				text += " " + f.ReplacedType
			}
			text += ")"
		}
		if f.Nulls != nil && *f.Nulls > 0 {
			text += fmt.Sprintf(" (null in %s of the covered rows)", terminal.Count(*f.Nulls))
		}
		features = append(features, text)
	}
	where := r.Table
	if r.Branch != "" {
		where += "@" + r.Branch
	}
	facts := [][2]string{
		{"overlay", fmt.Sprintf("%s of %s, snapshot %d", r.Overlay, where, r.Snapshot)},
		{"features", strings.Join(features, ", ")},
	}
	add := func(name, value string) { facts = append(facts, [2]string{name, value}) }
	if b := r.Before; b != nil {
		add("before", covered(b.Covered, b.Rows, b.Layers, b.Segments))
	}
	add("covered", covered(r.Covered, r.Rows, r.Layers, r.Segments))
	for i, s := range r.Partial {
		if i == shownPartial {
			add("", fmt.Sprintf("and %s more: dsi overlay show", terminal.Plural(uint64(len(r.Partial)-i), "segment")))
			break
		}
		text := fmt.Sprintf("%s of %s rows of segment %s", terminal.Count(s.Covered), terminal.Count(s.Rows), s.Segment)
		if s.Partition != "" {
			text += ", " + s.Partition
		}
		add("", text)
	}
	if r.FileRows > 0 {
		add("files", fmt.Sprintf("%s, %s; %s of them are no key of the table", terminal.Plural(r.FileRows, "row"),
			terminal.Bytes(uint64(r.BytesIn)), terminal.Count(r.Unmatched)))
	}
	bytes := terminal.Bytes(r.BytesOut)
	if r.Rows > 0 {
		bytes += fmt.Sprintf(", %.3f per row", float64(r.BytesOut)/float64(r.Rows))
	}
	add("bytes", bytes)
	if r.Spills > 0 {
		add("spilled", spilled(r.SpillBytes, r.Spills))
	}
	t := r.Seconds
	add("time", fmt.Sprintf("%.1f s: read %.1f, match %.1f, write %.1f, commit %.1f", t.Total, t.Read, t.Match, t.Write,
		t.Commit))
	return facts
}

// covered says which part of the rows has values of an overlay.
func covered(covered, rows uint64, layers, segments int) string {
	return fmt.Sprintf("%s of %s rows, in %s of %s", terminal.Count(covered), terminal.Count(rows),
		terminal.Count(layers), terminal.Plural(uint64(segments), "segment"))
}

// overlayJSON is an overlay as --json prints it.
type overlayJSON struct {
	Name          string                 `json:"overlay"`
	Number        uint32                 `json:"number"` // in the order in which they were added
	Features      []describe.FeatureJSON `json:"features"`
	MissingRows   string                 `json:"missing_rows"`
	MissingLayers string                 `json:"missing_layers"`
	Added         uint64                 `json:"added"`  // the snapshot that defined it
	Merged        uint64                 `json:"merged"` // the snapshot that made it part of the table; 0: it is not
	Branch        string                 `json:"branch,omitempty"`
	Segments      int                    `json:"segments"`
	Layers        int                    `json:"layers"`
	Rows          uint64                 `json:"rows"`
	Covered       uint64                 `json:"covered"`
	Bytes         uint64                 `json:"bytes"`
	Parts         []overlayPartsJSON     `json:"parts,omitempty"`
}

// overlayPartsJSON is what an overlay covers of a segment.
type overlayPartsJSON struct {
	Segment   string `json:"segment"`
	Partition string `json:"partition"`
	Layer     bool   `json:"layer"`
	Rows      uint64 `json:"rows"`
	Covered   uint64 `json:"covered"`
	Bytes     uint64 `json:"bytes"`
}

func newOverlayJSON(ctx context.Context, snap *storage.Snapshot, o catalog.Overlay,
	visit func(overlay.SegmentCoverage)) (overlayJSON, error) {
	c, err := overlay.Cover(ctx, snap, o, visit)
	out := overlayJSON{
		Name: o.Name, Number: o.Number, MissingRows: policyText(o.MissingRows),
		MissingLayers: policyText(o.MissingLayers), Added: o.Added, Merged: o.Merged, Branch: o.Branch,
		Segments: c.Segments, Layers: c.Layers, Rows: c.Rows, Covered: c.Covered, Bytes: c.Bytes,
	}
	for _, f := range o.Features {
		out.Features = append(out.Features, describe.NewFeatureJSON(f))
	}
	slices.SortFunc(out.Features, func(a, b describe.FeatureJSON) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// state says who reads an overlay.
func (o overlayJSON) state() string {
	switch {
	case o.Merged > 0:
		return fmt.Sprintf("merged in %d", o.Merged)
	case o.Branch != "":
		return "of branch " + o.Branch
	}
	return ""
}

type overlayList struct {
	app.TableArgs
	app.AtFlag
}

func (c *overlayList) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenSnapshot(ctx, e, c.AtFlag)
	if err != nil {
		return err
	}
	all, err := snap.Overlays(ctx)
	if err != nil {
		return err
	}
	out := struct {
		app.Head
		Overlays []overlayJSON `json:"overlays"` // the lowest first
	}{app.Of(snap.Table().Store(), c.Table, snap.Info().Number), []overlayJSON{}}
	for _, o := range all {
		i, err := newOverlayJSON(ctx, snap, o, nil)
		if err != nil {
			return err
		}
		out.Overlays = append(out.Overlays, i)
	}
	return terminal.PrintList(e.Env, out, "no overlays of "+terminal.OneLine(c.Table),
		"overlay, features, #covered, #segments, #bytes, missing rows, missing layers, ", out.Overlays, overlayJSON.row)
}

// row returns what overlay list prints.
func (o overlayJSON) row() []string {
	var names []string
	for _, f := range o.Features[:min(len(o.Features), 3)] {
		names = append(names, f.Name)
	}
	features := strings.Join(names, ", ")
	if more := len(o.Features) - 3; more > 0 {
		features += fmt.Sprintf(" and %d more", more)
	}
	return []string{
		o.Name, features, terminal.PercentOf(o.Covered, o.Rows),
		fmt.Sprintf("%s of %s", terminal.Count(o.Layers), terminal.Count(o.Segments)), terminal.Bytes(o.Bytes),
		o.MissingRows, o.MissingLayers, o.state(),
	}
}

type overlayArg struct {
	Overlay string `arg:"" help:"Name of the overlay."`
}

type overlayShow struct {
	app.TableArgs
	overlayArg
	app.AtFlag
}

func (c *overlayShow) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenSnapshot(ctx, e, c.AtFlag)
	if err != nil {
		return err
	}
	o, err := snap.Overlay(ctx, c.Overlay)
	if err != nil {
		return err
	}
	var parts []overlayPartsJSON
	info, err := newOverlayJSON(ctx, snap, o, func(s overlay.SegmentCoverage) {
		parts = append(parts, overlayPartsJSON{s.Segment.ID, s.Segment.Partition.String(), s.Layer, s.Rows, s.Covered,
			s.Bytes})
	})
	if err != nil {
		return err
	}
	if e.JSON {
		info.Parts = parts
		return e.PrintJSON(info)
	}
	facts := [][2]string{
		{"overlay", fmt.Sprintf("%s of %s, number %d, of snapshot %d", info.Name, c.Table, info.Number, info.Added)},
		{"covered", covered(info.Covered, info.Rows, info.Layers, info.Segments)},
		{"bytes", terminal.Bytes(info.Bytes)},
		{"missing rows", info.MissingRows},
		{"missing layers", info.MissingLayers},
	}
	if s := info.state(); s != "" {
		facts = append(facts, [2]string{"state", s})
	}
	e.PrintFacts(facts...)
	e.Printf("\n")
	describe.PrintFeatures(e, info.Features)
	e.Printf("\n")
	terminal.PrintRows(e.Env, "segment, partition, #covered, #rows covered, #rows, #bytes", parts,
		func(p overlayPartsJSON) []string {
			return []string{
				p.Segment, p.Partition, terminal.PercentOf(p.Covered, p.Rows), terminal.Count(p.Covered),
				terminal.Count(p.Rows), terminal.Bytes(p.Bytes),
			}
		})
	return nil
}

type overlayDrop struct {
	app.TableArgs
	overlayArg
}

func (c *overlayDrop) Run(ctx context.Context, e *app.Env) error {
	return c.apply(ctx, e, c.TableArgs, "dropped", commit.DropOverlays{c.Overlay})
}

type overlayMerge struct {
	app.TableArgs
	overlayArg
}

func (c *overlayMerge) Run(ctx context.Context, e *app.Env) error {
	return c.apply(ctx, e, c.TableArgs, "merged", commit.MergeOverlays{c.Overlay})
}

// apply commits a change to an overlay that is there.
func (c overlayArg) apply(ctx context.Context, e *app.Env, t app.TableArgs, did string, op commit.Operation) error {
	snap, err := t.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	if _, err := snap.Overlay(ctx, c.Overlay); err != nil {
		return err
	}
	return t.Commit(ctx, e, snap, "overlay", op, "overlay "+terminal.OneLine(c.Overlay)+" "+did)
}
