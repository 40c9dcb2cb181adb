package feed

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

func TestCursor(t *testing.T) {
	c := Cursor{crawl: "20261127-140000"}
	for _, step := range []struct {
		p       partition.ID
		records int
		seq     uint64
	}{{3, 2, 1}, {0, 1, 7}, {3, 0, 2}} {
		for n := range step.records {
			if !c.next(step.p, step.records) {
				t.Errorf("record %d of partition %d is read already", n, step.p)
			}
			same(t, c)
		}
		if c.next(step.p, step.records) {
			t.Errorf("partition %d has another record", step.p)
		}
		c.finish(step.p, step.seq)
		same(t, c)
	}
	for p, want := range []uint64{7, 0, 0, 2, 0} {
		if got := c.after(partition.ID(p)); got != want {
			t.Errorf("partition %d: after %d, want %d", p, got, want)
		}
	}
	for _, bad := range []string{"x", c.String()[1:], c.String() + "A", strings.Repeat("A", maxCursor+1)} {
		if _, err := Parse(bad); !errors.Is(err, ErrCursor) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func same(t *testing.T, c Cursor) {
	t.Helper()
	got, err := Parse(c.String())
	if err != nil || got.crawl != c.crawl || got.part != c.part || got.read != c.read || !slices.Equal(got.done, c.done) {
		t.Errorf("%+v became %+v, %v", c, got, err)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add(Cursor{crawl: "a", done: []uint64{1 << 60, 3}, part: 1, read: 9}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := Parse(text); err == nil {
			same(t, c)
		}
	})
}

func events(n int) (list []Event) {
	for i := range n {
		list = append(list, Event{Kind: blobschema.ResultNew, Page: blobschema.Page{URL: fmt.Sprintf("http://a.example/%d?a&b", i)}, Cursor: strconv.Itoa(i)})
	}
	return list
}

const secret = secretPrefix + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

// TestWebhook posts a batch to a server that first does not answer, then fails, then accepts it.
func TestWebhook(t *testing.T) {
	var ids []string
	var got []Event
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
			t.Errorf("signature %q, want %q", r.Header.Get("webhook-signature"), want)
		}
		if sec, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(sec, 0)) > time.Minute {
			t.Errorf("timestamp %q", at)
		}
		ids = append(ids, id)
		switch len(ids) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			var message struct {
				Type string
				Data []Event
			}
			if err := json.Unmarshal(body, &message); err != nil || message.Type != "pages" {
				t.Errorf("%s: %v", body, err)
			}
			got = message.Data
			_, _ = io.CopyN(w, endless{}, 10*maxAnswer) // the reader may leave
		}
	}))
	defer srv.Close()
	hook, err := NewWebhook(srv.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	var failures []error
	if err := Deliver(t.Context(), hook, events(3), func(err error, _ time.Duration) { failures = append(failures, err) }); err != nil {
		t.Fatal(err)
	}
	if len(failures) != 1 || len(ids) != 2 || ids[0] != ids[1] || !strings.HasPrefix(ids[0], "msg_") {
		t.Errorf("failures %v, ids %q", failures, ids)
	}
	if len(got) != 3 || got[2].URL != "http://a.example/2?a&b" || got[2].Cursor != "2" {
		t.Errorf("received %+v", got)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestWebhookEnds sends to servers to which no event may be sent again.
func TestWebhookEnds(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	for status, want := range map[int]string{http.StatusTemporaryRedirect: "it redirects", http.StatusFound: "it redirects", http.StatusGone: "wants no more"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(status)
		}))
		hook, err := NewWebhook(srv.URL, secret)
		if err != nil {
			t.Fatal(err)
		}
		err = Deliver(t.Context(), hook, events(1), func(err error, _ time.Duration) { t.Errorf("%d: retried after %v", status, err) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", status, err)
		}
		srv.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	hook, err := NewWebhook("http://127.0.0.1:1/", secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := Deliver(ctx, hook, events(1), func(error, time.Duration) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	for _, bad := range [][2]string{{"ftp://a.example", secret}, {"https:", secret}, {"https://a.example", ""}, {"https://a.example", secretPrefix + "c2hvcnQ="}, {"https://a.example", secret[len(secretPrefix):]}} {
		if _, err := NewWebhook(bad[0], bad[1]); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestQueue(t *testing.T) {
	q, err := OpenQueue(t.Context(), "mem://feed")
	if err != nil {
		t.Fatal(err)
	}
	sub, err := pubsub.OpenSubscription(t.Context(), "mem://feed")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Shutdown(context.WithoutCancel(t.Context())) }()
	want := events(MaxEvents)
	if err := Deliver(t.Context(), q, want, func(err error, _ time.Duration) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for range want {
		m, err := sub.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.Ack()
		var e Event
		if err := json.Unmarshal(m.Body, &e); err != nil {
			t.Fatal(err)
		}
		got[e.URL] = true
	}
	if len(got) != len(want) {
		t.Errorf("%d of %d events", len(got), len(want))
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := OpenQueue(t.Context(), "none://x"); err == nil {
		t.Error("an unknown scheme is opened")
	}
}
