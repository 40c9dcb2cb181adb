package blobschema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

var notifications = []struct {
	name, body string
	want       []blobschema.Upload
	ok         bool
}{
	{"of S3", `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},
		"object":{"key":"lists/recrawl/my+list%26.txt","size":12,"eTag":"e","sequencer":"0055"}}}]}`,
		[]blobschema.Upload{{Bucket: "b", Name: "lists/recrawl/my list&.txt", Size: 12, ID: "upload 0055 lists/recrawl/my list&.txt"}}, true},
	{"of Cloud Storage", `{"kind":"storage#object","id":"b/lists/seeds/my list&.txt/17","name":"lists/seeds/my list&.txt","bucket":"b","generation":"17","size":"12"}`,
		[]blobschema.Upload{{Bucket: "b", Name: "lists/seeds/my list&.txt", Size: 12, ID: "upload 17 lists/seeds/my list&.txt"}}, true},
	{"of another kind", `{"kind":"storage#bucket","name":"b"}`, nil, false},
	{"without a size", `{"kind":"storage#object","name":"a","bucket":"b","generation":"17","size":12}`, nil, false},
	{"of EventBridge", `{"version":"0","source":"aws.s3","detail-type":"Object Created","detail":{"bucket":{"name":"b"},"object":{"key":"lists/seeds/a+b","size":3,"sequencer":"7"}}}`,
		nil, false},
	{"of a removal", `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectRemoved:Delete","s3":{"bucket":{"name":"b"},"object":{"key":"k"}}}]}`, nil, true},
	{"to try a target", `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`, nil, true},
	{"of another service", `{"Records":[{"eventSource":"aws:sqs"}]}`, nil, false},
	{"a request", `{"recrawl":["https://example.org/"]}`, nil, false},
	{"nothing", ``, nil, false},
	{"not JSON", `{"Records":`, nil, false},
	{"a list", `[1]`, nil, false},
}

func TestDecodeNotification(t *testing.T) {
	for _, c := range notifications {
		got, ok := blobschema.DecodeNotification([]byte(c.body))
		if ok != c.ok || cmp.Diff(c.want, got) != "" {
			t.Errorf("%s: %v, %s", c.name, ok, cmp.Diff(c.want, got))
		}
	}
}

func FuzzDecodeNotification(f *testing.F) {
	for _, c := range notifications {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if uploads, ok := blobschema.DecodeNotification(b); !ok && len(uploads) > 0 {
			t.Error("uploads from a body that is not a notification")
		}
	})
}
