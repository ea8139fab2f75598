package workload

import "github.com/dsistore/dsistore/format/vector"

// Time of the first hour's first row, and the time that a partition (or a window of a table without partitions) spans.
const (
	firstMillis  = 1793491200000 // 2026-11-01T00:00:00Z
	hourMillis   = 3600 * 1000
	maxFirstHour = 1_000_000 // a century later
)

// A span is where a unit's value lies in the values of a maker.
type span struct{ lo, n int32 }

const (
	spanUnmade = -2 // nothing is known of the unit yet
	spanNull   = -1
)

// A maker produces the values of one feature for positions of one window. It makes what a session or item needs the
// first time that one of its rows is asked for. Not safe for concurrent use.
type maker struct {
	f *Feature
	w *window

	root     uint64  // of the table's randomness
	users    uint32  // in the table
	spans    []span  // by place (session families) or by item
	clusters []span  // by cluster of users
	versions []int32 // by place, of dense user features; -1: unmade
	ids      []int64
	scores   []float32
}

// reset turns the maker to a feature of a window.
func (m *maker) reset(w *window, f *Feature) {
	m.w, m.f = w, f
	m.ids, m.scores = m.ids[:0], m.scores[:0]
	switch f.Family {
	case UserHistory, UserWeighted, UserList:
		m.spans = resize(m.spans, w.rows)
		fill(m.spans, span{0, spanUnmade})
		if f.clustered {
			m.clusters = resize(m.clusters, 1<<clusterBits)
			fill(m.clusters, span{0, spanUnmade})
		}
	case ItemList:
		m.spans = resize(m.spans, 1<<itemBits)
		fill(m.spans, span{0, spanUnmade})
	case UserDense:
		m.versions = resize(m.versions, w.rows)
		fill(m.versions, -1)
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

// appendTo appends the values at the given positions to c, whose type is the feature's.
func (m *maker) appendTo(c *vector.Column, positions []int32) {
	base := c.Rows
	c.Rows += len(positions)
	c.Slots = c.Rows
	c.Present = c.Present.Grow(c.Rows)
	switch m.f.Family {
	case UserHistory, UserWeighted, UserList, ItemList:
		m.appendLists(c, base, positions)
	case UserDense, ItemDense, ContextDense:
		m.appendDense(c, base, positions)
	case UserEmbedding:
		m.appendEmbeddings(c, base, positions)
	default:
		c.Present.SetRange(base, c.Rows)
		for _, p := range positions {
			c.Ints = append(c.Ints, m.keyOrLabel(p))
		}
	}
}

func (m *maker) keyOrLabel(place int32) int64 {
	w := m.w
	sk := w.session[w.of[place]]
	step := uint64(w.step(place))
	switch m.f.Family {
	case SessionKey:
		return int64(sk >> 1)
	case RequestKey:
		return int64(join(sk, step<<8|4) >> 1)
	case UserKey:
		return id(m.root, uint64(below(join(sk, 5), m.users)))
	case TimeKey:
		return w.millis + w.spanMillis*int64(w.arrival[place])/int64(w.rows)
	}
	return m.label(place, sk, step)
}

func (m *maker) label(place int32, sk, step uint64) int64 {
	click, h := m.clicked(place, sk, step)
	if m.f.Name == ClickColumn {
		return bit(click)
	}
	return bit(click && m.converted(h))
}

// clicked reports whether the sample at a place is a click, and the hash that said so.
func (m *maker) clicked(place int32, sk, step uint64) (bool, uint64) {
	// An item has a click rate of 2 to 22 %, and one click in five of a session that buys converts.
	quality := parts(0.02) + below(join(m.root, uint64(m.w.item[place])<<8|8), parts(0.20))
	h := join(sk, step<<8|9)
	return chance(h, quality), h
}

// converted reports whether a click converts, by its hash.
func (m *maker) converted(h uint64) bool { return chance(h>>16, parts(0.2)) }

func (m *maker) appendLists(c *vector.Column, base int, positions []int32) {
	for i, p := range positions {
		s := m.span(p)
		if s.n != spanNull {
			c.Present.Set(base + i)
			c.Ints = append(c.Ints, m.ids[s.lo:s.lo+s.n]...)
			if m.f.Family == UserWeighted {
				c.ScoreFloats = append(c.ScoreFloats, m.scores[s.lo:s.lo+s.n]...)
			}
		}
		c.Offsets = append(c.Offsets, int32(len(c.Ints)))
	}
}

// span returns where the list at a place is, making it first if need be.
func (m *maker) span(place int32) span {
	unit := place
	if m.f.Family == ItemList {
		unit = m.w.item[place]
	}
	if m.spans[unit].n == spanUnmade {
		m.make(place)
	}
	return m.spans[unit]
}

// make makes the lists of the session, or of the item, at a place.
func (m *maker) make(place int32) {
	switch s := m.w.of[place]; m.f.Family {
	case ItemList:
		item := m.w.item[place]
		m.spans[item] = m.list(join(m.f.key, uint64(item)))
	case UserList:
		m.sessionLists(s)
	default:
		m.history(s)
	}
}

// changedAt reports whether a feature's version at a session's step is not that of the step before, and the hash that
// said so.
func (m *maker) changedAt(sk uint64, step int) (bool, uint64) {
	h := join(m.f.changeKey^sk, uint64(step))
	return chance(h, m.f.changed), h
}

// growthOf returns how many ids a change, given by its hash, adds to a history.
func growthOf(h uint64) uint32 { return 1 + below(h, 3) }

func (m *maker) sessionLists(s int32) {
	w := m.w
	sk := w.session[s]
	var last span
	for p := w.start[s]; p < w.start[s+1]; p++ {
		step := int(p - w.start[s])
		if changed, _ := m.changedAt(sk, step); changed || step == 0 {
			if key := join(m.f.key^sk, uint64(step)); m.f.clustered {
				last = m.clusterList(zipf(key, clusterBits))
			} else {
				last = m.list(key)
			}
		}
		m.spans[p] = last
	}
}

func (m *maker) clusterList(cluster uint64) span {
	s := &m.clusters[cluster]
	if s.n == spanUnmade {
		*s = m.list(join(m.f.key, cluster))
	}
	return *s
}

// list draws one list: null, empty, or of 1 to 2*Length-1 ids.
func (m *maker) list(key uint64) span {
	f := m.f
	if !chance(key, f.coverParts) {
		return span{0, spanNull}
	}
	lo := int32(len(m.ids))
	h := join(key, 1)
	if chance(h, f.empty) {
		return span{lo, 0}
	}
	n := 1 + below(h, uint32(2*f.Length-1))
	for j := range n {
		m.ids = append(m.ids, id(f.key, zipf(join(key, uint64(j)+2), f.vocabulary)))
	}
	return span{lo, int32(n)}
}

// history makes a session's stream of ids and every row's range of it. Two sessions in five begin with a history that
// is not yet full and grows; a full one drops its oldest ids as new ones come.
func (m *maker) history(s int32) {
	w, f := m.w, m.f
	sk := w.session[s]
	from, to := w.start[s], w.start[s+1]
	key := join(f.key^sk, 1)
	if !chance(key, f.coverParts) {
		fill(m.spans[from:to], span{0, spanNull})
		return
	}
	limit := int32(f.Length)
	head := limit
	if h := join(key, 1); chance(h, f.empty) {
		head = 0
	} else if chance(h>>16, parts(0.4)) {
		head = 1 + int32(below(h, uint32(limit)))
	}
	for p := from; p < to; p++ {
		if p > from {
			if changed, h := m.changedAt(sk, int(p-from)); changed {
				head += int32(growthOf(h))
			}
		}
		m.spans[p] = span{head, min(head, limit)}
	}
	base := int32(len(m.ids))
	total := head
	m.ids = resizeKeep(m.ids, int(base+total))
	if f.Family == UserWeighted {
		m.scores = resizeKeep(m.scores, int(base+total))
	}
	for j := range total {
		at := base + j
		if !f.OldestFirst {
			at = base + total - 1 - j
		}
		h := join(key, uint64(j)+2)
		m.ids[at] = id(f.key, zipf(h, f.vocabulary))
		if f.Family == UserWeighted {
			m.ids[at] = m.distinct(at, base, total, h)
			m.scores[at] = float32(below(join(h, 1), maxScore)+1) / maxScore
		}
	}
	for p := from; p < to; p++ {
		r := &m.spans[p]
		if f.OldestFirst {
			r.lo = base + r.lo - r.n
		} else {
			r.lo = base + head - r.lo
		}
	}
}

// distinct returns an id for place at of a stream that no id within the history's length has: the ids of a
// weighted list are the keys of a map in the Hive layout.
func (m *maker) distinct(at, base, total int32, h uint64) int64 {
	lo, hi := max(base, at-int32(m.f.Length)), at
	if !m.f.OldestFirst {
		lo, hi = at+1, min(base+total, at+1+int32(m.f.Length))
	}
	for {
		v := id(m.f.key, zipf(h, m.f.vocabulary))
		taken := false
		for _, other := range m.ids[lo:hi] {
			taken = taken || other == v
		}
		if !taken {
			return v
		}
		h = mix(h)
	}
}

func resizeKeep[T any](s []T, n int) []T {
	if cap(s) < n {
		s = append(make([]T, 0, 2*n), s...)
	}
	return s[:n]
}

func (m *maker) appendDense(c *vector.Column, base int, positions []int32) {
	for i, p := range positions {
		key := m.denseKey(p)
		present := chance(key, m.f.coverParts)
		if present {
			c.Present.Set(base + i)
		}
		m.appendNumber(c, join(key, 1), present)
	}
}

func (m *maker) denseKey(place int32) uint64 {
	w, f := m.w, m.f
	switch f.Family {
	case ItemDense:
		return join(f.key, uint64(w.item[place]))
	case ContextDense:
		return join(f.key^w.session[w.of[place]], uint64(w.step(place)))
	}
	s := w.of[place]
	if m.versions[place] < 0 {
		version := int32(0)
		for p := w.start[s]; p < w.start[s+1]; p++ {
			step := int(p - w.start[s])
			if changed, _ := m.changedAt(w.session[s], step); changed {
				version = int32(step)
			}
			m.versions[p] = version
		}
	}
	return join(f.key^w.session[s], uint64(m.versions[place]))
}

// appendNumber appends the number that a hash stands for in the feature's style, or the zero of a null slot.
func (m *maker) appendNumber(c *vector.Column, h uint64, present bool) {
	var units uint64
	scale := float32(1)
	switch m.f.style {
	case styleCount, styleInteger:
		units = zipf(h, m.f.vocabulary)
	case styleRatio:
		units, scale = uint64(below(h, 10001)), 10000
	case stylePrice:
		units, scale = 99+10*zipf(h, m.f.vocabulary), 100
	case styleFlag:
		units = h >> 63
	}
	switch {
	case !present:
		units = 0
	case m.f.style == styleNormal:
		sum := h&0xffff + h>>16&0xffff + h>>32&0xffff + h>>48
		c.Floats = append(c.Floats, float32(int32(sum)-131070)/18918)
		return
	}
	switch c.Type.Elem {
	case vector.Float32:
		c.Floats = append(c.Floats, float32(units)/scale)
	case vector.Float64:
		c.Doubles = append(c.Doubles, float64(units)/float64(scale))
	default:
		c.Ints = append(c.Ints, int64(units))
	}
}

func (m *maker) appendEmbeddings(c *vector.Column, base int, positions []int32) {
	for i, p := range positions {
		key := join(m.f.key^m.w.session[m.w.of[p]], 1)
		present := chance(key, m.f.coverParts)
		if present {
			c.Present.Set(base + i)
		}
		for d := range embeddingDim {
			v := float32(0)
			if present {
				v = float32(int32(join(key, uint64(d)+1)>>40)-1<<23) / (1 << 23)
			}
			c.Floats = append(c.Floats, v)
		}
	}
}
