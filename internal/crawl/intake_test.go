package crawl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// lists puts lists of n URLs of as many hosts into the bucket, and returns notifications.
func (w *world) lists(count, n int, line string) (msgs []actor.Message) {
	for i := range count {
		var list strings.Builder
		for j := range n {
			fmt.Fprintf(&list, line+"\n", j, i)
		}
		name := fmt.Sprintf("lists/recrawl/%d", i)
		w.Objects[name] = []byte(list.String())
		body := fmt.Sprintf(`{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":%q,"size":%d,"sequencer":"1"}}}]}`, name, list.Len())
		msgs = append(msgs, actor.Message{ID: fmt.Sprint(i), Body: []byte(body)})
	}
	return msgs
}

func (w *world) requests() (r blobschema.Requests) {
	if w.Table[naming.RequestsKey("test")].Found {
		w.record(naming.RequestsKey("test"), &r)
	}
	return r
}

// TestIntakeOfMuch checks that large lists are sent one after another, so that memory holds no more than one of them.
func TestIntakeOfMuch(t *testing.T) {
	w := newWorld(t)
	w.begin(newCrawl(4), "https://www.example/")
	msgs := w.lists(3, maxAtOnce/2, "https://www%d.example/%d")
	most, held := 0, 0
	w.fault = func(e actor.Effect) (before, after error) {
		switch e := e.(type) {
		case actor.PutObject: // what is buffered is put first
			b, err := blobschema.DecodeSeeds(e.Parts[0])
			if err != nil {
				t.Error(err)
			}
			held += len(b.URLs)
			most = max(most, held)
		case actor.Send:
			held = 0
		}
		return nil, nil
	}
	spent := func() blobschema.Calls { return blobschema.Calls{Functions: 7} }
	if _, err := w.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b", Spent: spent}, msgs)); err != nil {
		t.Fatal(err)
	}
	if most != maxAtOnce || w.requests().Calls.Functions != 7 {
		t.Errorf("%d URLs at once, at the cost of %+v", most, w.requests().Calls)
	}
	got := 0
	for p := range partition.ID(4) {
		for _, m := range w.queues[naming.MailboxQueue(p)] {
			mail, err := blobschema.DecodeMail(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			if mail.Request != 0 {
				got += len(mail.URLs)
			}
		}
	}
	if got != 3*(maxAtOnce/2) {
		t.Errorf("%d URLs were mailed", got)
	}
}

// TestIntakeWaits checks that the record of mail with requests keeps its bound: other messages stay in the queue until
// there is room.
func TestIntakeWaits(t *testing.T) {
	w := newWorld(t)
	c := newCrawl(400)
	c.Slots = 4096
	w.begin(c, "https://www.example/")
	msgs := w.lists(8, 8000, "https://www%d.example/%d")
	taken := 0
	for _, m := range append([]actor.Message{}, msgs...) {
		_, err := w.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, []actor.Message{m}))
		if err == nil {
			taken++
		} else if !strings.Contains(err.Error(), "stay in the queue") {
			t.Fatal(err)
		}
	}
	if r := w.requests(); taken != maxOutbox/400 || len(r.Outbox) != maxOutbox {
		t.Errorf("%d of 8 lists were taken, %d mails listed", taken, len(r.Outbox))
	}
	if _, err := w.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, msgs[:1])); err != nil {
		t.Errorf("a known list: %v", err)
	}
	if size := len(w.Table[naming.RequestsKey("test")].Value); size > 350<<10 {
		t.Errorf("the record has %d bytes", size)
	}
	w.Table[naming.RequestsKey("test")] = actor.Record{}
	if _, err := w.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, msgs)); err == nil || len(w.requests().Outbox) != maxOutbox {
		t.Errorf("all at once: %v, %d mails listed", err, len(w.requests().Outbox))
	}
}

// TestNoURLs checks that a file that is no list makes one dead letter, not one per line.
func TestNoURLs(t *testing.T) {
	w := newWorld(t)
	w.begin(newCrawl(1), "https://www.example/")
	msgs := w.lists(1, 50_000, "\x1b[2Jno %d %d")
	counts, err := w.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, msgs))
	if err != nil || counts["PutObject"] != 1 || w.requests().Dead != 50_000 {
		t.Errorf("%v, %v, %d put aside", err, counts, w.requests().Dead)
	}
	for name, b := range w.Objects {
		if strings.HasPrefix(name, naming.DeadPrefix("test")) && len(b) > 2*maxAside {
			t.Errorf("it has %d bytes", len(b))
		}
	}
}

// TestListHasGrown checks that no more of a list is read than the bound, whatever the notification says.
func TestListHasGrown(t *testing.T) {
	w := newWorld(t)
	w.begin(newCrawl(1), "https://www.example/")
	msgs := w.lists(1, 1, "https://www.example/%d/%d")
	w.Objects["lists/recrawl/0"] = make([]byte, blobschema.MaxListBytes+2)
	w.fault = func(e actor.Effect) (before, after error) {
		if g, ok := e.(actor.GetObject); ok && (g.Length < 0 || g.Length > blobschema.MaxListBytes+1) {
			t.Errorf("it reads %d bytes", g.Length)
		}
		return nil, nil
	}
	if _, err := w.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, msgs)); err != nil || w.requests().Dead != 1 {
		t.Errorf("%v, %d put aside", err, w.requests().Dead)
	}
}

// TestNotURLs checks that texts that are not URLs are kept one a line, while there is room, with the reason of the first.
func TestNotURLs(t *testing.T) {
	why := errors.New("why")
	var l notURLs
	l.add("a", why)
	if string(l.kept) != "a" || l.reason() != "not a URL: why" {
		t.Errorf("%q: %s", l.kept, l.reason())
	}
	l.add(strings.Repeat("b", 5000), errors.New("another"))
	if string(l.kept) != "a\n"+strings.Repeat("b", 4096) || l.reason() != "2 are not URLs; the first: why" {
		t.Errorf("%d bytes: %s", len(l.kept), l.reason())
	}
	for len(l.kept) <= maxAside-100 {
		l.add(strings.Repeat("c", 99), why)
	}
	left := maxAside - len(l.kept)
	l.add(strings.Repeat("d", left), why) // one byte too many, with its end of line
	l.add(strings.Repeat("e", left-1), why)
	if kept := string(l.kept); len(kept) != maxAside || strings.Contains(kept, "d") || !strings.HasSuffix(kept, "\n"+strings.Repeat("e", left-1)) {
		t.Errorf("%d bytes are kept", len(kept))
	}
}

// TestRequestsWithoutID checks that a request without an id gets the id of its message.
func TestRequestsWithoutID(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	requests := w.serve(nil)
	c = w.begin(c, "https://www.example/")
	cfg := StepConfig{Crawl: c, Process: "p"}
	w.crawlOn(cfg)
	for _, k := range []struct {
		message, id string
		want        int
	}{{"m1", "", 1}, {"m1", "", 0}, {"m2", "", 1}, {"m3", "r", 1}, {"m4", "r", 0}} {
		*requests = nil
		body, err := blobschema.EncodeRequest(blobschema.Request{ID: k.id, Recrawl: []string{"https://www.example/"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.run(NewIntake(IntakeConfig{Crawl: c.ID}, []actor.Message{{ID: k.message, Body: body}})); err != nil {
			t.Fatal(err)
		}
		if w.crawlOn(cfg); len(*requests) != k.want {
			t.Errorf("%+v: %d requests", k, len(*requests))
		}
	}
}
