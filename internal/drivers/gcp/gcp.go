//go:build gcp

// Package gcp opens a platform on Google Cloud: queues in Pub/Sub, the table in Firestore and the bucket in Cloud Storage. Any
// number of workers may share it, or functions serve it. It is built with the tag gcp only, because Google's clients are large.
// ADR 55 and 56 give the reasons.
//
// Read gcp.go, which opens a platform, then queue.go, then tasks.go for the queues that functions serve.
//
//   - A queue is a topic with one pull subscription. A received message is hidden for ten minutes, the longest time of Pub/Sub.
//     A step acknowledges its mail earlier, so no deadline is ever extended.
//   - A record is a document of the collection NAME, and its revision is the document's update time. A write that changes nothing
//     keeps the revision. This is harmless: a writer with that revision still knows what the record holds.
//   - Google's clients repeat most calls that failed for a passing reason, also writes of records. A repeated write that was carried out
//     before is reported as a conflict, as on AWS, and its caller reads its own write.
package gcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	firestore "cloud.google.com/go/firestore/apiv1"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/docstore"
	"gocloud.dev/docstore/gcpfirestore"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/bucket"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Scheme begins the URL of a platform.
const Scheme = "gcp"

const form = "gcp://PROJECT?bucket=BUCKET&name=NAME&partitions=N, and for functions &mailboxes=M&region=REGION&service=https://HOST&account=EMAIL"

// Defaults of a URL.
const (
	defaultName       = "orbweaver"
	defaultPartitions = 16
)

// Variables that name emulators, for the clients that do not read theirs.
const (
	firestoreEmulator = "FIRESTORE_EMULATOR_HOST"
	tasksEmulator     = "CLOUD_TASKS_EMULATOR_HOST"
)

// objectAttempts bounds the requests for one object, which take about eight seconds if all fail.
const objectAttempts = 4

// claimKey is the key of the record that holds the id of the bucket's marker, as a JSON string.
const claimKey = naming.MarkerPrefix + "bucket"

// Forms of a project's id, and of a name, which begins the names of topics and is that of the collection.
var (
	validProject = regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`)
	validName    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	validRegion  = regexp.MustCompile(`^[a-z0-9-]+$`)
	validService = regexp.MustCompile(`^https://[a-z0-9.-]+$`)
	validAccount = regexp.MustCompile(`^[^@/\s]+@[a-z0-9.-]+$`)
)

// location is a parsed URL.
type location struct {
	project, bucket, name string
	partitions            int // default of a new crawl

	// Address of the functions, region of their queues, and the service account that calls them; "" for workers.
	service, region, account string
	mailboxes                int // deployed ones; 0 for workers, whose mailboxes are created when needed
}

func parse(text string) (l location, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("platform %s: %w (want %s)", text, err, form)
		}
	}()
	u, err := url.Parse(text)
	if err != nil {
		return l, errors.New("it is not a URL")
	}
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return l, err
	}
	l = location{project: u.Host, name: defaultName, partitions: defaultPartitions}
	for name, v := range params {
		if len(v) != 1 || v[0] == "" {
			return l, fmt.Errorf("parameter %s needs one value", name)
		}
		switch name {
		case "bucket":
			l.bucket = v[0]
		case "name":
			l.name = v[0]
		case "region":
			l.region = v[0]
		case "service":
			l.service = v[0]
		case "account":
			l.account = v[0]
		case "partitions":
			if l.partitions, err = number(name, v[0]); err != nil {
				return l, err
			}
		case "mailboxes":
			if l.mailboxes, err = number(name, v[0]); err != nil {
				return l, err
			}
		default:
			return l, fmt.Errorf("parameter %s is unknown", name)
		}
	}
	switch {
	case !validProject.MatchString(l.project) || u.User != nil || strings.Trim(u.Path, "/") != "":
		return l, errors.New("its host is not the id of a project")
	case l.bucket == "":
		return l, errors.New("parameter bucket is missing: the name of a bucket of Cloud Storage")
	case strings.Contains(l.bucket, "/"):
		return l, fmt.Errorf("bucket is %q, not the name of a bucket", l.bucket)
	case !validName.MatchString(l.name) || strings.HasPrefix(l.name, "goog"): // Google reserves these
		return l, fmt.Errorf("the name %.50q is not 1 to 40 of a-z, 0-9 and -, beginning with a letter and not with goog", l.name)
	}
	err = l.checkFunctions()
	return l, err
}

// number reads a number of partitions.
func number(name, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > partition.MaxPartitions {
		return 0, fmt.Errorf("%s is %q, not a number from 1 to %d", name, text, partition.MaxPartitions)
	}
	return n, nil
}

