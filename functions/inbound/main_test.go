package main

import (
	"context"
	"encoding/base64"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// TestEndpoint sends events as the function's address and its schedule do, and receives what the intake queue got.
func TestEndpoint(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	s, err := service.New(p, service.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := weburl.Parse("https://example.org/")
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 16, Partitions: 1}
	if _, _, _, err := s.Begin(want, crawl.Seeds([]weburl.URL{seed}), nil); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"ORBWEAVER_PLATFORM": "memory"}
	open := func(context.Context, string, platform.Meter) (*platform.Platform, error) { return p, nil }
	f, err := function.On(open, func(name string) string { return environment[name] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{Function: f, token: "0123456789abcdef"}
	expect := func(status int, ev events.LambdaFunctionURLRequest) {
		t.Helper()
		if answer, err := e.serve(t.Context(), ev); err != nil || answer.StatusCode != status {
			t.Errorf("%+v %v, want %d", answer, err, status)
		}
	}
	post := events.LambdaFunctionURLRequest{
		RawPath: "/requests", Body: base64.StdEncoding.EncodeToString([]byte("https://example.org/a")), IsBase64Encoded: true,
		Headers: map[string]string{"authorization": "Bearer " + e.token},
	}
	post.RequestContext.HTTP.Method, post.RequestContext.HTTP.SourceIP = "POST", "192.0.2.1"
	expect(202, post)
	wrong := post
	wrong.Headers = nil
	expect(401, wrong)
	submission := events.LambdaFunctionURLRequest{RawPath: "/indexnow", RawQueryString: "key=12345678&url=https://example.org/b"}
	submission.RequestContext.HTTP.Method = "GET"
	expect(202, submission)
	var got []string
	for len(got) < 2 {
		msgs, err := s.Receive(t.Context(), actor.Receive{Queue: naming.IntakeQueue, Max: 10, Wait: 5 * time.Second})
		if err != nil || len(msgs) == 0 {
			t.Fatalf("%v, then %d messages, %v", got, len(msgs), err)
		}
		for _, m := range msgs {
			r, err := blobschema.DecodeRequest(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Recrawl...)
		}
	}
	if got[0] != "https://example.org/a" || got[1] != "https://example.org/12345678.txt" {
		t.Errorf("the intake queue got %v", got)
	}
	expect(0, events.LambdaFunctionURLRequest{})
	submission.RequestContext.HTTP.SourceIP = "192.0.2.1"
	for range 10 {
		expect(202, submission)
	}
	expect(429, submission) // its address has had its share
	submission.RequestContext.HTTP.SourceIP = "192.0.2.2"
	expect(202, submission)
}
