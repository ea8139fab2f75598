package read

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/prices"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Scan reads everything as a trainer would, and prints the rates.
type Scan struct {
	tableArgs
	Features  []string  `required:"" complete:"features" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)."`
	BatchSize int       `default:"4096" help:"Samples per batch."`
	Epochs    int       `default:"1" help:"Read everything this many times."`
	Dedup     app.Dedup `bare:"ikjt" help:"How lists that rows share are given: kjt, one list per row (the default); ikjt, each shared list once, with an inverse (--dedup alone); partial, lists may also share values."`
	shuffleFlags
	Plan   bool   `help:"Print the plan and read nothing."`
	Prices string `placeholder:"FILE" help:"File of prices (docs/guide/cost.md). Default: DSISTORE_PRICES, else the price list of S3 or Google Cloud Storage."`
	readFlags
	app.MetricsFlag
}

// scanJSON is what scan prints with --json. Bytes and rates are over all epochs.
type scanJSON struct {
	Table            string       `json:"table"`
	Snapshot         uint64       `json:"snapshot"`
	Features         int          `json:"features"`
	BatchSize        int          `json:"batch_size"`
	Epochs           int          `json:"epochs"`
	Rows             uint64       `json:"rows"`
	Batches          uint64       `json:"batches"`
	Seconds          float64      `json:"seconds"`
	SamplesPerSecond float64      `json:"samples_per_second"`
	TensorBytes      uint64       `json:"tensor_bytes"`
	BytesNeeded      uint64       `json:"bytes_needed"`
	BytesUnneeded    uint64       `json:"bytes_unneeded"`
	Requests         uint64       `json:"requests"`
	DedupeFactor     float64      `json:"dedupe_factor"` // of the stripes decoded
	Dedup            string       `json:"dedup"`
	EmittedFactor    float64      `json:"emitted_factor"` // rows per slot of the lists in the batches
	DecodeSeconds    float64      `json:"decode_seconds"`
	AssembleSeconds  float64      `json:"assemble_seconds"`
	StallSeconds     float64      `json:"stall_seconds"`
	Filter           *filterJSON  `json:"filter,omitempty"`  // with --where
	Shuffle          *shuffleJSON `json:"shuffle,omitempty"` // with --shuffle
	Sent             *sentJSON    `json:"sent,omitempty"`    // of a store at a service
	Cost             *costJSON    `json:"cost,omitempty"`    // where its prices are known
}

// sentJSON is what a service was sent: to open the table, and for all epochs.
type sentJSON struct {
	Open   object.Traffic `json:"open"`
	Epochs object.Traffic `json:"epochs"`
}

// costJSON is what Sent costs.
type costJSON struct {
	Prices   string  `json:"prices"` // of what, and as of when
	Currency string  `json:"currency"`
	Open     float64 `json:"open"`
	Epoch    float64 `json:"epoch"` // of one, in the mean
}

