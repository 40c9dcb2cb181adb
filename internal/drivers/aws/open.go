package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob"
	"gocloud.dev/docstore"

	"github.com/orbweaver/orbweaver/platform"
)

// answerTimeout bounds the wait for the beginning of an answer, from the end of the
// request: far above a poll of a queue. Bodies may take longer.
const answerTimeout = 30 * time.Second

// Deployment is an open deployment.
type Deployment struct {
	Location
	Table  *docstore.Collection
	Bucket *blob.Bucket
	queues *sqs.Client
}

// Open opens a deployment. It asks AWS once, for the table's description, so that no
// credentials, a wrong region, missing rights and a foreign table show here. keyField
// is the field of the table's documents that is their key.
func Open(ctx context.Context, l Location, keyField string, meter platform.Meter) (*Deployment, error) {
	cfg, err := load(ctx, l)
	if err != nil {
		return nil, err
	}
	l.Region = cfg.Region
	w := &wire{location: l, meter: meter}
	cfg.APIOptions = append(cfg.APIOptions, w.add)
	table, err := openTable(ctx, cfg, l, keyField)
	if err != nil {
		return nil, err
	}
	bucket, err := openBucket(ctx, cfg, l)
	if err != nil {
		return nil, errors.Join(err, table.Close())
	}
	return &Deployment{Location: l, Table: table, Bucket: bucket, queues: sqs.NewFromConfig(cfg)}, nil
}

// load reads the SDK's standard environment and files, and has credentials fetched:
// whoever has none learns it before anything is asked.
func load(ctx context.Context, l Location) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = answerTimeout
	})
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}), // it would log a line per call that has no checksum; errors say enough
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

// Close ends what is open.
func (d *Deployment) Close() error {
	_ = d.Table.Close() // fails only if it was closed already
	return d.Bucket.Close()
}

// CheckQueues says whether the queues of that many partitions were deployed.
func (d *Deployment) CheckQueues(partitions int) error {
	if partitions <= d.Mailboxes {
		return nil
	}
	return fmt.Errorf("%d partitions are asked for, and %s has %d mailboxes: ask for fewer, or deploy it with more (make deploy, variable mailboxes)",
		partitions, d.Name, d.Mailboxes)
}

// CheckQueue asks AWS whether a queue was deployed, and says what to do if it was not.
func (d *Deployment) CheckQueue(ctx context.Context, name string) error {
	q := &queue{name: d.queue(name), client: d.queues}
	if _, err := q.address(ctx); err != nil {
		return fmt.Errorf("look for queue %s: %w", q.name, err)
	}
	return nil
}

// localEndpoint says whether an endpoint is on an address or this machine, where no bucket has
// a name in the DNS.
func localEndpoint(endpoint *string) bool {
	u, err := url.Parse(aws.ToString(endpoint))
	if err != nil {
		return false
	}
	host := u.Hostname()
	_, err = netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
