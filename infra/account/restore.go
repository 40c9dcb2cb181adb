package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

const (
	restoreTime = 12 * time.Hour // for a table; small ones take minutes
	clocks      = time.Minute    // more than the clocks of table and bucket differ
	copies      = 32             // at a time
)

// restoreTable lets DynamoDB restore a table as of a moment under another name, and waits until the new table
// can be used.
func (a *account) restoreTable(ctx context.Context, from, to string, at time.Time) error {
	client := a.table()
	_, err := client.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: &from, TargetTableName: &to, RestoreDateTime: &at,
	})
	var exists *dynamotypes.TableAlreadyExistsException
	var inUse *dynamotypes.ResourceInUseException
	if errors.As(err, &exists) || errors.As(err, &inUse) {
		got, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &to})
		if err != nil {
			return fmt.Errorf("table %s: %w", to, err)
		}
		if r := got.Table.RestoreSummary; r == nil || !strings.HasSuffix(aws.ToString(r.SourceTableArn), ":table/"+from) || !aws.ToTime(r.RestoreDateTime).Equal(at) {
			return fmt.Errorf("there is a table %s already, which is not %s of that moment: restore under another name", to, from)
		}
	} else if err != nil {
		return fmt.Errorf("restore table %s of %s: %w", from, at.Format(time.RFC3339), err)
	}
	fmt.Fprintf(a.out, "table %s: DynamoDB restores it from %s, which takes minutes at least\n", to, from)
	if err := dynamodb.NewTableExistsWaiter(client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &to}, restoreTime); err != nil {
		return fmt.Errorf("wait for table %s: %w", to, err)
	}
	return nil
}

// entry is a version of an object, or a marker that it was deleted.
type entry struct {
	key, version string
	time         time.Time
	deleted      bool
	size         int64
}

// contents returns the objects that a bucket contained at a moment, given all its entries: for each key the
// newest version, unless it was deleted by then. It includes objects of the next minute, because the clocks of
// table and bucket differ and every object that the table names must be there. The surplus does no harm.
func contents(entries []entry, at time.Time) []entry {
	newest := map[string]entry{}
	for _, e := range entries {
		if e.deleted && e.time.After(at) || e.time.After(at.Add(clocks)) {
			continue
		}
		n, ok := newest[e.key]
		if !ok || e.time.After(n.time) || e.time.Equal(n.time) && n.deleted {
			newest[e.key] = e
		}
	}
	var out []entry
	for _, e := range newest {
		if !e.deleted {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return out
}

// restoreBucket copies the objects that a bucket contained at a moment to another bucket. S3 copies them
// itself. Objects that are already there, with the same size, are skipped.
func (a *account) restoreBucket(ctx context.Context, from, to string, at time.Time) error {
	client := a.bucket()
	if got, err := client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &from}); err != nil {
		return fmt.Errorf("bucket %s: %w", from, err)
	} else if got.Status != types.BucketVersioningStatusEnabled {
		return fmt.Errorf("bucket %s keeps no versions (recovery_days is 0): what was deleted since then is gone", from)
	}
	all, err := entries(ctx, client, from)
	if err != nil {
		return err
	}
	have, err := entries(ctx, client, to)
	if err != nil {
		return err
	}
	there := map[string]int64{}
	for _, e := range contents(have, time.Now()) {
		there[e.key] = e.size
	}
	missing := slices.DeleteFunc(contents(all, at), func(e entry) bool {
		size, ok := there[e.key]
		return ok && size == e.size
	})
	fmt.Fprintf(a.out, "bucket %s: %d objects to copy from %s\n", to, len(missing), from)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copies)
	for _, e := range missing {
		if ctx.Err() != nil {
			break // a copy failed
		}
		group.Go(func() error {
			source := from + "/" + (&url.URL{Path: e.key}).EscapedPath() + "?versionId=" + url.QueryEscape(e.version)
			if _, err := client.CopyObject(ctx, &s3.CopyObjectInput{Bucket: &to, Key: &e.key, CopySource: &source}); err != nil {
				return fmt.Errorf("copy %s: %w; repeat the restore, which copies only what is missing", e.key, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// entries lists all versions and delete markers of a bucket.
func entries(ctx context.Context, client *s3.Client, bucket string) (out []entry, err error) {
	pages := s3.NewListObjectVersionsPaginator(client, &s3.ListObjectVersionsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the versions in %s: %w", bucket, err)
		}
		for _, v := range page.Versions {
			out = append(out, entry{aws.ToString(v.Key), aws.ToString(v.VersionId), aws.ToTime(v.LastModified), false, aws.ToInt64(v.Size)})
		}
		for _, d := range page.DeleteMarkers {
			out = append(out, entry{aws.ToString(d.Key), aws.ToString(d.VersionId), aws.ToTime(d.LastModified), true, 0})
		}
	}
	return out, nil
}
