package workload

import "slices"

// windowRows bounds the rows of a window. Sessions do not cross windows.
const windowRows = 1 << 17

// sessionOctaves is the distribution of samples per session, in parts of 65,536: mean 16.5, with a long tail. A session
// of more than 100,000/4,096 = 24 samples must meet itself in a batch of 100,000 interleaved rows; that most have fewer
// leaves 1.15 samples of each session in a batch.
var sessionOctaves = [...]struct{ lo, hi, parts uint32 }{
	{1, 1, 3277}, {2, 3, 3277}, {4, 7, 5570}, {8, 15, 18352}, {16, 24, 31784},
	{25, 48, 2031}, {49, 96, 852}, {97, 192, 393},
}

func sessionSamples(h uint64) int {
	p := uint32(h) & 0xffff
	for _, o := range sessionOctaves {
		if p < o.parts {
			return int(o.lo + below(h, o.hi-o.lo+1))
		}
		p -= o.parts
	}
	return 1
}

// meanSamples is what sessionSamples gives on average.
const meanSamples = 16.5

// maxMeanSamples keeps the longest sessions, of 192/16.5 times the mean, well within a window.
const maxMeanSamples = 4096

// stretched returns about n samples in sessions of so many on average: rounded up or down at random, and 1 at least.
func stretched(n int, mean float64, h uint64) int {
	x := 1 + float64(n-1)*(mean-1)/(meanSamples-1)
	whole := int(x)
	if chance(h, parts(x-float64(whole))) {
		whole++
	}
	return whole
}

// A window is a run of rows that holds whole sessions. Its rows have two numbers: their place in the clustered order,
// which indexes everything here, and their arrival.
type window struct {
	windowSlot

	start   []int32  // by session, and one more: the clustered place of its first sample
	session []uint64 // by session: the key of its randomness
	of      []int32  // by place: its session
	item    []int32  // by place: the item shown
	arrival []int32  // by place
	order   []int32  // by arrival: the place
}

// A windowSlot says where in the table a window is.
type windowSlot struct {
	index, partition int
	first            int64 // rows of the table before it
	rows             int
	// The rows arrive evenly over [millis, millis+spanMillis).
	millis, spanMillis int64
}

// layOut divides the rows of a table over partitions, and those of a partition evenly over windows. A partition spans
// an hour.
func layOut(o Options) []windowSlot {
	var out []windowSlot
	n := max(int64(o.Partitions), 1)
	first := int64(0)
	for p := range n {
		left := o.Rows / n
		if p < o.Rows%n {
			left++
		}
		windows := (left + windowRows - 1) / windowRows
		for k := range windows {
			take := (left + windows - k - 1) / (windows - k)
			span := int64(hourMillis) / windows
			out = append(out, windowSlot{
				index: len(out), partition: int(p), first: first, rows: int(take),
				millis: firstMillis + (int64(o.FirstHour)+p)*hourMillis + k*span, spanMillis: span,
			})
			first += take
			left -= take
		}
	}
	return out
}

// build makes the sessions and the arrivals of a window.
func (w *window) build(root uint64, at windowSlot, mean float64) {
	key := join(join(root, 7), uint64(at.index))
	rows := at.rows
	*w = window{
		windowSlot: at,
		start:      w.start[:0], session: w.session[:0],
		of: resize(w.of, rows), item: resize(w.item, rows), arrival: resize(w.arrival, rows),
		order: resize(w.order, rows),
	}
	times := make([]uint64, rows)
	for at := 0; at < rows; {
		s := len(w.start)
		sk := join(key, uint64(s))
		n := sessionSamples(sk)
		if mean != 0 {
			n = stretched(n, mean, join(sk, 6))
		}
		n = min(n, rows-at)
		w.start, w.session = append(w.start, int32(at)), append(w.session, sk)
		// A session's samples are spread over the window, evenly but for jitter. The low bits make times distinct.
		gap := uint64(1<<44) / uint64(n)
		phase := join(sk, 1) % gap
		for k := range n {
			jitter := join(sk, uint64(k)<<8|2) % (gap/4 + 1)
			t := uint64(k)*gap + (phase+jitter)%gap
			times[at+k] = t
			w.of[at+k] = int32(s)
			w.item[at+k] = int32(zipf(join(sk, uint64(k)<<8|3), itemBits))
		}
		slices.Sort(times[at : at+n])
		at += n
	}
	w.start = append(w.start, int32(rows))
	for i := range w.order {
		w.order[i] = int32(i)
	}
	slices.SortFunc(w.order, func(a, b int32) int {
		if times[a] != times[b] {
			if times[a] < times[b] {
				return -1
			}
			return 1
		}
		return int(a - b)
	})
	for at, place := range w.order {
		w.arrival[place] = int32(at)
	}
}

// step returns the number of a place's sample in its session.
func (w *window) step(place int32) int { return int(place - w.start[w.of[place]]) }

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
