//go:build gcp

// Package fake runs stand-ins for Google Cloud in the process of a test: Google's own fake of Pub/Sub, a server of Cloud Storage,
// a Firestore of this project, because no free emulator obeys preconditions on update times, and a Cloud Tasks of this project,
// because there is none. They know nothing of credentials and rights. Pushes to functions have tokens of an [Identity].
package fake

import (
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Cloud is a running fake.
type Cloud struct {
	Firestore *Firestore
	Tasks     *Tasks
	queues    *pstest.Server // its port also serves Firestore and Cloud Tasks
	objects   *fakestorage.Server
}

// Start starts a cloud with some buckets.
func Start(buckets ...string) (*Cloud, error) {
	c := &Cloud{Firestore: NewFirestore(), Tasks: &Tasks{queues: map[string][]*task{}}}
	var err error
	c.objects, err = fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1"})
	if err != nil {
		return nil, fmt.Errorf("start Cloud Storage: %w", err)
	}
	for _, b := range buckets {
		c.objects.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: b})
	}
	c.queues = pstest.NewServerWithCallback(0, func(s *grpc.Server) {
		firestorepb.RegisterFirestoreServer(s, c.Firestore)
		cloudtaskspb.RegisterCloudTasksServer(s, c.Tasks)
	}, pstest.ServerReactorOption{FuncName: "CreateSubscription", Reactor: shorter{}})
	return c, nil
}

// shorter lowers the retention of new subscriptions to seven days. Pub/Sub takes 31 days, but its fake has the old bound.
type shorter struct{}

func (shorter) React(request any) (handled bool, answer any, err error) {
	if s := request.(*pubsubpb.Subscription); s.MessageRetentionDuration.AsDuration() == 31*24*time.Hour {
		s.MessageRetentionDuration = durationpb.New(7 * 24 * time.Hour)
	}
	return false, nil, nil
}

// Variables returns the environment of Google's clients.
func (c *Cloud) Variables() map[string]string {
	return map[string]string{
		"PUBSUB_EMULATOR_HOST": c.queues.Addr, "FIRESTORE_EMULATOR_HOST": c.queues.Addr, "CLOUD_TASKS_EMULATOR_HOST": c.queues.Addr,
		"STORAGE_EMULATOR_HOST": strings.TrimPrefix(c.objects.URL(), "http://"),
	}
}

// Close ends the cloud and forgets what it holds.
func (c *Cloud) Close() error {
	c.objects.Stop()
	return c.queues.Close()
}
