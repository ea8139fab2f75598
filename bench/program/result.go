package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Machine is what a figure depends on.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"` // 0 where it is not known
	OS          string `json:"os"`
	Go          string `json:"go"`
	Revision    string `json:"revision"` // of this module; "" where the build does not say
}

// ThisMachine describes the machine that runs the process.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	m.CPU = procField("/proc/cpuinfo", "model name")
	m.MemoryBytes = procKiB("/proc/meminfo", "MemTotal")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				m.Revision = s.Value
			}
		}
	}
	return m
}

// PeakBytes returns the most memory that the process was resident in, or 0 where the system does not say.
func PeakBytes() int64 { return procKiB("/proc/self/status", "VmHWM") }

// A Usage is what a process has used; zeros where the system does not say.
type Usage struct{ CPUSeconds, PageFaults float64 }

// CPUSeconds returns the CPU seconds that the process has used so far.
func CPUSeconds() float64 { return Used().CPUSeconds }

// procField returns the value of the first "name : value" line of a file, or "".
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func procKiB(path, name string) int64 {
	var n int64
	if _, err := fmt.Sscanf(procField(path, name), "%d kB", &n); err != nil {
		return 0
	}
	return n << 10
}

// Median returns the middle of v, or the mean of the two in the middle; 0 of none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s) / 2; len(s)%2 == 1 {
		return s[n]
	} else {
		return (s[n-1] + s[n]) / 2
	}
}

// MedianOf returns the median of a field of all.
func MedianOf[T any](all []T, field func(T) float64) float64 {
	v := make([]float64, len(all))
	for i := range all {
		v[i] = field(all[i])
	}
	return Median(v)
}

// Milliseconds returns d in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// Write writes v with the machine and the time as dir/name.json, in place of an earlier result, and returns the path.
func Write(dir, name string, v any) (string, error) {
	now := time.Now().UTC()
	out := struct {
		Benchmark string    `json:"benchmark"`
		Time      time.Time `json:"time"`
		Command   []string  `json:"command"`
		Machine   Machine   `json:"machine"`
		Result    any       `json:"result"`
	}{name, now, append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), ThisMachine(), v}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+".json")
	return path, os.WriteFile(path, append(data, '\n'), 0o666)
}
