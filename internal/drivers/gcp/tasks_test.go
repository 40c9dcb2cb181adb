//go:build gcp

package gcp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

const (
	servedURL   = testURL + "&region=europe-west1&service=https://f.example&account=caller@orbweaver-test.iam.gserviceaccount.com"
	servedQueue = "projects/orbweaver-test/locations/europe-west1/queues/orbweaver-"
)

// TestTasks checks the tasks that messages become, and the queues that Open leaves to Terraform.
func TestTasks(t *testing.T) {
	c := serve(t)
	c.Tasks.Deploy(servedQueue + "wakes")
	c.Tasks.Deploy(servedQueue + "index")
	p, err := Open(t.Context(), servedURL, nil)
	must(t, err)
	defer func() { must(t, p.Close()) }()
	if !p.Functions {
		t.Error("workers would take its jobs")
	}
	q, err := p.Queue("wakes")
	must(t, err)
	must(t, q.Send(t.Context(), [][]byte{[]byte("a"), []byte("b")}, 0))
	must(t, q.Send(t.Context(), [][]byte{{0xff}}, 400*24*time.Hour))
	got := c.Tasks.Waiting(servedQueue + "wakes")
	if len(got) != 3 {
		t.Fatalf("%d tasks", len(got))
	}
	for _, task := range got[:2] {
		h := task.GetHttpRequest()
		token := h.GetOidcToken()
		if h.Url != "https://f.example/fetch" || len(h.Body) != 1 || task.ScheduleTime != nil || h.HttpMethod != cloudtaskspb.HttpMethod_POST ||
			token.Audience != "https://f.example" || token.ServiceAccountEmail != "caller@orbweaver-test.iam.gserviceaccount.com" {
			t.Errorf("%v", task)
		}
	}
	if late := time.Until(got[2].ScheduleTime.AsTime()); late < 29*24*time.Hour || late > maxDelay {
		t.Errorf("the longest delay is %v", late)
	}
	if _, err := q.Receive(t.Context(), 1, 0); err == nil || !strings.Contains(err.Error(), "workers cannot receive") {
		t.Error(err)
	}
	must(t, p.CheckQueue(t.Context(), "index"))
	must(t, p.CheckQueue(t.Context(), "mailbox-00000"))
	q, err = p.Queue("rank")
	must(t, err)
	for _, err := range []error{p.CheckQueue(t.Context(), "rank"), q.Send(t.Context(), [][]byte{{1}}, 0)} {
		if err == nil || !strings.Contains(err.Error(), "there is no queue orbweaver-rank in region europe-west1; deploy it") {
			t.Error(err)
		}
	}

	// All queues are deployed, so functions need no right to create them.
	must(t, p.CreateQueues(t.Context(), 4))
	if err := p.CreateQueues(t.Context(), 5); p.Partitions != 4 || err == nil || !strings.Contains(err.Error(), "has 4 mailboxes") {
		t.Error(p.Partitions, err)
	}
	client, err := c.Subscriber(t.Context())
	must(t, err)
	defer func() { must(t, client.Close()) }()
	for s, err := range client.ListSubscriptions(t.Context(), &pubsubpb.ListSubscriptionsRequest{Project: "projects/orbweaver-test"}).All() {
		t.Errorf("%v is created, %v", s, err)
	}
}

func TestCaller(t *testing.T) {
	audience, account, err := Caller(servedURL)
	if err != nil || audience != "https://f.example" || account != "caller@orbweaver-test.iam.gserviceaccount.com" {
		t.Error(audience, account, err)
	}
	_, _, noService := Caller(testURL)
	_, _, noBucket := Caller("gcp://my-project")
	if noService == nil || noBucket == nil || !strings.Contains(errors.Join(noService, noBucket).Error(), "parameter service is missing") {
		t.Error(noService, noBucket)
	}
}
