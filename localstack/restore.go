package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// restored restores table and bucket of one moment in the middle of a crawl as another
// deployment, like 'make restore'. Before that, the first deployment finishes its crawl, and
// all its objects are deleted. The restored crawl must end with the pages of the web. DynamoDB
// Local has no backups, so this function copies the table at that moment.
func restored(ctx context.Context, w *world) (map[string]any, error) {
	srv, err := w.serve(ctx, simweb.Config{Seed: 22, Hosts: 24, Pages: simweb.Pages{Min: 20}, CrossHost: 0.3})
	if err != nil {
		return nil, err
	}
	back, err := w.bare(ctx, "from")
	if err != nil {
		return nil, err
	}
	defer back()
	from := w.deployed
	if _, err := w.bucket.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: &from.bucket, VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusEnabled},
	}); err != nil {
		return nil, err
	}
	list, err := w.twoWorkers(ctx, srv.Web().Seeds())
	if err != nil {
		return nil, err
	}
	records, err := w.snapshot(ctx, from.name)
	if err != nil {
		return nil, err
	}
	at, pages := time.Now(), list[0].told().Pages+list[1].told().Pages
	late, err := w.worker(ctx, "--idle-exit")
	if err != nil {
		return nil, err
	}
	if err := late.ends(ctx); err != nil {
		return nil, err
	}
	for _, k := range list {
		if err := k.cmd.Process.Kill(); err != nil {
			return nil, err
		}
		if err := <-k.done; err == nil {
			return nil, errors.New("a worker ended by itself before it was killed")
		}
	}
	all, err := w.compare(ctx, srv.Web())
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	deleted, err := w.sweepAll(ctx, from.bucket)
	if err != nil {
		return nil, err
	}
	if pages == 0 || int(pages) >= all {
		return nil, fmt.Errorf("the moment, after %d pages of %d, is not in the middle", pages, all)
	}
	again, err := w.goOn(ctx, from.bucket, at, records)
	if err != nil {
		return nil, err
	}
	defer again()
	n, err := w.compare(ctx, srv.Web())
	if err != nil {
		return nil, fmt.Errorf("restored: %w", err)
	}
	figures, err := check(ctx, w)
	if err != nil {
		return nil, err
	}
	maps.Copy(figures, map[string]any{"pages_at_the_moment": pages, "pages": n, "objects_deleted": deleted})
	return figures, nil
}

// snapshot returns all records of a table at one moment. It scans until two scans in a row agree.
func (w *world) snapshot(ctx context.Context, table string) (records []map[string]dynamotypes.AttributeValue, err error) {
	for {
		got, err := w.table.Scan(ctx, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(records, got.Items) {
			return records, nil
		}
		records = got.Items
	}
}

// created matches the field of a crawl's record that says when the crawl began.
var created = regexp.MustCompile(`"created":"[^"]*"`)

// aged makes the record of a crawl say that the crawl began a day earlier. The mail that was under way at the
// moment of the restore is in no queue, and ticks resend mail only ten minutes after a crawl has begun.
func aged(record map[string]dynamotypes.AttributeValue) map[string]dynamotypes.AttributeValue {
	key, isKey := record["key"].(*dynamotypes.AttributeValueMemberS)
	value, isValue := record["value"].(*dynamotypes.AttributeValueMemberS)
	if isKey && isValue && strings.HasSuffix(key.Value, "/crawl") {
		day := `"created":"` + time.Now().Add(-24*time.Hour).UTC().Format(time.RFC3339) + `"`
		record["value"] = &dynamotypes.AttributeValueMemberS{Value: created.ReplaceAllLiteralString(value.Value, day)}
	}
	return record
}

// sweepAll deletes all objects of a bucket, which keeps them as versions.
func (w *world) sweepAll(ctx context.Context, bucket string) (n int, err error) {
	pages := s3.NewListObjectsV2Paginator(w.bucket, &s3.ListObjectsV2Input{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, err
		}
		for _, o := range page.Contents {
			if _, err := w.bucket.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: o.Key}); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// goOn creates a deployment from records and a bucket's contents at a moment, and runs a worker until the crawl
// ends there. Later steps use this deployment until they call back.
func (w *world) goOn(ctx context.Context, bucket string, at time.Time, records []map[string]dynamotypes.AttributeValue) (back func(), err error) {
	leave, err := w.bare(ctx, "to")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	for _, r := range records {
		if _, err := w.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &w.deployed.name, Item: aged(r)}); err != nil {
			return nil, err
		}
	}
	program, err := w.program(ctx, "./infra/account")
	if err != nil {
		return nil, err
	}
	if _, err := w.command(ctx, nil, program, "restore-bucket", bucket, w.deployed.bucket, at.UTC().Format(time.RFC3339Nano)); err != nil {
		return nil, err
	}
	k, err := w.worker(ctx, "--idle-exit")
	if err != nil {
		return nil, err
	}
	if err := k.ends(ctx); err != nil {
		return nil, err
	}
	if k.told().Pages == 0 {
		return nil, errors.New("nothing was left to crawl after the restore")
	}
	return leave, nil
}
