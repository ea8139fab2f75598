package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// An upload makes an object: see remote.UploadWriter.
type upload struct {
	s    *Store
	name string
	key  *string
	id   string  // that the object carries: see Store.made
	of   *string // the service's id of the upload in parts

	mu   sync.Mutex
	done []types.CompletedPart // by position; guarded by mu
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
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	return remote.NewUploadWriter(ctx, name, &upload{s: s, name: name, key: key, id: rand.Text()})
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
	return u.s.put(ctx, u.name, u.key, data, u.id)
}

func (u *upload) Begin(ctx context.Context) error {
	out, err := u.s.client.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{
		Bucket: &u.s.at.Bucket, Key: u.key, Metadata: map[string]string{remote.IDKey: u.id},
		ChecksumAlgorithm: u.s.checksum(),
	})
	if err != nil {
		return u.s.wrap(ctx, u.name, err)
	}
	u.of = out.UploadId
	return nil
}

// checksum returns the algorithm of the checksums that parts have, empty where they have none: other services than AWS
// do not know them. The SDK adds them to parts by itself, but leaves it to its callers to say so at the beginning and
// the end of an upload.
func (s *Store) checksum() types.ChecksumAlgorithm {
	if s.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		return types.ChecksumAlgorithmCrc32
	}
	return ""
}

func (u *upload) AtOnce() int { return 4 }

func (u *upload) Part(ctx context.Context, number int, data []byte) error {
	out, err := u.s.client.UploadPart(ctx, &awss3.UploadPartInput{
		Bucket: &u.s.at.Bucket, Key: u.key, UploadId: u.of, PartNumber: aws.Int32(int32(number + 1)),
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))), ChecksumAlgorithm: u.s.checksum(),
	})
	if err != nil {
		return u.s.wrap(ctx, u.name, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.done) <= number {
		u.done = append(u.done, types.CompletedPart{})
	}
	u.done[number] = types.CompletedPart{
		ETag: out.ETag, PartNumber: aws.Int32(int32(number + 1)), ChecksumCRC32: out.ChecksumCRC32,
	}
	return nil
}

func (u *upload) Complete(ctx context.Context, n int, _ []byte) error {
	out, err := u.s.client.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{
		Bucket: &u.s.at.Bucket, Key: u.key, UploadId: u.of, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.done[:n]},
	})
	if err == nil && out.ETag == nil { // the status comes before the service is done
		err = errors.New("the answer to the end of the upload has no ETag")
	}
	return u.s.made(ctx, u.name, u.key, u.id, err)
}

// Abort ends the upload, so that its parts take no room.
func (u *upload) Abort(ctx context.Context) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	_, _ = u.s.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
		Bucket: &u.s.at.Bucket, Key: u.key, UploadId: u.of,
	})
}
