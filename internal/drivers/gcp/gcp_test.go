//go:build gcp

package gcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/orbweaver/orbweaver/internal/drivers/gcp/fake"
	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

// testURL is a platform of the fake.
const testURL = "gcp://orbweaver-test?bucket=pages&partitions=4"

// serve starts a cloud and points Google's clients to it.
func serve(t *testing.T) *fake.Cloud {
	t.Helper()
	c, err := fake.Start("pages", "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // clients may be connected still
	for name, value := range c.Variables() {
		t.Setenv(name, value)
	}
	return c
}

func open(t *testing.T, m platform.Meter) *platform.Platform {
	t.Helper()
	p, err := Open(t.Context(), testURL, m)
	return conformance.Opened(t, p, err)
}

func TestSuite(t *testing.T) {
	serve(t)
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform { return open(t, m) },
		conformance.Traits{Visibility: visibility, NoCounts: true, Unmetered: true, MaxRecord: 1 << 20})
}

// TestOpenedTogether opens a new platform by several processes at once. One of them claims the bucket.
func TestOpenedTogether(t *testing.T) {
	serve(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := Open(t.Context(), testURL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestQueuesStay checks that queues that exist keep their settings.
func TestQueuesStay(t *testing.T) {
	serve(t)
	p := open(t, nil)
	c := &cloud{location: location{project: "orbweaver-test", name: "orbweaver"}}
	if err := c.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.close() }()
	q := &queue{cloud: c, name: "mailbox-00000"}
	_, err := c.topics.CreateTopic(t.Context(), &pubsubpb.Topic{Name: q.topic()})
	if err == nil {
		_, err = c.subscriptions.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: q.subscription(), Topic: q.topic(), AckDeadlineSeconds: 77})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CreateQueues(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int32{"mailbox-00000": 77, "mailbox-00001": 600, "wakes": 600} {
		s, err := c.subscriptions.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: (&queue{cloud: c, name: name}).subscription()})
		if err != nil || s.AckDeadlineSeconds != want {
			t.Errorf("%s: %d seconds, %v, want %d", name, s.GetAckDeadlineSeconds(), err, want)
		}
	}
}

// TestEarlyMessagesDoNotHideOthers checks that a receive finds messages that are due behind many that are not.
func TestEarlyMessagesDoNotHideOthers(t *testing.T) {
	serve(t)
	p := open(t, nil)
	q, err := p.Queue("wakes")
	if err != nil {
		t.Fatal(err)
	}
	var early [][]byte
	for i := range 25 {
		early = append(early, fmt.Append(nil, "early ", i))
	}
	must(t, q.Send(t.Context(), early, time.Hour))
	must(t, q.Send(t.Context(), [][]byte{[]byte("due")}, 0))
	got, err := q.Receive(t.Context(), 2, 0)
	if err != nil || len(got) != 1 || string(got[0].Body) != "due" {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

// TestLeftOutRecord checks that a record that an answer lacks is not taken for an empty one.
func TestLeftOutRecord(t *testing.T) {
	c := serve(t)
	p := open(t, nil)
	for _, key := range []string{"c1/head/00001", "c1/head/00002"} {
		if _, err := p.WriteRecord(t.Context(), key, []byte("{}"), nil); err != nil {
			t.Fatal(err)
		}
	}
	c.Firestore.Omit("head%2F00002")
	if recs, err := p.ReadRecords(t.Context(), []string{"c1/head/00001", "c1/head/00002"}); err == nil || !strings.Contains(err.Error(), "leaves out record c1/head/00002") {
		t.Errorf("%v, %v", recs, err)
	}
}

// TestUnchangedRecord writes a record with the bytes that it has. As in Firestore, the revision stays, and stays usable.
func TestUnchangedRecord(t *testing.T) {
	serve(t)
	p := open(t, nil)
	first, err := p.WriteRecord(t.Context(), "same", []byte("{}"), nil)
	must(t, err)
	second, err := p.WriteRecord(t.Context(), "same", []byte("{}"), first)
	must(t, err)
	_, err = p.WriteRecord(t.Context(), "same", []byte("[]"), second)
	must(t, err)
	if _, err := p.WriteRecord(t.Context(), "same", []byte("lost"), first); !errors.Is(err, platform.ErrConflict) {
		t.Errorf("a stale revision: %v", err)
	}
}

// TestUnfit checks the errors of projects and buckets that do not fit.
func TestUnfit(t *testing.T) {
	c := serve(t)
	open(t, nil)
	denied := status.Error(codes.PermissionDenied, "Missing or insufficient permissions.")
	for what, want := range map[string]struct {
		url  string
		fail error
		want string
	}{
		"another bucket": {url: strings.Replace(testURL, "pages", "other", 1), want: "its pages are not in gs://other"},
		"no bucket":      {url: strings.Replace(testURL, "pages", "none", 1), want: "there is no bucket none: create it"},
		"no database":    {url: testURL, fail: status.Error(codes.NotFound, "The database (default) does not exist"), want: "gcloud firestore databases create"},
		"other mode":     {url: testURL, fail: status.Error(codes.FailedPrecondition, "not available for Datastore Mode"), want: "gcloud firestore databases create"},
		"no right":       {url: testURL, fail: denied, want: "grant the roles"},
		"expired":        {url: testURL, fail: status.Error(codes.Unauthenticated, "invalid credentials"), want: "log in again"},
		"quota":          {url: testURL, fail: status.Error(codes.ResourceExhausted, "Quota exceeded"), want: "quota"},
	} {
		c.Firestore.Fail(want.fail)
		p, err := Open(t.Context(), want.url, nil)
		if err == nil {
			_ = p.Close()
		}
		if p != nil || err == nil || !strings.Contains(err.Error(), want.want) {
			t.Errorf("%s: %v, want %q", what, err, want.want)
		}
		t.Log(err)
	}
}

// TestNoCredentials opens a platform of the real cloud with a file of credentials that does not exist. It makes no call.
func TestNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	_, err := Open(t.Context(), testURL, nil)
	if err == nil || !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Error(err)
	}
	t.Log(err)
}

