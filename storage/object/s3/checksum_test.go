package s3

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object/remote/remotetest"
)

// An upload whose parts have checksums, as those to AWS have, says so from its beginning to its end. To other services
// it has none.
func TestChecksumsOfParts(t *testing.T) {
	server := objectserver.StartS3(t, "tables")
	o, err := ParseOptions(server.Options())
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		s, err := Open(t.Context(), "s3://tables/sums", o)
		if err != nil {
			t.Fatal(err)
		}
		name := "without"
		if on {
			name = "with"
			s.client = awss3.New(s.client.Options(), func(o *awss3.Options) {
				o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
			})
		}
		if err := remotetest.Put(t.Context(), s, name, remotetest.Large(20<<20)); err != nil {
			t.Fatal(err)
		}
		key, err := s.key(name)
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.client.HeadObject(t.Context(), &awss3.HeadObjectInput{
			Bucket: &s.at.Bucket, Key: key, ChecksumMode: types.ChecksumModeEnabled,
		})
		if err != nil {
			t.Fatal(err)
		}
		// Of three parts.
		if sum := aws.ToString(head.ChecksumCRC32); strings.HasSuffix(sum, "-3") != on || !on && sum != "" {
			t.Errorf("%s checksums: %q", name, sum)
		}
	}
}