// Run runs the command.
func (c *Scan) Run(ctx context.Context, e *app.Env) error {
	if c.BatchSize < 1 || c.BatchSize > reader.MaxBatchSize {
		return terminal.Usagef("--batch-size %d: want 1 to %d", c.BatchSize, reader.MaxBatchSize)
	}
	if c.Epochs < 1 {
		return terminal.Usagef("--epochs %d: want 1 or more", c.Epochs)
	}
	shuffle, err := c.shuffle()
	if err != nil {
		return err
	}
	var opening object.TrafficCounter
	openCtx := object.CountTraffic(ctx, &opening)
	view, plan, err := c.plan(openCtx, e, c.tableArgs, reader.PlanOptions{Features: c.Features, BatchSize: c.BatchSize,
		Output: reader.OutputTensors, Dedup: reader.Dedup(c.Dedup), Shuffle: shuffle})
	if err != nil {
		return err
	}
	if c.Plan {
		return printPlan(ctx, e, view.Snapshot, plan)
	}
	layout, err := reader.NewLayoutWith(openCtx, view.Snapshot, plan, reader.LayoutOptions{View: view})
	if err != nil {
		return err
	}
	out := scanJSON{
		Table: c.Table, Snapshot: plan.Snapshot, Features: len(plan.Features), BatchSize: c.BatchSize, Epochs: c.Epochs,
		Dedup: plan.Dedup.String(), Filter: newFilterJSON(plan.Filter, layout.Pruning()),
	}
	blobs := view.Snapshot.Table().Store().Blobs()
	price, err := prices.For(blobs.URI(), c.Prices)
	if err != nil {
		return terminal.UsageError{Err: err}
	}
	if object.HighLatency(blobs) {
		out.Sent = &sentJSON{}
	}
	bar := e.Progress("scanning", app.UnitSamples)
	defer bar.Finish()
	var totals *reader.InfoTotals
	if c.Shuffle != "" {
		totals = new(reader.InfoTotals)
	}
	for epoch := range uint64(c.Epochs) {
		if err := c.scanEpoch(ctx, e, layout, epoch, &out, totals, bar); err != nil {
			return err
		}
	}
	if totals != nil {
		out.Shuffle = newShuffleJSON(plan, totals.Summary())
	}
	bar.Finish()
	if out.Seconds > 0 {
		out.SamplesPerSecond = float64(out.Rows) / out.Seconds
	}
	out.DedupeFactor /= float64(c.Epochs)
	out.EmittedFactor /= float64(c.Epochs)
	if price != nil {
		out.Cost = &costJSON{Prices: price.Name, Currency: price.Currency} // of a store on this machine: nothing
	}
	if s := out.Sent; s != nil {
		s.Open = opening.Traffic()
		if price != nil {
			out.Cost.Open, out.Cost.Epoch = price.Cost(s.Open), price.Cost(s.Epochs)/float64(c.Epochs)
		}
	}
	return e.Print(out, scanFacts(out)...)
}

// scanEpoch reads the layout's rows once and adds what it measures to out, and what the batches were made of to totals
// unless that is nil.
func (c *Scan) scanEpoch(ctx context.Context, e *app.Env, layout *reader.Layout, epoch uint64, out *scanJSON,
	totals *reader.InfoTotals, bar *app.Progress,
) error {
	start := time.Now()
	opts := c.options("scan")
	opts.Info, opts.RoundIntegers = totals != nil, true
	s, err := layout.Open(opts)
	if err != nil {
		return err
	}
	defer e.Metrics.AddReader(s)()
	defer s.Close()
	if err := s.Seek(reader.Position{Epoch: epoch}); err != nil {
		return err
	}
	samples, all := out.Rows, int64(s.Rows())*int64(out.Epochs)
	err = each(ctx, s, func(b *reader.Batch) error {
		out.TensorBytes += batchBytes(b)
		samples += uint64(b.Rows)
		if totals != nil {
			totals.Add(b)
		}
		bar.Set(int64(samples), all)
		return nil
	})
	out.Seconds += time.Since(start).Seconds()
	stats := s.Stats()
	out.Rows += stats.Rows
	out.Batches += stats.Batches
	out.BytesNeeded += stats.BytesNeeded
	out.BytesUnneeded += stats.BytesUnneeded
	out.Requests += stats.Requests
	if out.Sent != nil {
		out.Sent.Epochs = out.Sent.Epochs.Add(stats.Traffic)
	}
	out.DedupeFactor += stats.DedupeFactor
	out.EmittedFactor += stats.EmittedFactor
	out.DecodeSeconds += stats.DecodeSeconds
	out.AssembleSeconds += stats.AssembleSeconds
	out.StallSeconds += stats.StallSeconds
	return err
}

