package object

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory is a Store that lives as long as the process. The zero value is empty and ready.
type Memory struct {
	// Now gives ModTime; default time.Now.
	Now func() time.Time

	mu      sync.RWMutex
	objects map[string]memoryObject // guarded by mu; the bytes are never written again
	sorted  []string                // their names in order; guarded by mu
	made    uint64                  // objects that were made; guarded by mu
}

type memoryObject struct {
	data    []byte
	modTime int64
	version uint64 // how many objects were made before
}

func (o memoryObject) info(name string) Info {
	return Info{Name: name, Size: int64(len(o.data)), ModTime: o.modTime, Version: strconv.FormatUint(o.version, 10)}
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{} }

func (m *Memory) URI() string { return "memory" }

func (m *Memory) get(ctx context.Context, name string) (memoryObject, error) {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return memoryObject{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.objects[name]
	if !ok {
		return memoryObject{}, notFound(name)
	}
	return o, nil
}

func (m *Memory) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	o, err := m.get(ctx, name)
	if err := errors.Join(err, checkRange(name, off)); err != nil {
		return err
	}
	size := int64(len(o.data))
	if off > size || int64(len(p)) > size-off {
		return shortRead(name, len(p), off, size)
	}
	copy(p, o.data[off:])
	return nil
}

func (m *Memory) Stat(ctx context.Context, name string) (Info, error) {
	o, err := m.get(ctx, name)
	if err != nil {
		return Info{}, err
	}
	return o.info(name), nil
}

func (m *Memory) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return err
	}
	return m.put(name, bytes.Clone(data))
}

// put takes data over.
func (m *Memory) put(name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok {
		return exists(name)
	}
	m.set(name, data)
	return nil
}

// set makes or replaces an object. The caller holds mu; data is taken over.
func (m *Memory) set(name string, data []byte) {
	now := m.Now
	if now == nil {
		now = time.Now
	}
	if m.objects == nil {
		m.objects = map[string]memoryObject{}
	}
	if i, found := slices.BinarySearch(m.sorted, name); !found {
		m.sorted = slices.Insert(m.sorted, i, name)
	}
	m.objects[name] = memoryObject{data: data, modTime: now().UnixNano(), version: m.made}
	m.made++
}

func (m *Memory) Create(ctx context.Context, name string) (Writer, error) {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return nil, err
	}
	return &memoryWriter{m: m, ctx: ctx, name: name}, nil
}

type memoryWriter struct {
	m    *Memory         // nil once it has ended
	ctx  context.Context // of Create
	name string
	buf  []byte
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	if w.m == nil {
		return 0, fmt.Errorf("object %s: write after the end", w.name)
	}
	if err := checkUpload(w.ctx, w.name); err != nil {
		return 0, err
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *memoryWriter) Commit(ctx context.Context) error {
	if w.m == nil {
		return fmt.Errorf("object %s: commit after the end", w.name)
	}
	m := w.m
	w.m = nil
	if err := cmp.Or(checkUpload(w.ctx, w.name), ctx.Err()); err != nil {
		return err
	}
	return m.put(w.name, w.buf)
}

func (w *memoryWriter) Abort() { w.m, w.buf = nil, nil }

func (m *Memory) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		m.mu.RLock()
		from, _ := slices.BinarySearch(m.sorted, max(prefix, startAfter))
		var found []Info
		for _, name := range m.sorted[from:] {
			if !strings.HasPrefix(name, prefix) {
				break
			}
			if o := m.objects[name]; name > startAfter {
				found = append(found, o.info(name))
			}
		}
		m.mu.RUnlock()
		for _, info := range found {
			if err := ctx.Err(); err != nil {
				yield(Info{}, err)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), ValidateName(name)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := slices.BinarySearch(m.sorted, name); ok {
		m.sorted = slices.Delete(m.sorted, i, i+1)
		delete(m.objects, name)
	}
	return nil
}

func (m *Memory) Truncate(ctx context.Context, of Info) error {
	if err := errors.Join(ctx.Err(), ValidateName(of.Name)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.objects[of.Name]; of.Version != "" && (!ok || o.info(of.Name).Version != of.Version) {
		if ok && len(o.data) == 0 {
			return nil
		}
		return Changed(of.Name)
	}
	m.set(of.Name, nil)
	return nil
}
