package workload

import (
	"cmp"
	"fmt"
	"math"
)

// A LowerBound is the bits that a feature of the table takes at least, by what they say, when nothing is said twice:
// what the generator drew, and no more, each draw at its empirical entropy.
//
// A choice among symbols that a window makes n times takes n times the entropy of how often each was chosen; the counts
// themselves are not counted. Distinct numbers of a range come on top as a set, log2 of the binomial (range over
// distinct), so that ids are paid at their entropy with their dictionary. What several features share is paid by the
// first of them: the changes of a group, the items shown, the ends of sessions. Each window of the table is on its own,
// as a segment is.
type LowerBound struct {
	Dictionary float64 // distinct ids, as a set of 63-bit numbers
	Values     float64 // which of them stands where; of dense features, keys and labels, their numbers with their set
	Scores     float64
	Lengths    float64 // of a list when a session or an item draws it
	Starts     float64 // of histories: how many ids each change adds
	Inverse    float64 // which rows change, or show what an earlier row showed
	Presence   float64
}

// Total returns all bits.
func (f LowerBound) Total() float64 {
	return f.Dictionary + f.Values + f.Scores + f.Lengths + f.Starts + f.Inverse + f.Presence
}

// Add adds the bits of another.
func (f *LowerBound) Add(o LowerBound) {
	f.Dictionary += o.Dictionary
	f.Values += o.Values
	f.Scores += o.Scores
	f.Lengths += o.Lengths
	f.Starts += o.Starts
	f.Inverse += o.Inverse
	f.Presence += o.Presence
}

// idRange is the number of values that an id may have.
const idRange = 1 << 63

// LowerBounds returns the lower bound of each feature, in the order of Features.
func (t *Truth) LowerBounds() ([]LowerBound, error) {
	out := make([]LowerBound, len(t.features))
	for _, slot := range t.windows {
		w := t.enter(slot.first)
		groups := map[int]bool{}
		items := false
		for i := range t.features {
			f := &t.features[i]
			t.use(i)
			bound, err := t.lowerBound(w, f)
			if err != nil {
				return nil, err
			}
			switch f.Family {
			case UserHistory, UserWeighted, UserList, UserDense:
				if !groups[f.Group] {
					groups[f.Group] = true
					changes, growth := t.changeBits(w)
					bound.Inverse += changes
					if f.Family == UserHistory || f.Family == UserWeighted {
						bound.Starts += growth
					}
				}
			case ItemList, ItemDense:
				if !items {
					items = true
					bound.Inverse += partitionBits(countOf(w.item))
				}
			}
			out[i].Add(bound)
		}
	}
	return out, nil
}

// lowerBound returns what one feature takes in a window, without what it shares with others.
func (t *Truth) lowerBound(w *window, f *Feature) (LowerBound, error) {
	m := &t.maker
	sessions, rows := float64(len(w.session)), float64(w.rows)
	switch f.Family {
	case SessionKey:
		lengths := make([]int32, len(w.session))
		for s := range lengths {
			lengths[s] = w.start[s+1] - w.start[s]
		}
		return LowerBound{Values: 63 * sessions, Inverse: choiceBits(countOf(lengths))}, nil
	case RequestKey:
		return LowerBound{Values: 63 * rows}, nil
	case UserKey:
		var users []int64
		for s := range w.session {
			users = append(users, m.keyOrLabel(w.start[s]))
		}
		counts := countOf(users)
		return LowerBound{Dictionary: setBits(idRange, len(counts)), Values: choiceBits(counts)}, nil
	case TimeKey:
		return LowerBound{Values: arrivalBits(w)}, nil
	case Label:
		var of []bool
		for p := range int32(w.rows) {
			click, h := m.clicked(p, w.session[w.of[p]], uint64(w.step(p)))
			switch {
			case f.Name == ClickColumn:
				of = append(of, click)
			case click: // conversions are told among clicks
				of = append(of, m.converted(h))
			}
		}
		return LowerBound{Values: chanceBits(count(of), len(of))}, nil
	case UserHistory, UserWeighted:
		return t.historyLowerBound(w), nil
	case UserList, ItemList:
		return t.listLowerBound(w, f), nil
	case UserDense, ItemDense, ContextDense:
		return t.denseLowerBound(w, f)
	case UserEmbedding:
		present := 0
		for _, sk := range w.session {
			if chance(join(f.key^sk, 1), f.coverParts) {
				present++
			}
		}
		return LowerBound{Values: float64(present) * embeddingDim * 24, Presence: chanceBits(present, len(w.session))},
			nil
	}
	return LowerBound{}, fmt.Errorf("feature %s: family %d has no lower bound", f.Name, f.Family)
}

// arrivalBits returns what the times take: of a session where in the window its first gap begins, of each sample its
// jitter, in steps of a row. That no two rows arrive together is worth log2(e) bits per row.
func arrivalBits(w *window) float64 {
	bits := 0.0
	for s := range w.session {
		n := float64(w.start[s+1] - w.start[s])
		gap := float64(w.rows) / n
		bits += math.Log2(gap) + n*math.Log2(math.Max(gap/4, 1))
	}
	return math.Max(bits-float64(w.rows)*math.Log2E, 0)
}

// historyLowerBound counts each session's stream once, and the length that its list begins with.
func (t *Truth) historyLowerBound(w *window) LowerBound {
	m := &t.maker
	var first []int32
	for s := range w.session {
		if now := m.span(w.start[s]); now.n != spanNull {
			first = append(first, now.n)
		}
	}
	out := idLowerBound(m.ids)
	out.Presence = chanceBits(len(first), len(w.session))
	out.Lengths = choiceBits(countOf(first))
	if m.f.Family == UserWeighted {
		out.Scores = choiceBits(countOf(m.scores))
	}
	return out
}

