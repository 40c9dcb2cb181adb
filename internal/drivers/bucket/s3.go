package bucket

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob/s3blob"
)

// defaultRegion signs requests to stores that know no regions.
const defaultRegion = "us-east-1"

// openS3 opens the bucket at a URL of S3. It makes one call, so that a missing bucket, wrong credentials and a store
// that cannot be reached are reported at once.
func openS3(ctx context.Context, u *url.URL) (*Bucket, error) {
	options := []func(*config.LoadOptions) error{config.WithDefaultRegion(defaultRegion), config.WithLogger(logging.Nop{})}
	store := "Amazon S3"
	for key, values := range u.Query() {
		switch v := values[0]; {
		case len(values) != 1 || v == "":
			return nil, fmt.Errorf("bucket %s: parameter %s needs one value", u.Host, key)
		case key == "region":
			options = append(options, config.WithRegion(v))
		case key == "endpoint":
			// Some compatible stores refuse the checksums that the SDK adds by itself.
			options = append(options, config.WithBaseEndpoint(v), config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
				config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired))
			store = v
		default:
			return nil, fmt.Errorf("bucket %s: parameter %s is unknown (want endpoint or region)", u.Host, key)
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of bucket %s: %w", u.Host, err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = u.Query().Has("endpoint") || LocalEndpoint(o.BaseEndpoint) })
	if _, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &u.Host}); err != nil {
		return nil, fmt.Errorf("open bucket %s at %s: create it if it does not exist, and check the endpoint and the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY): %w",
			u.Host, store, err)
	}
	return S3(ctx, client, u.Host)
}

// S3 returns the bucket of a client.
func S3(ctx context.Context, client *s3.Client, name string) (*Bucket, error) {
	b, err := s3blob.OpenBucket(ctx, client, name, nil)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", name, err)
	}
	return &Bucket{Bucket: b, Name: name, Put: func(ctx context.Context, object string, parts [][]byte) error {
		return put(ctx, client, name, object, parts)
	}}, nil
}

// LocalEndpoint reports whether an endpoint is an IP address or this machine. No bucket has a DNS name
// there.
func LocalEndpoint(endpoint *string) bool {
	u, err := url.Parse(aws.ToString(endpoint))
	if err != nil {
		return false
	}
	host := u.Hostname()
	_, err = netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// put stores an object with one request, whatever its size. gocloud's writer cuts it into parts from 16 MB on,
// each billed as a put, and copies it several times. A repeated put is harmless, because a name never has other
// bytes (I6).
func put(ctx context.Context, client *s3.Client, bucket, name string, parts [][]byte) error {
	body := newPieces(parts)
	_, err := client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &bucket, Key: &name, Body: io.NewSectionReader(body, 0, body.size),
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
