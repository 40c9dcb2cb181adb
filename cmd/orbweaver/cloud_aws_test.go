package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/emulators"
	"github.com/orbweaver/orbweaver/platform"
)

// TestCloudAWS runs this package's cloud tests over the real protocols.
func TestCloudAWS(t *testing.T) {
	if os.Getenv("ORBWEAVER_TEST_AWS") != "1" || emulators.Running() == nil {
		t.Skip("not run: set ORBWEAVER_TEST_AWS=1, and AWS_ENDPOINT_URL (LocalStack) and AWS_ENDPOINT_URL_DYNAMODB (DynamoDB Local) to " +
			"emulators on this machine, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (any)")
	}
	for name, test := range map[string]func(*cloud){
		"crawl": testCloudCrawl, "orders": testCloudOrders, "dead letters": testCloudDeadLetters, "partitions": testCloudPartitions, "topics": testCloudTopics,
	} {
		t.Run(name, func(t *testing.T) { test(awsCloud(t)) })
	}
}

// awsCloud returns a new deployment on emulators that forget it when they end.
func awsCloud(t *testing.T) *cloud {
	os.Unsetenv(platformVariable)
	ctx := t.Context()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name := "test-" + strings.ToLower(rand.Text()[:8])
	_, err = dynamodb.NewFromConfig(cfg).CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: dynamodbtypes.BillingModePayPerRequest,
		KeySchema:            []dynamodbtypes.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: dynamodbtypes.KeyTypeHash}},
		AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: dynamodbtypes.ScalarAttributeTypeS}},
	})
	check(err)
	_, err = s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	check(err)
	queues := []string{naming.WakesQueue, naming.IntakeQueue, naming.DeadLettersQueue}
	queues = append(queues, naming.MailboxQueue(0), naming.MailboxQueue(1), naming.MailboxQueue(2))
	for _, q := range queues {
		_, err = sqs.NewFromConfig(cfg).CreateQueue(ctx, &sqs.CreateQueueInput{
			QueueName: aws.String(name + "-" + q), Attributes: map[string]string{"VisibilityTimeout": "5"},
		})
		check(err)
	}
	c := &cloud{t: t, url: "aws://" + name + "?bucket=" + name + "&partitions=3", site: newSite()}
	t.Cleanup(c.site.close)
	c.open = func(ctx context.Context, location string, m platform.Meter) (*platform.Platform, error) {
		return drivers.Open(ctx, location, m)
	}
	return c
}
