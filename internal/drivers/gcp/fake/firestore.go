//go:build gcp

package fake

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxDocument is the largest document in bytes. Firestore counts almost as protocol buffers do.
const maxDocument = 1 << 20

// validDocument matches the name of a document in a collection at the top, and its last element.
var validDocument = regexp.MustCompile(`^projects/[^/]+/databases/\(default\)/documents/[^/]+/([^/]+)$`)

// Firestore holds the documents of all projects. It has the two calls that a table needs.
type Firestore struct {
	pb.UnimplementedFirestoreServer

	mu    sync.Mutex
	docs  map[string]*pb.Document // replaced, never changed
	clock time.Time               // of the last commit
	fail  error                   // of every call
	omit  string                  // text in the names of documents that reads leave out
}

// NewFirestore returns a database without documents.
func NewFirestore() *Firestore { return &Firestore{docs: map[string]*pb.Document{}} }

// Fail makes every later call fail. nil ends this.
func (f *Firestore) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Omit makes reads leave out documents whose names contain a text, as a stream that ends early does.
func (f *Firestore) Omit(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.omit = text
}

// BatchGetDocuments returns each document once, in any order.
func (f *Firestore) BatchGetDocuments(r *pb.BatchGetDocumentsRequest, stream pb.Firestore_BatchGetDocumentsServer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	names := map[string]bool{}
	for _, name := range r.Documents {
		names[name] = true
	}
	for name := range names {
		if f.omit != "" && strings.Contains(name, f.omit) {
			continue
		}
		if err := validate(name); err != nil {
			return err
		}
		answer := &pb.BatchGetDocumentsResponse{ReadTime: timestamppb.New(f.clock)}
		if d := f.docs[name]; d != nil {
			answer.Result = &pb.BatchGetDocumentsResponse_Found{Found: d}
		} else {
			answer.Result = &pb.BatchGetDocumentsResponse_Missing{Missing: name}
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

// Commit carries out all writes or none. Its time is later than that of every other commit, in microseconds.
func (f *Firestore) Commit(_ context.Context, r *pb.CommitRequest) (*pb.CommitResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	now := time.Now().Truncate(time.Microsecond)
	if !now.After(f.clock) {
		now = f.clock.Add(time.Microsecond)
	}
	changed := map[string]*pb.Document{}
	out := &pb.CommitResponse{CommitTime: timestamppb.New(now)}
	for _, w := range r.Writes {
		d := w.GetUpdate()
		if d == nil || w.UpdateMask != nil || len(w.UpdateTransforms) > 0 {
			return nil, status.Error(codes.Unimplemented, "only whole documents can be written")
		}
		if err := validate(d.Name); err != nil {
			return nil, err
		}
		if n := proto.Size(d); n > maxDocument {
			return nil, status.Errorf(codes.InvalidArgument, "document %s has %d bytes and exceeds the maximum of %d", d.Name, n, maxDocument)
		}
		old := changed[d.Name]
		if old == nil {
			old = f.docs[d.Name]
		}
		if err := satisfied(w.CurrentDocument, old, d.Name); err != nil {
			return nil, err
		}
		next := &pb.Document{Name: d.Name, Fields: d.Fields, CreateTime: out.CommitTime, UpdateTime: out.CommitTime}
		if old != nil {
			next.CreateTime = old.CreateTime
			if proto.Equal(&pb.Document{Fields: old.Fields}, &pb.Document{Fields: d.Fields}) {
				next.UpdateTime = old.UpdateTime // as documented for a write that changes nothing
			}
		}
		changed[d.Name] = next
		out.WriteResults = append(out.WriteResults, &pb.WriteResult{UpdateTime: next.UpdateTime})
	}
	for name, d := range changed {
		f.docs[name] = d
	}
	f.clock = now
	return out, nil
}

func validate(name string) error {
	m := validDocument.FindStringSubmatch(name)
	if m == nil || len(m[1]) > 1500 || m[1] == "." || m[1] == ".." || strings.HasPrefix(m[1], "__") && strings.HasSuffix(m[1], "__") {
		return status.Errorf(codes.InvalidArgument, "%q is no name of a document", name)
	}
	return nil
}

// satisfied checks the precondition of a write. d is the present document, or nil.
func satisfied(p *pb.Precondition, d *pb.Document, name string) error {
	switch c := p.GetConditionType().(type) {
	case *pb.Precondition_Exists:
		switch {
		case c.Exists && d == nil:
			return status.Errorf(codes.NotFound, "no document to update: %s", name)
		case !c.Exists && d != nil:
			return status.Errorf(codes.AlreadyExists, "document already exists: %s", name)
		}
	case *pb.Precondition_UpdateTime:
		if !proto.Equal(c.UpdateTime, d.GetUpdateTime()) {
			return status.Errorf(codes.FailedPrecondition, "the stored version of %s does not match the required base version", name)
		}
	}
	return nil
}
