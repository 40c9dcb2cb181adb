//go:build gcp

package gcp

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// served holds the queues whose messages are requests to functions, with the path of each.
var served = map[string]string{naming.WakesQueue: "/fetch", naming.IndexQueue: "/index", naming.RankQueue: "/rank"}

const (
	// maxDelay leaves an hour of the 30 days that Cloud Tasks allows, for a clock that is wrong.
	maxDelay = 30*24*time.Hour - time.Hour
	// dispatchDeadline is the longest time of a request. The function's own time limit is shorter.
	dispatchDeadline = 30 * time.Minute
	// concurrentTasks bounds the tasks that a send creates at once, because each needs a call.
	concurrentTasks = 32
)

// tasks implements platform.Queue for a queue of Cloud Tasks. It only sends: Cloud Tasks posts each message to a function, and deletes
// it when the function answers with a 2xx status.
type tasks struct {
	*cloud
	name string
}

func (q *tasks) path() string {
	return "projects/" + q.project + "/locations/" + q.region + "/queues/" + q.cloud.name + "-" + q.name
}

// Send creates a task for each message. Tasks have no names, so two equal messages are two tasks.
func (q *tasks) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	var due *timestamppb.Timestamp
	if delay > 0 {
		due = timestamppb.New(time.Now().Add(min(delay, maxDelay)))
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrentTasks)
	for _, body := range bodies {
		g.Go(func() error {
			_, err := q.tasks.CreateTask(ctx, &cloudtaskspb.CreateTaskRequest{Parent: q.path(), Task: &cloudtaskspb.Task{
				ScheduleTime: due, DispatchDeadline: durationpb.New(dispatchDeadline),
				MessageType: &cloudtaskspb.Task_HttpRequest{HttpRequest: &cloudtaskspb.HttpRequest{
					HttpMethod: cloudtaskspb.HttpMethod_POST, Url: q.service + served[q.name], Body: body,
					Headers: map[string]string{"Content-Type": "application/octet-stream"},
					AuthorizationHeader: &cloudtaskspb.HttpRequest_OidcToken{OidcToken: &cloudtaskspb.OidcToken{
						ServiceAccountEmail: q.account, Audience: q.service,
					}},
				}},
			}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("send to %s: %w", q.name, q.missing(err))
	}
	return nil
}

// check returns an error if the queue does not exist.
func (q *tasks) check(ctx context.Context) error {
	if _, err := q.tasks.GetQueue(ctx, &cloudtaskspb.GetQueueRequest{Name: q.path()}); err != nil {
		return fmt.Errorf("check queue %s: %w", q.name, q.missing(err))
	}
	return nil
}

func (q *tasks) missing(err error) error {
	if status.Code(err) == codes.NotFound {
		return fmt.Errorf("there is no queue %s in region %s; deploy it, or check the URL: %w", q.cloud.name+"-"+q.name, q.region, err)
	}
	return explain(err)
}

func (q *tasks) Receive(context.Context, int, time.Duration) ([]platform.Delivery, error) {
	return nil, fmt.Errorf("functions serve the queue %s, so workers cannot receive from it: a deployment has functions or workers", q.name)
}

func (*tasks) Acknowledge(context.Context, []platform.Receipt) error { return nil }
func (*tasks) Release(context.Context, []platform.Receipt) error     { return nil }
func (*tasks) Close(context.Context) error                           { return nil }