// checkFunctions checks the parameters of functions, which belong together. There are as many mailboxes as partitions by default.
func (l *location) checkFunctions() error {
	if l.service == "" && l.region == "" && l.account == "" && l.mailboxes == 0 {
		return nil
	}
	l.mailboxes = cmp.Or(l.mailboxes, l.partitions)
	switch {
	case !validService.MatchString(l.service):
		return fmt.Errorf("service is %q, not https:// and a host: the address of the functions", l.service)
	case !validRegion.MatchString(l.region):
		return fmt.Errorf("region is %q, not the region of the queues", l.region)
	case !validAccount.MatchString(l.account):
		return fmt.Errorf("account is %q, not the email of the service account that calls the functions", l.account)
	case l.mailboxes < l.partitions:
		return fmt.Errorf("%d mailboxes are too few for %d partitions", l.mailboxes, l.partitions)
	}
	return nil
}

// Caller returns the address of the functions in a platform's URL, which is the audience of their callers' tokens, and the
// email of the service account that calls them.
func Caller(text string) (audience, account string, err error) {
	l, err := parse(text)
	if err == nil && l.service == "" {
		err = fmt.Errorf("platform %s: parameter service is missing: the address of the functions", text)
	}
	return l.service, l.account, err
}

// cloud is an open platform.
type cloud struct {
	location
	topics        *pubsub.TopicAdminClient
	subscriptions *pubsub.SubscriptionAdminClient
	tasks         *cloudtasks.Client // nil for workers
	documents     *firestore.Client
	objects       *storage.Client
	closers       []io.Closer // in the order of opening
}

// Open opens the platform at a URL:
//
//	gcp://PROJECT?bucket=BUCKET&name=NAME&partitions=N
//	gcp://PROJECT?bucket=BUCKET&name=NAME&partitions=N&mailboxes=M&region=REGION&service=https://HOST&account=EMAIL
//
// bucket must exist, and so must the project's default database of Firestore, in native mode. name begins the names of topics and
// subscriptions, and is the name of the collection; by default it is orbweaver. partitions is the number of partitions of a new
// crawl, by default 16. With service, functions at that address serve the platform: wakes and jobs are tasks of Cloud Tasks in a
// region, and their requests have a token of the service account. All its queues are deployed, M of them as mailboxes, by default as
// many as partitions. Credentials are Google's Application Default Credentials. The variables PUBSUB_EMULATOR_HOST,
// FIRESTORE_EMULATOR_HOST, STORAGE_EMULATOR_HOST and CLOUD_TASKS_EMULATOR_HOST name emulators. Without service, the first Open
// creates the queues that do not depend on a crawl. meter counts calls of the bucket only; it may be nil.
func Open(ctx context.Context, text string, meter platform.Meter) (_ *platform.Platform, err error) {
	l, err := parse(text)
	if err != nil {
		return nil, err
	}
	c := &cloud{location: l}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open %s in project %s: %w", l.name, l.project, err), c.close())
		}
	}()
	// Clients may keep the context of their creation for fetching credentials, and a function opens the platform in a request.
	if err := c.dial(context.WithoutCancel(ctx)); err != nil {
		return nil, noCredentials(err)
	}
	table, err := gcpfirestore.OpenCollectionWithNameFunc(c.documents, gcpfirestore.CollectionResourceID(l.project, l.name), documentName, nil)
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, table)
	opened, err := gcsblob.OpenBucket(ctx, nil, l.bucket, &gcsblob.Options{Client: c.objects})
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, opened)
	objects := &bucket.Bucket{Bucket: opened, Name: l.bucket}
	p := &platform.Platform{
		Table: table, BeginWith: l.partitions, Meter: meter,
		Queue:        func(name string) (platform.Queue, error) { return c.queue(name), nil },
		CreateQueues: func(ctx context.Context, partitions int) error { return explain(c.createQueues(ctx, partitions)) },
		CheckQueue:   c.checkQueue,
		Functions:    l.service != "", Partitions: l.mailboxes,
		Close: c.close,
	}
	objects.Fill(p)
	if err = c.check(ctx, objects); err == nil {
		err = c.claim(ctx, p, objects)
	}
	if err != nil {
		return nil, explain(err)
	}
	return p, nil
}

// dial makes the clients. It makes no calls, so its errors are those of credentials.
func (c *cloud) dial(ctx context.Context) (err error) {
	if c.topics, err = pubsub.NewTopicAdminClient(ctx); err != nil {
		return err
	}
	c.closers = append(c.closers, c.topics)
	if c.subscriptions, err = pubsub.NewSubscriptionAdminClient(ctx); err != nil {
		return err
	}
	c.closers = append(c.closers, c.subscriptions)
	if c.service != "" {
		if c.tasks, err = cloudtasks.NewClient(ctx, emulated(tasksEmulator)...); err != nil {
			return err
		}
		c.closers = append(c.closers, c.tasks)
	}
	if c.documents, err = firestore.NewClient(ctx, emulated(firestoreEmulator)...); err != nil {
		return err
	}
	c.closers = append(c.closers, c.documents)
	c.documents.CallOptions.BatchGetDocuments = nil                                   // it would repeat a read forever; steps repeat their reads themselves
	if c.objects, err = storage.NewClient(ctx, storage.WithJSONReads()); err != nil { // emulators need it: the XML of reads has another host
		return err
	}
	c.closers = append(c.closers, c.objects)
	// A name never has other bytes, so a put may be repeated (I6). Steps repeat what still fails.
	c.objects.SetRetry(storage.WithPolicy(storage.RetryAlways), storage.WithMaxAttempts(objectAttempts))
	return nil
}

