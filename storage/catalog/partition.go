package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage/names"
)

// A Partition is an ordered list of key=value. Null is Hive's default partition. String is the canonical escaped form
// "ds=2026-11-01/hr=03"; the empty Partition is "".
type Partition []PartitionValue

// A PartitionValue is one key and its value; Value is empty when Null.
type PartitionValue struct {
	Key   string
	Value string
	Null  bool
}

// KeyNames lists partition keys for an error message.
func KeyNames(keys []string) string {
	if len(keys) == 0 {
		return "nothing"
	}
	return "(" + strings.Join(keys, ", ") + ")"
}

const (
	hiveNull = "__HIVE_DEFAULT_PARTITION__"
	// MaxPartition bounds the canonical form in bytes, maxPartitionKeys its keys.
	MaxPartition     = 4096
	MaxPartitionKeys = 64
)

// String returns the canonical form. Bytes that Hive escapes are escaped as %XX; two partitions are equal when their
// forms are.
func (p Partition) String() string {
	var b strings.Builder
	for i, v := range p {
		if i > 0 {
			b.WriteByte('/')
		}
		escapeHive(&b, v.Key)
		b.WriteByte('=')
		switch {
		case v.Null:
			b.WriteString(hiveNull)
		case v.Value == hiveNull:
			// A value that reads like null: its first byte is escaped.
			b.WriteString("%5F" + hiveNull[1:])
		default:
			escapeHive(&b, v.Value)
		}
	}
	return b.String()
}

// escapeHive escapes what Hive escapes in a partition's directory name.
func escapeHive(b *strings.Builder, s string) {
	for i := range len(s) {
		c := s[i]
		if c < 0x20 || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{[]^`, c) >= 0 {
			fmt.Fprintf(b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
}

// Equal reports whether p and q are the same partition.
func (p Partition) Equal(q Partition) bool { return slices.Equal(p, q) }

// Validate returns an error when p cannot be stored: an empty or repeated key, a value beside null, or a canonical form
// of more than 4,096 bytes.
func (p Partition) Validate() error {
	if len(p) > MaxPartitionKeys {
		return fmt.Errorf("partition of %d keys: want at most %d", len(p), MaxPartitionKeys)
	}
	for i, v := range p {
		if v.Key == "" {
			return fmt.Errorf("partition %q: key %d is empty", p, i)
		}
		if v.Null && v.Value != "" {
			return fmt.Errorf("partition %q: key %q is null and has the value %q", p, v.Key, v.Value)
		}
		if slices.ContainsFunc(p[:i], func(o PartitionValue) bool { return o.Key == v.Key }) {
			return fmt.Errorf("partition %q: key %q twice", p, v.Key)
		}
	}
	if n := len(p.String()); n > MaxPartition {
		return fmt.Errorf("partition of %d bytes: want at most %d", n, MaxPartition)
	}
	return nil
}

// ParsePartition parses what String returns, and what Hive names directories: any byte may be escaped.
func ParsePartition(s string) (Partition, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > 3*MaxPartition {
		return nil, fmt.Errorf("partition of %d bytes: want at most %d", len(s), MaxPartition)
	}
	var p Partition
	for part := range strings.SplitSeq(s, "/") {
		k, v, ok := strings.Cut(part, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("partition %q: %q is no key=value", s, part)
		}
		if strings.Contains(v, "=") {
			return nil, fmt.Errorf("partition %q: %q has a second =; write %%3D for one in a value", s, part)
		}
		if len(p) == MaxPartitionKeys {
			return nil, fmt.Errorf("partition %q: more than %d keys", s, MaxPartitionKeys)
		}
		value := PartitionValue{Key: names.UnescapePercent(k), Null: v == hiveNull}
		if !value.Null {
			value.Value = names.UnescapePercent(v)
		}
		p = append(p, value)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}