// batchBytes is the size of what a trainer is handed.
func batchBytes(b *reader.Batch) uint64 {
	n := 0
	for _, c := range b.Columns {
		if c != nil {
			n += c.SizeBytes()
		}
	}
	if t := b.Tensors; t != nil {
		n += 4 * (len(t.Dense.Values) + len(t.Labels.Values))
		for _, m := range t.Embeddings {
			n += 4 * len(m.Values)
		}
		n += jaggedBytes(&t.Sparse) + jaggedBytes(&t.Weighted) + jaggedBytes(&t.Floats)
		for i := range t.Groups {
			n += 4 * len(t.Groups[i].Inverse)
		}
	}
	return uint64(n)
}

func jaggedBytes(j *reader.Jagged) int {
	return 4*(len(j.Lengths)+len(j.Offsets)+len(j.Starts)+len(j.FloatValues)+len(j.Weights)) + 8*len(j.Values)
}

func scanFacts(s scanJSON) [][2]string {
	facts := [][2]string{
		{"rows", fmt.Sprintf("%s in %s, %s, %s", terminal.Count(s.Rows), terminal.Plural(s.Batches, "batch"),
			terminal.Plural(uint64(s.Features), "feature"), terminal.Plural(uint64(s.Epochs), "epoch"))},
		{"time", fmt.Sprintf("%.3f s (decode %.3f, assemble %.3f over all threads; waited %.3f)",
			s.Seconds, s.DecodeSeconds, s.AssembleSeconds, s.StallSeconds)},
		{"rate", fmt.Sprintf("%s samples/s", terminal.Count(uint64(s.SamplesPerSecond)))},
		{"tensors", fmt.Sprintf("%s, %s", terminal.Bytes(s.TensorBytes), terminal.Rate(s.TensorBytes, s.Seconds))},
		{"read", fmt.Sprintf("%s needed, %s unneeded, %s requests, %s", terminal.Bytes(s.BytesNeeded),
			terminal.Bytes(s.BytesUnneeded), terminal.Count(s.Requests),
			terminal.Rate(s.BytesNeeded+s.BytesUnneeded, s.Seconds))},
		{"dedupe", fmt.Sprintf("%.2f rows per slot stored, %.2f emitted (%s)", s.DedupeFactor, s.EmittedFactor,
			s.Dedup)},
	}
	facts = append(facts, s.Filter.facts()...)
	facts = append(facts, s.Shuffle.facts()...)
	if s.Sent != nil {
		facts = append(facts, [2]string{"sent", trafficText(s.Sent.Epochs)},
			[2]string{"sent to open", trafficText(s.Sent.Open)})
	}
	if c := s.Cost; c != nil {
		facts = append(facts, [2]string{"cost", fmt.Sprintf("%s an epoch, and %s to open (%s)",
			prices.Text(c.Epoch, c.Currency), prices.Text(c.Open, c.Currency), c.Prices)})
	}
	return facts
}

// trafficText says what a service was sent: kinds of requests that were, reads and lists in any case.
func trafficText(t object.Traffic) string {
	text := terminal.Plural(t.Reads, "read") + ", " + terminal.Plural(t.Lists, "list")
	if t.Writes > 0 {
		text += ", " + terminal.Plural(t.Writes, "write")
	}
	if t.Deletes > 0 {
		text += ", " + terminal.Plural(t.Deletes, "delete")
	}
	if t.Unserved > 0 {
		text += fmt.Sprintf(" (%s of them without an answer, or with 429 or 5xx)", terminal.Count(t.Unserved))
	}
	text += "; " + terminal.Bytes(t.BytesDown) + " down"
	if t.BytesUp > 0 {
		text += ", " + terminal.Bytes(t.BytesUp) + " up"
	}
	if t.BytesCached > 0 {
		text += ", " + terminal.Bytes(t.BytesCached) + " from the cache"
	}
	return text
}

// printPlan prints the plan for people, with what its filter leaves to read, or with --json as it travels.
func printPlan(ctx context.Context, e *app.Env, snap *storage.Snapshot, p *reader.Plan) error {
	if !e.JSON {
		e.Printf("%s", p)
		return printFiltered(ctx, e, snap, p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return e.PrintJSON(json.RawMessage(text))
}
