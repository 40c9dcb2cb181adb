// Package bucket opens the buckets of platforms: a folder, or a bucket of S3 or of any compatible store. Read
// bucket.go, then folder.go and s3.go.
package bucket

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"gocloud.dev/blob"

	"github.com/orbweaver/orbweaver/platform"
)

// Bucket is a gocloud bucket with what its own writer lacks.
type Bucket struct {
	*blob.Bucket
	Name string // at the object store; "" for a folder
	// Put and Sync are those of platform.Platform. Each is nil if the bucket does not need it.
	Put  func(ctx context.Context, name string, parts [][]byte) error
	Sync func(names []string) error
}

// Fill makes this the bucket of a platform.
func (b *Bucket) Fill(p *platform.Platform) {
	p.Bucket, p.BucketName, p.Put, p.Sync = b.Bucket, b.Name, b.Put, b.Sync
}

// Open opens the bucket at a URL: file:///PATH, a folder that several processes may use, or
// s3://BUCKET?endpoint=URL&region=REGION. Without an endpoint, s3 is Amazon S3. Credentials come from the
// environment and files that the AWS SDK reads.
func Open(ctx context.Context, text string) (*Bucket, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "":
		return Folder(filepath.FromSlash(u.Path))
	case u.Scheme == "s3" && u.Host != "" && (u.Path == "" || u.Path == "/"):
		return openS3(ctx, u)
	}
	return nil, fmt.Errorf("bucket %s: want file:///PATH or s3://BUCKET?endpoint=URL&region=REGION", u.Redacted())
}
