package writer

import "github.com/dsistore/dsistore/format/vector"

// stripeColumns are the columns of a stripe's runs or inputs. Their memory is reused from stripe to stripe.
type stripeColumns struct {
	memory []vector.Column
	used   []*vector.Column // by number of the run or input; nil: null in every row
}

// slackBytes is unused memory of columns that is not worth freeing.
const slackBytes = 64 << 10

// begin begins a stripe of so many runs or inputs, and returns where column puts their columns: borrowed until the next
// call.
//
// A stripe may need much of the first one and little of the others, and the next stripe much of another: each column
// would become as large as the largest. So memory of which the last stripe used less than half is freed.
func (s *stripeColumns) begin(n int) []*vector.Column {
	held, used := int64(0), int64(0)
	for i := range s.memory {
		held += s.memory[i].HeldBytes()
		used += s.usedBytes(i)
	}
	if held > 2*used+slackBytes {
		for i := range s.memory {
			if c := &s.memory[i]; c.HeldBytes() > 2*s.usedBytes(i) {
				*c = vector.Column{}
			}
		}
	}
	for len(s.memory) < n {
		s.memory = append(s.memory, vector.Column{})
	}
	s.used = vector.Resize(s.used, n)
	clear(s.used)
	return s.used
}

// usedBytes returns how much the last stripe used of a column's memory.
func (s *stripeColumns) usedBytes(i int) int64 {
	if i >= len(s.used) || s.used[i] == nil {
		return 0
	}
	return int64(s.memory[i].SizeBytes())
}

// column returns the column of a run or input of the stripe, of type t. It is empty when it is asked for first.
func (s *stripeColumns) column(i int, t vector.Type) *vector.Column {
	if s.used[i] == nil {
		c := &s.memory[i]
		c.Type = t
		c.Reset()
		s.used[i] = c
	}
	return s.used[i]
}

// trim frees the memory if it is more than keep bytes. There is no stripe then.
func (s *stripeColumns) trim(keep int64) {
	held := int64(0)
	for i := range s.memory {
		held += s.memory[i].HeldBytes()
	}
	if held > keep {
		*s = stripeColumns{}
	}
}

// trim frees the memory of a column that is not used any more if it is more than keep bytes.
func trim(c *vector.Column, keep int64) {
	if c.HeldBytes() > keep {
		*c = vector.Column{}
	}
}
