package azure

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/dsistore/dsistore/storage/object"
)

var _ object.Unfinished = (*Store)(nil)

// uploadMark is between an object's name and the mark of its upload in the name of what Temporary lists. No object's
// name has a question mark.
const uploadMark = "?upload="

// Temporary lists the uploads in parts of names that have no object, with the time of their beginning. What an upload
// has left beside an object of its name is not told; it goes with the object, or after a week. The service tells no
// time of them, so that their blocks do, and blocks that other programs named are left to it.
func (s *Store) Temporary(ctx context.Context) ([]object.Info, error) {
	var open []string
	ask := container.ListBlobsFlatOptions{
		Prefix: &s.at.Prefix, Include: container.ListBlobsInclude{UncommittedBlobs: true},
	}
	err := s.pages(ctx, ask, "uploads", func(item *container.BlobItem) (bool, error) {
		name, p := strings.TrimPrefix(*item.Name, s.at.Prefix), item.Properties
		// The service gives them no ETag. Azurite does, but no tier.
		bare := p.ETag == nil || p.AccessTier == nil && (p.ContentLength == nil || *p.ContentLength == 0)
		if bare && object.ValidateName(name) == nil {
			open = append(open, name)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	found := make([][]object.Info, len(open))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(open), func(ctx context.Context, i int) (err error) {
		found[i], err = s.uploadsOf(ctx, open[i])
		return err
	})
	var out []object.Info
	for _, of := range found {
		out = append(out, of...)
	}
	return out, err
}

// uploadsOf returns the uploads of a name that has no object.
func (s *Store) uploadsOf(ctx context.Context, name string) ([]object.Info, error) {
	b, err := s.blob(name)
	if err != nil {
		return nil, err
	}
	blocks, err := b.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	if _, code := answer(err); code == bloberror.BlobNotFound { // it has ended meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, s.wrap(ctx, name, err)
	}
	if len(blocks.CommittedBlocks) > 0 {
		return nil, nil
	}
	var out []object.Info
	seen := map[string]bool{}
	for _, block := range blocks.UncommittedBlocks {
		if block.Name == nil {
			continue
		}
		mark, begun, ok := parseBlockID(*block.Name)
		if ok && !seen[mark] {
			seen[mark] = true
			out = append(out, object.Info{Name: name + uploadMark + mark, ModTime: begun.UnixNano()})
		}
	}
	return out, nil
}

// parseBlockID returns the mark of a block's upload, and when that began.
func parseBlockID(id string) (mark string, begun time.Time, ok bool) {
	b, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(b) != blockBytes {
		return "", time.Time{}, false
	}
	seconds, err := strconv.ParseInt(string(b[:8]), 16, 64)
	return string(b[:markBytes]), time.Unix(seconds, 0), err == nil
}

// RemoveTemporary drops the blocks of the name of an upload. The service has no request for that: it makes an object
// without bytes, if there is none, and deletes that one. Others may see it in between. Names of uploads are unique, so
// that no other upload has blocks there.
func (s *Store) RemoveTemporary(ctx context.Context, name string) error {
	of, _, ok := strings.Cut(name, uploadMark)
	b, err := s.blob(of)
	if err != nil || !ok {
		return fmt.Errorf("%q is no upload", name)
	}
	made, err := b.CommitBlockList(ctx, nil, &blockblob.CommitBlockListOptions{AccessConditions: ifAbsent()})
	if _, code := answer(err); code == bloberror.BlobAlreadyExists { // the upload, or another, has ended meanwhile
		return nil
	}
	if err != nil {
		return s.wrap(ctx, name, err)
	}
	_, err = b.Delete(ctx, &blob.DeleteOptions{AccessConditions: ifMatch(tagOf(made.ETag))})
	if _, code := answer(err); code == bloberror.BlobNotFound || code == bloberror.ConditionNotMet {
		return nil
	}
	return s.wrap(ctx, name, err)
}
