package service_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/wiretap"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

// emulated skips a test unless emulators are named, so that it never runs against an
// account by accident.
func emulated(t *testing.T) {
	t.Helper()
	if os.Getenv("ORBWEAVER_TEST_AWS") != "1" || os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("not run: set ORBWEAVER_TEST_AWS=1, AWS_ENDPOINT_URL (LocalStack), AWS_ENDPOINT_URL_DYNAMODB (DynamoDB Local), " +
			"AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (any)")
	}
}

// deploy creates a table, a bucket and queues for a test, and returns their URL. The test's cleanup deletes
// them.
func deploy(t *testing.T, partitions int, visibility time.Duration) string {
	t.Helper()
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	name := "test-" + hex.EncodeToString(random[:])
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	tables := dynamodb.NewFromConfig(cfg)
	_, err = tables.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: dynamodbtypes.BillingModePayPerRequest,
		KeySchema:            []dynamodbtypes.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: dynamodbtypes.KeyTypeHash}},
		AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: dynamodbtypes.ScalarAttributeTypeS}},
	})
	check("create table", err)
	t.Cleanup(func() {
		_, err := tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		check("delete table", err)
	})

	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	_, err = buckets.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	check("create bucket", err)
	t.Cleanup(func() {
		list, err := buckets.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name})
		check("list bucket", err)
		for _, o := range list.Contents {
			_, err := buckets.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &name, Key: o.Key})
			check("delete object", err)
		}
		_, err = buckets.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name})
		check("delete bucket", err)
	})

	queues := sqs.NewFromConfig(cfg)
	names := []string{naming.WakesQueue, naming.IntakeQueue, naming.DeadLettersQueue, naming.IndexQueue}
	for p := range partitions {
		names = append(names, naming.MailboxQueue(partition.ID(p)))
	}
	for _, n := range names {
		q, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{
			QueueName: aws.String(name + "-" + n), Attributes: map[string]string{"VisibilityTimeout": fmt.Sprint(int(visibility / time.Second))},
		})
		check("create queue", err)
		t.Cleanup(func() {
			_, err := queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: q.QueueUrl})
			check("delete queue", err)
		})
	}
	return fmt.Sprintf("aws://%s?bucket=%s&partitions=%d", name, name, partitions)
}

// taps are the wiretaps between a platform and the emulators.
type taps struct{ tables, others *wiretap.Tap }

// tapped puts taps in front of the emulators, for platforms that are opened afterwards.
func tapped(t *testing.T) *taps {
	t.Helper()
	listen := func(variable string) *wiretap.Tap {
		target := os.Getenv(variable)
		if target == "" {
			target = os.Getenv("AWS_ENDPOINT_URL")
		}
		tap, err := wiretap.Listen(target)
		if err != nil {
			t.Fatal(err)
		}
		return tap
	}
	w := &taps{tables: listen("AWS_ENDPOINT_URL_DYNAMODB"), others: listen("AWS_ENDPOINT_URL")}
	t.Setenv("AWS_ENDPOINT_URL", w.others.URL())
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", w.tables.URL())
	return w
}

// check compares a ledger with the calls on the wire. It closes the taps, because only a closed tap has counted
// everything.
func (w *taps) check(t *testing.T, led *ledger.Ledger) {
	t.Helper()
	for _, tap := range []*wiretap.Tap{w.tables, w.others} {
		if err := tap.Close(); err != nil {
			t.Error(err)
		}
	}
	seen := w.tables.Counts().Plus(w.others.Counts())
	puts, gets := seen.Sum("s3", "PutObject"), seen.Sum("s3", "GetObject", "ListObjectsV2")
	want := ledger.Counts{
		QueueRequests: int64(seen.Sum("sqs").Units),
		KVReadUnits:   int64(seen.Sum("dynamodb", "BatchGetItem").Units),
		KVWriteUnits:  int64(seen.Sum("dynamodb", "PutItem").Units),
		BlobPuts:      int64(puts.Units), BlobPutBytes: puts.In,
		BlobGets: int64(gets.Units), BlobGetBytes: gets.Out,
		Functions: led.Counts().Functions, // not on this wire
	}
	if d := cmp.Diff(want, led.Counts()); d != "" {
		t.Errorf("the ledger differs from the wire (-wire +ledger):\n%s", d)
	}
	for _, op := range seen.Ops() {
		t.Logf("%-35v %+v", op, seen[op])
	}
	if all, known := seen.Sum("s3").Requests, puts.Requests+gets.Requests; all != known {
		t.Errorf("%d requests to S3, of which %d put or get", all, known)
	}
}

// TestAWS runs the suite, and then compares the ledger with the calls on the wire.
func TestAWS(t *testing.T) {
	emulated(t)
	const visibility = 2 * time.Second // deployed mailboxes have five minutes
	location := deploy(t, conformance.Partitions, visibility)
	wire := tapped(t)
	var led *ledger.Ledger
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		led, _ = m.(*ledger.Ledger)
		start := time.Now()
		p, err := drivers.Open(t.Context(), location, m)
		t.Logf("opened in %v", time.Since(start))
		return conformance.Opened(t, p, err)
	}, conformance.Traits{
		// The emulators differ from AWS:
		//
		//   - LocalStack continues a long poll after its client is gone, and hides the messages that the poll receives.
		//   - DynamoDB Local reports no consumption for a missing key. DynamoDB bills a unit, and so does the meter.
		//   - DynamoDB Local has no limit for an answer. DynamoDB leaves out what exceeds 16 MB: see the fault
		//     tests of package aws.
		//   - Both never throttle, and accept any credentials: see the fault tests of package aws.
		Visibility: visibility, MaxRecord: 400 << 10,
	})
	wire.check(t, led)
}

// TestAWSDeployment checks the errors of a deployment that does not fit.
func TestAWSDeployment(t *testing.T) {
	emulated(t)
	location := deploy(t, 2, time.Second)
	p, err := drivers.Open(t.Context(), location, nil)
	p = conformance.Opened(t, p, err)
	if err := p.CreateQueues(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "has 2 mailboxes") {
		t.Errorf("more partitions than mailboxes: %v", err)
	}
	if err := p.CheckQueue(t.Context(), naming.IndexQueue); err != nil {
		t.Error(err)
	}
	if err := p.CheckQueue(t.Context(), naming.RankQueue); err == nil || !strings.Contains(err.Error(), "was deployed without an index") {
		t.Errorf("a queue that is missing: %v", err)
	}
	for what, l := range map[string]string{
		"no table":  "aws://absent-" + strings.TrimPrefix(location, "aws://"),
		"no bucket": strings.Replace(location, "bucket=", "bucket=absent-", 1),
	} {
		p, err := drivers.Open(t.Context(), l, nil)
		if err == nil {
			_, err = p.Bucket.ReadAll(t.Context(), "x")
			_ = p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "there is no") {
			t.Errorf("%s: %v", what, err)
		}
		t.Log(err)
	}
}

// TestAWSCrawl crawls on emulators of AWS. The ledger must agree with the calls on the wire.
func TestAWSCrawl(t *testing.T) {
	emulated(t)
	location := deploy(t, 4, 30*time.Second)
	wire := tapped(t)
	led := &ledger.Ledger{}
	p, err := drivers.Open(t.Context(), location, led)
	crawlDemo(t, conformance.Opened(t, p, err), led)
	wire.check(t, led)
}