// listLowerBound counts each list once that a session's version, a cluster or an item draws.
func (t *Truth) listLowerBound(w *window, f *Feature) LowerBound {
	m := &t.maker
	var drawn []span // by draw
	var clusters []uint64
	seen := map[uint64]bool{}
	for p := range int32(w.rows) {
		s := w.of[p]
		sk, step := w.session[s], w.step(p)
		switch {
		case f.Family == ItemList:
			if item := uint64(w.item[p]); !seen[item] {
				seen[item] = true
				drawn = append(drawn, m.span(p))
			}
			continue
		case step > 0:
			if changed, _ := m.changedAt(sk, step); !changed {
				continue
			}
		}
		if !f.clustered {
			drawn = append(drawn, m.span(p))
			continue
		}
		cluster := zipf(join(f.key^sk, uint64(step)), clusterBits)
		clusters = append(clusters, cluster)
		if !seen[cluster] {
			seen[cluster] = true
			drawn = append(drawn, m.span(p))
		}
	}
	var lengths []int32
	for _, s := range drawn {
		if s.n != spanNull {
			lengths = append(lengths, s.n)
		}
	}
	out := idLowerBound(m.ids)
	out.Presence = chanceBits(len(lengths), len(drawn))
	out.Lengths = choiceBits(countOf(lengths))
	out.Inverse = partitionBits(countOf(clusters))
	return out
}

// idLowerBound counts ids that are written once.
func idLowerBound(ids []int64) LowerBound {
	counts := countOf(ids)
	return LowerBound{Dictionary: setBits(idRange, len(counts)), Values: choiceBits(counts)}
}

// denseLowerBound counts the number that each version, item or row draws.
func (t *Truth) denseLowerBound(w *window, f *Feature) (LowerBound, error) {
	drawn := map[uint64]int32{}
	for p := range int32(w.rows) {
		if key := t.maker.denseKey(p); drawn[key] == 0 {
			drawn[key] = p + 1
		}
	}
	var present []uint64
	for key := range drawn {
		if chance(key, f.coverParts) {
			h := join(key, 1)
			switch f.style {
			case styleRatio:
				h = uint64(below(h, 10001))
			case styleNormal:
				h = h&0xffff + h>>16&0xffff + h>>32&0xffff + h>>48
			case styleFlag:
				h >>= 63
			default:
				h = zipf(h, f.vocabulary)
			}
			present = append(present, h)
		}
	}
	values := map[uint8]float64{styleRatio: 10001, styleNormal: 4*0xffff + 1, styleFlag: 2}[f.style]
	if values == 0 {
		values = float64(uint64(1) << f.vocabulary)
	}
	counts := countOf(present)
	return LowerBound{
		Values:   choiceBits(counts) + setBits(values, len(counts)),
		Presence: chanceBits(len(present), len(drawn)),
	}, nil
}

// changeBits returns what it takes to say which samples of a window, the first of a session aside, change the feature
// that the maker is set to, and how many ids each of them adds to a history.
func (t *Truth) changeBits(w *window) (changes, growth float64) {
	of := 0
	var added []uint32
	for p := range int32(w.rows) {
		if step := w.step(p); step > 0 {
			of++
			if changed, h := t.maker.changedAt(w.session[w.of[p]], step); changed {
				added = append(added, growthOf(h))
			}
		}
	}
	return chanceBits(len(added), of), choiceBits(countOf(added))
}

func count(of []bool) int {
	n := 0
	for _, b := range of {
		if b {
			n++
		}
	}
	return n
}

func countOf[T cmp.Ordered](vals []T) map[T]int {
	counts := make(map[T]int)
	for _, v := range vals {
		counts[v]++
	}
	return counts
}

// choiceBits returns n times the entropy of n choices, of which counts says how often each fell.
func choiceBits[T comparable](counts map[T]int) float64 {
	n, sum := 0, 0.0
	for _, c := range counts {
		n += c
		sum += float64(c) * math.Log2(float64(c))
	}
	if n == 0 {
		return 0
	}
	return math.Max(float64(n)*math.Log2(float64(n))-sum, 0)
}

// chanceBits is choiceBits of k out of n.
func chanceBits(k, n int) float64 {
	if k == 0 || k == n {
		return 0
	}
	return choiceBits(map[bool]int{true: k, false: n - k})
}

// partitionBits returns the log2 of the ways to part things into nameless classes as large as counts says.
func partitionBits[T comparable](counts map[T]int) float64 {
	n, bits := 0, 0.0
	alike := map[int]int{}
	for _, c := range counts {
		n += c
		alike[c]++
		bits -= factorialBits(float64(c))
	}
	for _, c := range alike {
		bits -= factorialBits(float64(c))
	}
	return math.Max(bits+factorialBits(float64(n)), 0)
}

// setBits returns the log2 of the number of sets of k out of n.
func setBits(n float64, k int) float64 {
	if float64(k) >= n {
		return 0
	}
	if x := float64(k); n > 1<<50 {
		// The differences of two logarithms of factorials would be lost; k is small beside n.
		return x*math.Log2(n) - factorialBits(x)
	}
	return factorialBits(n) - factorialBits(float64(k)) - factorialBits(n-float64(k))
}

func factorialBits(n float64) float64 {
	l, _ := math.Lgamma(n + 1)
	return l * math.Log2E
}