// TestUnreachable opens a platform whose emulators are gone.
func TestUnreachable(t *testing.T) {
	for _, name := range []string{"PUBSUB_EMULATOR_HOST", "FIRESTORE_EMULATOR_HOST", "STORAGE_EMULATOR_HOST"} {
		t.Setenv(name, "127.0.0.1:1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Open(ctx, testURL, nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Error(err)
	}
	t.Log(err)
}

func TestBadURLs(t *testing.T) {
	for text, want := range map[string]string{
		"gcp://my-project":                                                                      "bucket is missing",
		"gcp://my-project?bucket=":                                                              "bucket needs one value",
		"gcp://my-project?bucket=a&bucket=b":                                                    "bucket needs one value",
		"gcp://my-project?bucket=gs://b":                                                        "not the name of a bucket",
		"gcp://my-project?bucket=b&name=A":                                                      "the name \"A\"",
		"gcp://my-project?bucket=b&name=googol":                                                 "not with goog",
		"gcp://my-project?bucket=b&partitions=0":                                                "partitions is \"0\"",
		"gcp://my-project?bucket=b&zone=europe-west1-b":                                         "parameter zone is unknown",
		"gcp://my-project?bucket=b&region=europe-west1":                                         "service is \"\"",
		"gcp://my-project?bucket=b&service=https://f.example&region=r":                          "account is \"\"",
		"gcp://my-project?bucket=b&service=https://f.example&account=a@b.example":               "region is \"\"",
		"gcp://my-project?bucket=b&service=http://f.example&region=r&account=a@b":               "not https://",
		"gcp://my-project?bucket=b&service=https://f.example/&region=r&account=a@b":             "not https://",
		"gcp://my-project?bucket=b&service=https://f.example&region=r/s&account=a@b":            "not the region",
		"gcp://my-project?bucket=b&service=https://f.example&region=r&account=a@b@c":            "not the email",
		"gcp://my-project?bucket=b&mailboxes=3":                                                 "service is \"\"",
		"gcp://my-project?bucket=b&mailboxes=0":                                                 "mailboxes is \"0\"",
		"gcp://my-project?bucket=b&mailboxes=15&service=https://f.example&region=r&account=a@b": "15 mailboxes are too few for 16 partitions",
		"gcp://?bucket=b":                "not the id of a project",
		"gcp://my-project/path?bucket=b": "not the id of a project",
		"gcp://my project?bucket=b":      "not a URL",
	} {
		if _, err := Open(t.Context(), text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	l, err := parse("gcp://my-project?bucket=b&name=two&partitions=64")
	if want := (location{project: "my-project", bucket: "b", name: "two", partitions: 64}); err != nil || l != want {
		t.Errorf("%+v, %v", l, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
