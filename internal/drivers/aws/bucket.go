package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

func openBucket(ctx context.Context, cfg aws.Config, l Location) (*blob.Bucket, error) {
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if localEndpoint(o.BaseEndpoint) {
			o.UsePathStyle = true
		}
	})
	b, err := s3blob.OpenBucket(ctx, client, l.Bucket, nil)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", l.Bucket, err)
	}
	return b, nil
}

// put stores an object with one request, whatever its size. gocloud's writer cuts it into parts from 16 MB on,
// each billed as a put, and copies it several times. A repeated put is harmless, because a name never has other
// bytes (I6).
func (d *deployment) put(ctx context.Context, name string, parts [][]byte) error {
	var client *s3.Client
	if !d.bucket.As(&client) {
		return errors.ErrUnsupported
	}
	body := newPieces(parts)
	_, err := client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &d.Bucket, Key: &name, Body: io.NewSectionReader(body, 0, body.size),
		ContentLength: aws.Int64(body.size), ContentType: aws.String("application/octet-stream"),
	})
	if err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	return nil
}

// pieces reads several slices as one, without a copy. Each attempt of a request reads it again.
type pieces struct {
	parts  [][]byte
	starts []int64 // of each part
	size   int64
}

func newPieces(parts [][]byte) *pieces {
	s := &pieces{parts: parts, starts: make([]int64, len(parts))}
	for i, p := range parts {
		s.starts[i] = s.size
		s.size += int64(len(p))
	}
	return s
}

func (s *pieces) ReadAt(p []byte, off int64) (n int, err error) {
	i := sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > off }) - 1
	for ; i >= 0 && i < len(s.parts) && n < len(p); i++ {
		if skip := off + int64(n) - s.starts[i]; skip < int64(len(s.parts[i])) {
			n += copy(p[n:], s.parts[i][skip:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
