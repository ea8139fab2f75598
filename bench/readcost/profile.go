package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// A frame is a function and what it called, with the time of each: a node of the tree that the stacks of a profile
// make.
type frame struct {
	name     string
	value    int64 // of it and what it called
	children []*frame
}

func (f *frame) child(name string) *frame {
	for _, c := range f.children {
		if c.name == name {
			return c
		}
	}
	c := &frame{name: name}
	f.children = append(f.children, c)
	return c
}

// add adds a stack, the outermost function first.
func (f *frame) add(stack []string, value int64) {
	f.value += value
	for _, name := range stack {
		f = f.child(name)
		f.value += value
	}
}

// sort puts what took longest first.
func (f *frame) sort() {
	slices.SortFunc(f.children, func(a, b *frame) int { return int(b.value - a.value) })
	for _, c := range f.children {
		c.sort()
	}
}

var errProfile = errors.New("not a profile of package runtime/pprof")

// stacks calls each with the stacks of a profile, the outermost function first, and the last of its values: nanoseconds
// where it is of the processor. The format is that of github.com/google/pprof/proto/profile.proto.
func stacks(profile []byte, each func(stack []string, value int64)) error {
	z, err := gzip.NewReader(bytes.NewReader(profile))
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	var texts []string
	// name of a function; functions at a place, innermost first
	functions, locations := map[uint64]uint64{}, map[uint64][]uint64{}
	var samples [][]byte
	err = fields(raw, func(number int, v uint64, b []byte) error {
		switch number {
		case 2:
			samples = append(samples, b)
		case 4:
			var id uint64
			var at []uint64
			err := fields(b, func(number int, v uint64, b []byte) error {
				switch number {
				case 1:
					id = v
				case 4:
					return fields(b, func(number int, v uint64, _ []byte) error {
						if number == 1 {
							at = append(at, v)
						}
						return nil
					})
				}
				return nil
			})
			locations[id] = at
			return err
		case 5:
			var id, name uint64
			err := fields(b, func(number int, v uint64, _ []byte) error {
				switch number {
				case 1:
					id = v
				case 2:
					name = v
				}
				return nil
			})
			functions[id] = name
			return err
		case 6:
			texts = append(texts, string(b))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range samples {
		var stack []string
		var value int64
		err := fields(s, func(number int, v uint64, b []byte) error {
			return packed(v, b, func(v uint64) error {
				switch number {
				case 1:
					for _, f := range locations[v] {
						name := functions[f]
						if name >= uint64(len(texts)) {
							return errProfile
						}
						stack = append(stack, texts[name])
					}
				case 2:
					value = int64(v)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		slices.Reverse(stack)
		each(stack, value)
	}
	return nil
}

// fields calls each with the fields of a message: v is a number, b bytes.
func fields(message []byte, each func(number int, v uint64, b []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errProfile
		}
		message = message[n:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(message)
		default: // profiles have no fixed numbers
			n = -1
		}
		if n < 0 {
			return errProfile
		}
		message = message[n:]
		if err := each(int(number), v, b); err != nil {
			return err
		}
	}
	return nil
}

// packed calls each with the numbers of a repeated field, which come one by one or as bytes.
func packed(v uint64, b []byte, each func(uint64) error) error {
	if b == nil {
		return each(v)
	}
	for len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return errProfile
		}
		if err := each(v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
