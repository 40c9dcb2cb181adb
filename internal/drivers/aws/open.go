package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
	"github.com/orbweaver/orbweaver/platform"
)

// answerTimeout bounds the wait for the headers of an answer: far longer than a poll of a queue. Bodies may
// take longer.
const answerTimeout = 30 * time.Second

// deployment is an open deployment.
type deployment struct {
	Location
	queues *sqs.Client
}

// Open opens the deployment that a URL names; see [Parse]. It makes one call, which describes the table, so
// that missing credentials, a wrong region, missing rights and a foreign table are reported at once. meter may
// be nil.
func Open(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error) {
	l, err := Parse(location)
	if err != nil {
		return nil, err
	}
	cfg, err := load(ctx, l)
	if err != nil {
		return nil, err
	}
	if meter == nil {
		meter = platform.NoMeter{}
	}
	l.Region = cfg.Region
	w := &wire{location: l, meter: meter}
	cfg.APIOptions = append(cfg.APIOptions, w.add)
	table, err := openTable(ctx, cfg, l)
	if err != nil {
		return nil, err
	}
	objects, err := bucket.S3(ctx, s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = bucket.LocalEndpoint(o.BaseEndpoint) }), l.Bucket)
	if err != nil {
		return nil, errors.Join(err, table.Close())
	}
	d := &deployment{Location: l, queues: sqs.NewFromConfig(cfg)}
	p := &platform.Platform{
		Table: table, Partitions: l.Mailboxes, BeginWith: l.Partitions, Functions: true,
		Queue:        func(name string) (platform.Queue, error) { return d.openQueue(name), nil },
		CreateQueues: func(_ context.Context, partitions int) error { return d.checkQueues(partitions) },
		CheckQueue:   d.checkQueue,
		Close: func() error {
			_ = table.Close() // fails only if it was closed already
			return objects.Close()
		},
	}
	objects.Fill(p)
	return p, nil
}

// load reads the SDK's standard environment and files, and fetches credentials, so that missing ones are
// an error before the first call.
func load(ctx context.Context, l Location) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = answerTimeout
	})
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}), // it would log a line for each answer without a checksum
	}
	if l.Region != "" {
		options = append(options, config.WithRegion(l.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return cfg, fmt.Errorf("no AWS region: add &region=... to %s, or set AWS_REGION", l)
	}
	if cfg.Credentials == nil {
		return cfg, noCredentials(errors.New("the configuration names no source of them"))
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, noCredentials(err)
	}
	return cfg, nil
}

func noCredentials(err error) error {
	return fmt.Errorf("no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in with `aws sso login`: %w", err)
}

// checkQueues returns an error if fewer queues were deployed than that many partitions need.
func (d *deployment) checkQueues(partitions int) error {
	if partitions <= d.Mailboxes {
		return nil
	}
	return fmt.Errorf("%d partitions are requested, and %s has %d mailboxes: request fewer, or deploy it with more (make deploy, variable mailboxes)",
		partitions, d.Name, d.Mailboxes)
}

// checkQueue returns an error that says what to do if a queue was not deployed.
func (d *deployment) checkQueue(ctx context.Context, name string) error {
	q := d.openQueue(name)
	if _, err := q.address(ctx); err != nil {
		return fmt.Errorf("look for queue %s: %w", q.name, err)
	}
	return nil
}
