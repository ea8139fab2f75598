package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

const (
	partBytes = 8 << 20 // of a part: S3's least is 5 MiB, and at most maxParts make an object
	maxParts  = 10_000
	// partsAtOnce of an upload are on their way; while they are, Write fills one more.
	partsAtOnce = 4
	// abortTimeout bounds what Abort waits for the service; gc ends uploads that are left.
	abortTimeout = 30 * time.Second
)

// errEnded is the error of a writer that was committed or aborted.
var errEnded = errors.New("the writer has ended")

// A writer is an upload: none before there is more than a part. Its owner's goroutine uses it.
type writer struct {
	s    *Store
	ctx  context.Context // of Create
	name string
	key  *string
	id   string // that the object carries: see Store.made

	part   []byte // that is being filled
	upload *string
	parts  int // that were sent
	group  *errgroup.Group
	gctx   context.Context // of the parts that are sent
	cancel func()          // of gctx
	ended  bool

	mu   sync.Mutex
	done []types.CompletedPart // by position; guarded by mu
	free [][]byte              // buffers of parts that were sent; guarded by mu
}

// Create starts an object. It makes no request.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("object %s: %w", name, err)
	}
	return &writer{s: s, ctx: ctx, name: name, key: key, id: rand.Text()}, nil
}

// CreateInParts is Create with an upload in parts however small the object is: object.Probe tests a service by it.
func (s *Store) CreateInParts(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.Create(ctx, name)
	if err == nil {
		err = w.(*writer).begin()
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// usable returns an error if the writer or the context of its Create has ended.
func (w *writer) usable() error {
	if w.ended {
		return fmt.Errorf("object %s: %w", w.name, errEnded)
	}
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("object %s: the context that it was created under has ended: %w", w.name, err)
	}
	return nil
}

// Write copies p into parts, and sends those that are full. The error of a part is that of a later Write or of Commit.
func (w *writer) Write(p []byte) (int, error) {
	n := len(p)
	if err := w.usable(); err != nil {
		return 0, err
	}
	for len(p) > 0 {
		if len(w.part) == partBytes {
			if err := w.send(); err != nil {
				return 0, err
			}
		}
		k := min(len(p), partBytes-len(w.part))
		w.part = append(w.part, p[:k]...)
		p = p[k:]
	}
	return n, nil
}

// send starts sending the part. It begins the upload if need be, and waits while enough parts are on their way.
func (w *writer) send() error {
	if w.upload == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if w.gctx.Err() != nil {
		return w.group.Wait()
	}
	if w.parts == maxParts {
		return fmt.Errorf("object %s: more than %d bytes", w.name, maxParts*partBytes)
	}
	part, number := w.part, w.parts
	w.parts++
	w.mu.Lock()
	w.done = append(w.done, types.CompletedPart{})
	if k := len(w.free) - 1; k >= 0 {
		w.part, w.free = w.free[k][:0], w.free[:k]
	} else {
		w.part = make([]byte, 0, partBytes)
	}
	w.mu.Unlock()
	w.group.Go(func() error {
		out, err := w.s.client.UploadPart(w.gctx, &awss3.UploadPartInput{
			Bucket: &w.s.at.Bucket, Key: w.key, UploadId: w.upload, PartNumber: aws.Int32(int32(number + 1)),
			Body: bytes.NewReader(part), ContentLength: aws.Int64(int64(len(part))),
		})
		if err != nil {
			return w.s.wrap(w.gctx, w.name, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done[number] = types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(int32(number + 1))}
		w.free = append(w.free, part)
		return nil
	})
	return nil
}

// begin begins the upload.
func (w *writer) begin() error {
	out, err := w.s.client.CreateMultipartUpload(w.ctx, &awss3.CreateMultipartUploadInput{
		Bucket: &w.s.at.Bucket, Key: w.key, Metadata: map[string]string{remote.IDKey: w.id},
	})
	if err != nil {
		return w.s.wrap(w.ctx, w.name, err)
	}
	w.upload = out.UploadId
	ctx, cancel := context.WithCancel(w.ctx)
	w.cancel = cancel
	w.group, w.gctx = errgroup.WithContext(ctx)
	w.group.SetLimit(partsAtOnce)
	return nil
}

// Commit makes the object: by one request where it is less than a part.
func (w *writer) Commit(ctx context.Context) error {
	if err := w.usable(); err != nil {
		w.Abort()
		return err
	}
	if err := ctx.Err(); err != nil {
		w.Abort()
		return fmt.Errorf("object %s: %w", w.name, err)
	}
	// It ends with the context of Create, too.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if w.upload == nil {
		w.ended = true
		return w.s.put(ctx, w.name, w.key, w.part, w.id)
	}
	err := w.complete(ctx)
	if err != nil {
		w.Abort()
	}
	w.ended = true
	w.cancel()
	return err
}

func (w *writer) complete(ctx context.Context) error {
	if len(w.part) > 0 {
		if err := w.send(); err != nil {
			return err
		}
	}
	if err := w.group.Wait(); err != nil {
		return err
	}
	_, err := w.s.client.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{
		Bucket: &w.s.at.Bucket, Key: w.key, UploadId: w.upload, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: w.done},
	})
	return w.s.made(ctx, w.name, w.key, w.id, err)
}

// Abort ends an upload, so that its parts take no room.
func (w *writer) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	if w.upload == nil {
		return
	}
	w.cancel()
	_ = w.group.Wait() // a part that arrives after the end of its upload may stay
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abortTimeout)
	defer cancel()
	_, _ = w.s.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
		Bucket: &w.s.at.Bucket, Key: w.key, UploadId: w.upload,
	})
}
