//go:build gcp

package fake

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of Cloud Tasks.
const (
	maxTask     = 1 << 20
	maxSchedule = 30 * 24 * time.Hour
)

// Waits of a task that failed, for tests; those of a real queue are configured.
const (
	firstRetry = 50 * time.Millisecond
	maxRetry   = time.Second
)

// validTaskQueue matches the name of a queue.
var validTaskQueue = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/queues/[A-Za-z0-9-]+$`)

// Tasks is Cloud Tasks. It keeps tasks until Push posts them.
type Tasks struct {
	pb.UnimplementedCloudTasksServer

	mu     sync.Mutex
	queues map[string][]*task // waiting tasks by the name of their queue; deployed queues only
}

type task struct {
	*pb.Task
	due      time.Time
	attempts int
}

// Deploy creates a queue.
func (s *Tasks) Deploy(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !validTaskQueue.MatchString(queue) {
		panic("not the name of a queue: " + queue)
	}
	s.queues[queue] = []*task{}
}

// Waiting returns the tasks of a queue that wait.
func (s *Tasks) Waiting(queue string) (out []*pb.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.queues[queue] {
		out = append(out, t.Task)
	}
	return out
}

// GetQueue returns a queue's name.
func (s *Tasks) GetQueue(_ context.Context, r *pb.GetQueueRequest) (*pb.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[r.Name] == nil {
		return nil, status.Error(codes.NotFound, "Queue does not exist.")
	}
	return &pb.Queue{Name: r.Name}, nil
}

// CreateTask accepts tasks that have no name and post to a target with a token.
func (s *Tasks) CreateTask(_ context.Context, r *pb.CreateTaskRequest) (*pb.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &task{Task: r.Task, due: time.Now()}
	if at := r.Task.ScheduleTime; at != nil {
		t.due = at.AsTime()
	}
	h, deadline := r.Task.GetHttpRequest(), r.Task.DispatchDeadline.AsDuration()
	switch {
	case s.queues[r.Parent] == nil:
		return nil, status.Error(codes.NotFound, "Queue does not exist.")
	case r.Task.Name != "" || h.GetHttpMethod() != pb.HttpMethod_POST || !strings.HasPrefix(h.Url, "https://"):
		return nil, status.Error(codes.InvalidArgument, "not a POST to a target that takes tokens")
	case h.GetOidcToken().GetServiceAccountEmail() == "":
		return nil, status.Error(codes.InvalidArgument, "a token needs a service account")
	case deadline < 15*time.Second || deadline > 30*time.Minute:
		return nil, status.Error(codes.InvalidArgument, "the dispatch deadline is not in [15s, 30m]")
	case len(h.Body) > maxTask:
		return nil, status.Error(codes.InvalidArgument, "the task is too large")
	case time.Until(t.due) > maxSchedule:
		return nil, status.Error(codes.InvalidArgument, "the schedule time is too far in the future")
	}
	s.queues[r.Parent] = append(s.queues[r.Parent], t)
	return r.Task, nil
}

// take returns a task that is due; nil if there is none.
func (s *Tasks) take(queue string) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.queues[queue] {
		if !time.Now().Before(t.due) {
			s.queues[queue] = append(s.queues[queue][:i:i], s.queues[queue][i+1:]...)
			return t
		}
	}
	return nil
}

// Push posts the tasks of a queue at their time until ctx ends, at most that many at once, and retries those that fail. It
// returns when its requests have ended.
func (s *Tasks) Push(ctx context.Context, p *Pusher, queue string, atOnce int) {
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	defer all.Wait()
	for wait(ctx, 0) {
		free <- struct{}{}
		t := s.take(queue)
		if t == nil {
			<-free
			wait(ctx, pushPause)
			continue
		}
		all.Go(func() {
			defer func() { <-free }()
			h := t.GetHttpRequest()
			if p.post(h.Url, h.Headers, h.Body, h.GetOidcToken().ServiceAccountEmail, h.GetOidcToken().Audience, t.DispatchDeadline.AsDuration()) {
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			t.due = time.Now().Add(min(maxRetry, firstRetry<<min(t.attempts, 10)))
			t.attempts++
			s.queues[queue] = append(s.queues[queue], t)
		})
	}
}
