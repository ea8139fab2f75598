package report

import (
	"fmt"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/prices"
	"github.com/dsistore/dsistore/tools/terminal"
)

// monthDays is how many days a month has.
const monthDays = 30

// trafficOf returns what reads sent.
func trafficOf(r *Reads) object.Traffic {
	return object.Traffic{Reads: r.SentReads, Lists: r.SentLists, BytesDown: r.BytesDown, BytesCached: r.BytesCached}
}

// cost fills in what reads and storage cost, of the table, its features and its jobs.
func (b *builder) cost() {
	p := b.opts.Prices
	if p == nil {
		return
	}
	s := &b.out.Summary
	c := &Cost{Prices: p.Name, Currency: p.Currency, Reads: p.Cost(trafficOf(&s.Reads)),
		StoredMonth: p.Month(s.StoredBytes + s.LayerBytes)}
	b.out.Cost = c
	first := firstDay(b.reads, b.now)
	if !first.IsZero() {
		if !b.opts.Since.IsZero() { // days without reads are among those that were asked for
			first = b.opts.Since
		}
		c.Days = daysSince(first, b.now) + 1
	}
	month := ratio(monthDays, float64(c.Days))
	c.ReadsMonth = c.Reads * month
	all := s.Reads.BytesNeeded + s.Reads.BytesUnneeded
	for i := range b.out.Features {
		f := &b.out.Features[i]
		f.StoredMonth = p.Month(f.StoredBytes + f.LayerBytes)
		f.ReadsMonth = c.ReadsMonth * share(f.BytesNeeded+f.BytesUnneeded, all)
	}
	for i := range b.out.Jobs {
		j := &b.out.Jobs[i]
		j.ReadsMonth = p.Cost(trafficOf(&j.Reads)) * month
	}
}

// cost returns the table's cost; zero where it is not known.
func (t *Table) cost() Cost {
	if t.Cost == nil {
		return Cost{}
	}
	return *t.Cost
}

// cost adds up what the tables cost.
func (r *Report) cost() {
	for i := range r.Tables {
		c := r.Tables[i].Cost
		switch {
		case c == nil:
		case r.Cost == nil:
			sum := *c
			r.Cost = &sum
		default:
			r.Cost.Days = max(r.Cost.Days, c.Days)
			r.Cost.Reads += c.Reads
			r.Cost.ReadsMonth += c.ReadsMonth
			r.Cost.StoredMonth += c.StoredMonth
		}
	}
}

// Facts says what a month costs, as names and values; nothing where that is not known.
func (c *Cost) Facts() [][2]string {
	if c == nil {
		return nil
	}
	reads := "unknown to read, without usage records"
	if c.Days > 0 {
		reads = fmt.Sprintf("%s to read, if 30 days are like the last %s, without opening tables and writing "+
			"usage records",
			prices.Text(c.ReadsMonth, c.Currency), terminal.Plural(c.Days, "day"))
	}
	return [][2]string{{"a month costs", fmt.Sprintf("%s to store the newest snapshot, %s (%s)",
		prices.Text(c.StoredMonth, c.Currency), reads, c.Prices)}}
}

// unknown is the value of an amount that is not known.
var unknown *float64

// costColumn is a column of amounts, which people see where there are prices.
func costColumn[T any](c *Cost, key, name string, value func(*T) float64) column[T] {
	if c == nil {
		return column[T]{key, "", func(*T) any { return unknown }, nil}
	}
	return column[T]{key, name, func(x *T) any { v := value(x); return &v }, func(x *T) string {
		return prices.Text(value(x), c.Currency)
	}}
}

// readsColumn is costColumn for what reads of a month cost, which is not known without usage records: days are those of
// the records.
func readsColumn[T any](c *Cost, value func(*T) float64, days func(*T) uint64) column[T] {
	out := costColumn(c, "reads_month", "reads/month", value)
	if amount := out.text; amount != nil {
		out.text = func(x *T) string {
			if days(x) == 0 {
				return ""
			}
			return amount(x)
		}
		out.value = func(x *T) any {
			if days(x) == 0 {
				return unknown
			}
			v := value(x)
			return &v
		}
	}
	return out
}