// emulated returns the options of a client of the emulator that a variable names; none if it is not set.
func emulated(variable string) []option.ClientOption {
	host := os.Getenv(variable)
	if host == "" {
		return nil
	}
	return []option.ClientOption{
		option.WithEndpoint(host), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}

func (c *cloud) close() (err error) {
	for i := range c.closers {
		err = errors.Join(err, c.closers[len(c.closers)-1-i].Close())
	}
	c.closers = nil
	return err
}

// documentName returns the name of a record's document: its key, with escapes for slashes. Firestore takes up to 1,500 bytes.
func documentName(doc docstore.Document) string {
	d, ok := doc.(*platform.Document)
	if !ok {
		return ""
	}
	return url.PathEscape(d.Key)
}

// check makes one call of the database and one of the bucket, because the methods of Platform report a missing database as
// a missing record, and a missing bucket as a missing object.
func (c *cloud) check(ctx context.Context, objects *bucket.Bucket) error {
	database := "projects/" + c.project + "/databases/(default)"
	stream, err := c.documents.BatchGetDocuments(ctx, &firestorepb.BatchGetDocumentsRequest{
		Database: database, Documents: []string{database + "/documents/" + c.name + "/" + url.PathEscape(claimKey)},
	})
	if err == nil {
		_, err = stream.Recv()
	}
	switch {
	case status.Code(err) == codes.NotFound, status.Code(err) == codes.FailedPrecondition:
		return fmt.Errorf("there is no database of Firestore in native mode: create it (gcloud firestore databases create --type=firestore-native --location=REGION): %w", err)
	case err != nil:
		return fmt.Errorf("read the database: %w", err)
	}
	if _, _, err := objects.ListPage(ctx, blob.FirstPageToken, 1, nil); err != nil {
		if errors.Is(err, storage.ErrBucketNotExist) || httpCode(err) == http.StatusNotFound {
			return fmt.Errorf("there is no bucket %s: create it (gcloud storage buckets create gs://%s), or check the URL: %w", c.bucket, c.bucket, err)
		}
		return fmt.Errorf("list the bucket %s: %w", c.bucket, err)
	}
	return nil
}

// claim ties the bucket to the table. The first claim creates the queues before it writes its record. After a crash between the
// two, the next one does both.
func (c *cloud) claim(ctx context.Context, p *platform.Platform, objects *bucket.Bucket) error {
	id, err := c.claimed(ctx, p)
	if err != nil || id != "" {
		if err == nil {
			_, err = bucket.Claim(ctx, objects, "gs://"+c.bucket, id)
		}
		return err
	}
	if err := c.createQueues(ctx, 0); err != nil {
		return err
	}
	if id, err = bucket.Claim(ctx, objects, "gs://"+c.bucket, ""); err != nil {
		return err
	}
	value, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if _, err = p.WriteRecord(ctx, claimKey, value, nil); errors.Is(err, platform.ErrConflict) {
		return c.claim(ctx, p, objects) // another process was first
	}
	return err
}

// claimed returns the id of the bucket's marker; "" if no bucket is claimed yet.
func (c *cloud) claimed(ctx context.Context, p *platform.Platform) (id string, err error) {
	recs, err := p.ReadRecords(ctx, []string{claimKey})
	if err != nil || !recs[0].Found {
		return "", err
	}
	if err := json.Unmarshal(recs[0].Value, &id); err != nil || id == "" {
		return "", fmt.Errorf("record %s holds %.50q, not the id of a bucket", claimKey, recs[0].Value)
	}
	return id, nil
}

func noCredentials(err error) error {
	return fmt.Errorf("no credentials of Google Cloud: run 'gcloud auth application-default login', set GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, "+
		"or use a machine that has a service account: %w", err)
}

// httpCode returns the HTTP status of an error of Cloud Storage; 0 if it has none.
func httpCode(err error) int {
	var e *googleapi.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// explain adds to an error what to do.
func explain(err error) error {
	switch code, web := status.Code(err), httpCode(err); {
	case err == nil:
		return nil
	case code == codes.Unauthenticated || web == http.StatusUnauthorized:
		return fmt.Errorf("the credentials are refused; log in again (gcloud auth application-default login): %w", err)
	case code == codes.PermissionDenied || web == http.StatusForbidden:
		return fmt.Errorf("the project does not exist, does not use this service or grants no right to it: check the project in the URL, enable the service "+
			"(gcloud services enable pubsub.googleapis.com firestore.googleapis.com storage.googleapis.com; for functions also cloudtasks.googleapis.com), and grant the roles of docs/howto/google-cloud.md: %w", err)
	case code == codes.ResourceExhausted || web == http.StatusTooManyRequests:
		return fmt.Errorf("a quota of the project is used up; raise it in the console: %w", err)
	case code == codes.Unavailable || code == codes.DeadlineExceeded:
		return fmt.Errorf("the service cannot be reached; check the network and the variables of emulators: %w", err)
	}
	return err
}
