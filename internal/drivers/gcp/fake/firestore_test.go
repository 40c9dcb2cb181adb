//go:build gcp

package fake

import (
	"context"
	"net"
	"strings"
	"testing"

	firestore "cloud.google.com/go/firestore/apiv1"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const database = "projects/p/databases/(default)"

// dial returns Google's client of a new database.
func dial(t *testing.T) *firestore.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterFirestoreServer(s, NewFirestore())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	c, err := firestore.NewClient(t.Context(), option.WithEndpoint(l.Addr().String()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func name(id string) string { return database + "/documents/c/" + id }

// put returns a write of a document.
func put(id, value string, p *pb.Precondition) *pb.Write {
	fields := map[string]*pb.Value{"value": {ValueType: &pb.Value_StringValue{StringValue: value}}}
	return &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{Name: name(id), Fields: fields}}, CurrentDocument: p}
}

func exists(yes bool) *pb.Precondition {
	return &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: yes}}
}

func at(t *timestamppb.Timestamp) *pb.Precondition {
	return &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: t}}
}

func commit(ctx context.Context, c *firestore.Client, writes ...*pb.Write) ([]*pb.WriteResult, error) {
	r, err := c.Commit(ctx, &pb.CommitRequest{Database: database, Writes: writes})
	return r.GetWriteResults(), err
}

// value reads a document; "" if it is missing.
func value(t *testing.T, c *firestore.Client, id string) string {
	t.Helper()
	stream, err := c.BatchGetDocuments(t.Context(), &pb.BatchGetDocumentsRequest{Database: database, Documents: []string{name(id)}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return r.GetFound().GetFields()["value"].GetStringValue()
}

func refused(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// TestPreconditions checks that stale update times and other preconditions are refused, and that a refused commit changes
// nothing. An emulator that takes any update time passes every test of the table that has no race.
func TestPreconditions(t *testing.T) {
	c, ctx := dial(t), t.Context()
	first, err := commit(ctx, c, put("a", "1", exists(false)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = commit(ctx, c, put("a", "again", exists(false)))
	refused(t, "create again", err, codes.AlreadyExists)
	second, err := commit(ctx, c, put("a", "2", at(first[0].UpdateTime)))
	if err != nil || !second[0].UpdateTime.AsTime().After(first[0].UpdateTime.AsTime()) {
		t.Fatalf("%v, %v after %v", err, second, first)
	}
	_, err = commit(ctx, c, put("a", "stale", at(first[0].UpdateTime)))
	refused(t, "a stale update time", err, codes.FailedPrecondition)
	_, err = commit(ctx, c, put("none", "lost", at(first[0].UpdateTime)))
	refused(t, "an update time of a missing document", err, codes.FailedPrecondition)
	_, err = commit(ctx, c, put("none", "lost", exists(true)))
	refused(t, "a missing document", err, codes.NotFound)
	_, err = commit(ctx, c, put("b", "half", nil), put("a", "stale", at(first[0].UpdateTime)))
	refused(t, "half of a commit", err, codes.FailedPrecondition)
	if a, b := value(t, c, "a"), value(t, c, "b"); a != "2" || b != "" {
		t.Errorf("a is %q, and b is %q", a, b)
	}
	same, err := commit(ctx, c, put("a", "2", at(second[0].UpdateTime)))
	if err != nil || !proto.Equal(same[0].UpdateTime, second[0].UpdateTime) {
		t.Errorf("a write that changes nothing: %v, %v after %v", err, same, second)
	}
}

// TestTimesGrow checks that update times are whole microseconds, and that no two commits share one.
func TestTimesGrow(t *testing.T) {
	f := NewFirestore()
	var last *timestamppb.Timestamp
	for i := range 1000 {
		r, err := f.Commit(t.Context(), &pb.CommitRequest{Writes: []*pb.Write{put("a", strings.Repeat("x", i), nil)}})
		if err != nil {
			t.Fatal(err)
		}
		now := r.WriteResults[0].UpdateTime
		if last != nil && !now.AsTime().After(last.AsTime()) || now.Nanos%1000 != 0 {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
}

func TestBounds(t *testing.T) {
	c, ctx := dial(t), t.Context()
	_, err := commit(ctx, c, put("a", strings.Repeat("x", maxDocument), nil))
	refused(t, "a large document", err, codes.InvalidArgument)
	for _, id := range []string{"a/b", "..", "__x__", strings.Repeat("x", 1501)} {
		_, err := commit(ctx, c, put(id, "x", nil))
		refused(t, id, err, codes.InvalidArgument)
	}
}
