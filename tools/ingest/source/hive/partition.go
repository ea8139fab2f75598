package hive

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// PartitionValue reads the name of a directory as key=value; ok is false for a plain name.
func PartitionValue(name string) (v catalog.PartitionValue, ok bool, err error) {
	key, value, ok := strings.Cut(name, "=")
	if !ok || key == "" {
		return v, false, nil
	}
	v.Key = unescapePath(key)
	if value == hiveNull {
		v.Null = true
		return v, true, nil
	}
	v.Value = unescapePath(value)
	if !utf8.ValidString(v.Key) || !utf8.ValidString(v.Value) {
		return v, false, fmt.Errorf("partition %q: not UTF-8: rename the directory", name)
	}
	return v, true, nil
}

// unescapePath reads Hive's escapes: a % that no two hexadecimal digits follow stands for itself.
func unescapePath(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(c))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// AppendPartition returns p, copied, with one more value. A key that p has already is refused.
func AppendPartition(p catalog.Partition, v catalog.PartitionValue) (catalog.Partition, error) {
	for _, o := range p {
		if strings.EqualFold(o.Key, v.Key) { // Hive does not tell them apart
			return nil, column.Refuse(v.Key, "the partition key is given twice in one path")
		}
	}
	return append(slices.Clone(p), v), nil
}

// DirectoryPartition returns the partition that the last elements of a path name: those key=value that nothing else
// follows.
func DirectoryPartition(dir string) (catalog.Partition, error) {
	var values []catalog.PartitionValue
	for dir != "" && dir != "/" && dir != "." {
		v, ok, err := PartitionValue(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		values = append(values, v)
		dir = filepath.Dir(dir)
	}
	slices.Reverse(values)
	var p catalog.Partition
	for _, v := range values {
		var err error
		if p, err = AppendPartition(p, v); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Hidden reports whether a name stands for no data, as to Spark: a key of partitions may begin with _.
func Hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !strings.Contains(name, "=")
}

// OrderPartition returns p with its keys in the order of keys, where these are the same: p itself where they are not.
func OrderPartition(p catalog.Partition, keys []string) catalog.Partition {
	if len(p) != len(keys) {
		return p
	}
	out := make(catalog.Partition, 0, len(p))
	for _, k := range keys {
		i := slices.IndexFunc(p, func(v catalog.PartitionValue) bool { return v.Key == k })
		if i < 0 {
			return p
		}
		out = append(out, p[i])
	}
	return out
}
