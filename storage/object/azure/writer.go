package azure

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// idKey is remote.IDKey in a form that the service takes: an identifier of C#, in any case.
const idKey = "dsiwrite"

func carries(id string) map[string]*string { return map[string]*string{idKey: &id} }

// idOf returns the id that an object carries.
func idOf(metadata map[string]*string) string {
	for key, id := range metadata {
		if strings.EqualFold(key, idKey) && id != nil {
			return *id
		}
	}
	return ""
}

// ifAbsent is If-None-Match: *.
func ifAbsent() *blob.AccessConditions {
	any := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &any}}
}

// An upload makes an object: see remote.UploadWriter. Uncommitted blocks belong to the name of an object, and not to an
// upload, so that each has names of its own: they begin with the time and the id of the upload.
type upload struct {
	s    *Store
	name string
	blob *blockblob.Client
	id   string // that the object carries: see Store.made
	mark string // of the upload: see blockMark
}

// Create starts an object. It makes no request.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.create(ctx, name)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s *Store) create(ctx context.Context, name string) (*remote.UploadWriter, error) {
	b, err := s.blob(name)
	if err != nil {
		return nil, err
	}
	return remote.NewUploadWriter(ctx, name, &upload{s: s, name: name, blob: b, id: rand.Text()})
}

// CreateInParts is Create with an upload in parts however small the object is: object.Probe tests a service by it.
func (s *Store) CreateInParts(ctx context.Context, name string) (object.Writer, error) {
	w, err := s.create(ctx, name)
	if err == nil {
		err = w.Begin()
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (u *upload) Put(ctx context.Context, data []byte) error {
	return u.s.put(ctx, u.name, u.blob, data, u.id)
}

// Begin gives the blocks their names. It makes a request only where the service's time is not known yet.
func (u *upload) Begin(ctx context.Context) error {
	now, err := u.s.clock.now(func() error {
		_, err := u.s.Stat(ctx, u.name)
		return err
	})
	if err != nil {
		return err
	}
	u.mark = blockMark(now, u.id)
	return nil
}

func (u *upload) AtOnce() int { return 4 }

func (u *upload) Part(ctx context.Context, number int, data []byte) error {
	_, err := u.blob.StageBlock(ctx, blockID(u.mark, number), streaming.NopCloser(bytes.NewReader(data)), nil)
	return u.s.wrap(ctx, u.name, err)
}

// Complete makes the object. InvalidBlockList says that the blocks are gone: by another object of the name, or by this
// one, whose answer was lost.
func (u *upload) Complete(ctx context.Context, n int, _ []byte) error {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = blockID(u.mark, i)
	}
	_, err := u.blob.CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{
		Metadata: carries(u.id), AccessConditions: ifAbsent(),
	})
	return u.s.made(ctx, u.name, u.blob, u.id, err)
}

// Abort leaves the blocks: to drop them takes an object of the name, which others would see. gc does that when they are
// old, and the service after a week.
func (u *upload) Abort(context.Context) {}

const (
	markBytes  = 8 + 26 // of a time and an id
	blockBytes = markBytes + 5
)

// blockMark begins the names of an upload's blocks: Unix seconds by the service's clock, and the upload's id.
func blockMark(begun time.Time, id string) string { return fmt.Sprintf("%08x%s", begun.Unix(), id) }

// blockID returns the name of a block. All have the same length, as the service demands of those of a blob.
func blockID(mark string, number int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s%05d", mark, number))
}

// put creates an object that carries an id.
func (s *Store) put(ctx context.Context, name string, b *blockblob.Client, data []byte, id string) error {
	_, err := b.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
		Metadata: carries(id), AccessConditions: ifAbsent(),
	})
	return s.made(ctx, name, b, id, err)
}

// made returns nil if a creation made its object, whatever error it ended with, and ErrExists if another one did.
func (s *Store) made(ctx context.Context, name string, b *blockblob.Client, id string, err error) error {
	if err == nil {
		return nil
	}
	status, code := answer(err)
	if ctx.Err() != nil || status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusBadRequest && code != bloberror.InvalidBlockList {
		return s.wrap(ctx, name, err) // it had no effect, or nobody waits for it
	}
	err = s.wrap(ctx, name, err)
	return remote.Made(name, id, err, errors.Is(err, object.ErrExists), func() (string, error) {
		out, err := b.GetProperties(ctx, nil)
		if err != nil {
			return "", s.wrap(ctx, name, err)
		}
		return idOf(out.Metadata), nil
	})
}
