package diskcache

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/storage/object"
)

const (
	// Variable is the environment variable that names the directory of the cache.
	Variable = "DSISTORE_CACHE"
	// SizeVariable is how much of the disk a new one may take.
	SizeVariable = "DSISTORE_CACHE_SIZE"

	// DirOption and SizeOption are the same as options of a store, which go before the environment.
	DirOption  = "cache_dir"
	SizeOption = "cache_size"

	// environment begins the names of options that are variables of an environment, which is another than the process
	// began with.
	environment = "environment."
)

// OpenStore is object.OpenWith of a store whose reads go through the cache that its options or the environment name,
// if the store is far away: cache_dir is its directory, or none where it is "", and cache_size is Open's bytes as
// ParseSize has them. Caches stay open until the process ends.
func OpenStore(uri string, options map[string]string) (object.Store, error) {
	rest := maps.Clone(options)
	take := func(option, variable string) string {
		value, ok := rest[option]
		if !ok {
			if value, ok = rest[environment+variable]; !ok {
				value = os.Getenv(variable)
			}
		}
		delete(rest, option)
		delete(rest, environment+variable)
		return value
	}
	dir, size := take(DirOption, Variable), take(SizeOption, SizeVariable)
	s, err := object.OpenWith(uri, rest)
	if err != nil || dir == "" || !object.HighLatency(s) {
		return s, err
	}
	bytes, err := ParseSize(size)
	if err != nil {
		return nil, err
	}
	return wrap(s, dir, bytes)
}

// ParseSize parses a number of bytes, with KiB, MiB, GiB or TiB, or K, M, G or T for the same; "" is 0.
func ParseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number := strings.TrimSuffix(strings.TrimSuffix(text, "iB"), "B")
	shift := 0
	if n := len(number); n > 0 {
		if at := strings.IndexByte("KMGT", number[n-1]); at >= 0 {
			number, shift = strings.TrimSpace(number[:n-1]), 10*(at+1)
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if bytes := f * float64(int64(1)<<shift); err == nil && bytes >= 1 && bytes < 1<<62 {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("size of a cache %q: want a number of bytes, for instance 200GiB", text)
}
