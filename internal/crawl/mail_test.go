package crawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// post puts mail from one partition to another into its mailbox.
func (w *world) post(m blobschema.Mail) {
	w.t.Helper()
	body, err := blobschema.EncodeMail(m)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.apply(actor.Send{Queue: naming.MailboxQueue(m.To), Bodies: [][]byte{body}}); err != nil {
		w.t.Fatal(err)
	}
}

// TestMailIsApplied checks that mail is applied in any order. A text that is no URL is left out, a URL of another partition
// is forwarded however often it comes, and a newer map is read first. The head counts the applied mail.
func TestMailIsApplied(t *testing.T) {
	c, w := newCrawl(3), newWorld(t)
	hosts := []string{ofPartition(t, c, 0), ofPartition(t, c, 1), ofPartition(t, c, 2)}
	requests := w.serve(nil)
	c = w.begin(c, "https://"+hosts[0]+"/")
	of := func(host, path string) blobschema.Queued {
		return blobschema.Queued{URL: "https://" + host + path, Depth: 3}
	}
	w.post(blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Number: 3, Epoch: 1, URLs: []blobschema.Queued{of(hosts[0], "/c"), {URL: "no URL"}, of(hosts[2], "/c")}})
	w.post(blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Number: 1, Epoch: 1, URLs: []blobschema.Queued{of(hosts[0], "/a"), of(hosts[2], "/c")}})
	w.post(blobschema.Mail{Crawl: c.ID, From: 2, To: 0, Number: 1, Epoch: 1, URLs: []blobschema.Queued{of(hosts[0], "/a"), of(hosts[1], "/b")}})
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if d := cmp.Diff(map[string]int{"https://" + hosts[0] + "/": 0, "https://" + hosts[0] + "/a": 3, "https://" + hosts[0] + "/c": 3}, depths(*requests)); d != "" {
		t.Errorf("requested, by depth (-want +got):\n%s", d)
	}
	man, h := w.manifest(c.ID, 0), w.head(c.ID, 0)
	want := map[partition.ID]blobschema.Marks{partition.Intake: {Low: 1}, 1: {Low: 1, Above: []uint64{3}}, 2: {Low: 1}}
	if d := cmp.Diff(want, man.Applied); d != "" || h.Applied != 4 || len(w.queues[naming.MailboxQueue(0)]) > 0 {
		t.Errorf("%d applied (-want +got):\n%s", h.Applied, d)
	}
	if got := w.mailed(2); got["https://"+hosts[2]+"/c"] != 2 {
		t.Errorf("sent on to 2: %v", got)
	}
	if got := w.mailed(1); got["https://"+hosts[1]+"/b"] != 1 {
		t.Errorf("sent on to 1: %v", got)
	}
	// A slot comes from 1, with mail for it by the new map before this step has read the map.
	slot := hashOf(t, c).Slot(hosts[1])
	w.give(c.ID, 0, slot)
	*requests = nil
	w.post(blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Number: 2, Epoch: 2, URLs: []blobschema.Queued{of(hosts[1], "/new")}})
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	w.post(blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Epoch: 2}) // a nudge, which changes nothing
	left := len(w.mail)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if len(w.mail) != left-1 {
		t.Errorf("the nudge is left: %d messages, %d before", len(w.mail), left)
	}
	if h = w.head(c.ID, 0); h.Applied != 5 || h.Epoch != 2 || h.Awaits == 0 || h.Totals.Unexamined != 1 || len(*requests) > 0 {
		t.Errorf("before the slot came: requested %v, the head is %+v", depths(*requests), h)
	}
	for _, p := range []partition.ID{1, 0, 0} {
		w.step(StepConfig{Crawl: c, Process: "p", Partition: p}, nil)
	}
	if got := depths(*requests); got["https://"+hosts[1]+"/new"] != 3 || len(got) < 2 {
		t.Errorf("when it is here requested %v", got)
	}
}

// TestSlowQueue checks that a step with nothing else to do reads its mail, however long the first receive takes.
func TestSlowQueue(t *testing.T) {
	c, w, host := newCrawl(1), newWorld(t), "www.example"
	w.web = site(t, host, pages, func(int) []string { return all(host) })
	c = w.begin(c, all(host)[0])
	w.receiveTime = 600 * time.Millisecond
	w.step(StepConfig{Crawl: c, Process: "p", Linger: 200 * time.Millisecond}, nil)
	checkPages(t, w, c.ID, 0, all(host))
}

// TestMuchMail checks that mail is received no faster than commits make room for it in memory.
func TestMuchMail(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	host := ofPartition(t, c, 0)
	w.serve(nil)
	c = w.begin(c, "https://"+host+"/")
	const mails, perMail = 40, 50
	for i := range mails {
		m := blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Number: uint64(i + 1), Epoch: 1}
		for k := range perMail {
			m.URLs = append(m.URLs, blobschema.Queued{URL: fmt.Sprintf("https://%s/%d/%d", host, i, k), Depth: 1, Rank: 1})
		}
		w.post(m)
	}
	received, commits := 0, 0
	w.fault = func(e actor.Effect) (before, after error) {
		switch e := e.(type) {
		case actor.Receive:
			if received++; len(w.queues[e.Queue]) > 0 && received > 2+commits {
				t.Errorf("receive %d comes after %d commits", received, commits)
			}
		case actor.PutObject:
			if strings.Contains(e.Name, "/c0") {
				commits++
			}
		}
		return nil, nil
	}
	w.step(StepConfig{Crawl: c, Process: "p", MaxResident: 400, CommitEvery: time.Hour, Deadline: 20 * time.Second}, nil)
	if h := w.head(c.ID, 0); h.Applied != 1+mails || commits < mails/10 {
		t.Errorf("%d mails applied in %d commits", h.Applied, commits)
	}
}

// TestMailWhileItEnds checks that mail that arrives during the last commit is left for the next step.
func TestMailWhileItEnds(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	host := ofPartition(t, c, 0)
	w.serve(nil)
	c = w.begin(c, "https://"+host+"/")
	posted := false
	w.fault = func(e actor.Effect) (before, after error) {
		if _, ok := e.(actor.Receive); ok && !posted && w.Mono > 15*time.Second { // the step is about to end
			posted = true
			w.post(blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Number: 1, Epoch: 1, URLs: []blobschema.Queued{{URL: "https://" + host + "/late"}}})
		}
		return nil, nil
	}
	cfg := StepConfig{Crawl: c, Process: "p", Deadline: 21 * time.Second, Linger: time.Minute}
	w.step(cfg, nil)
	w.redeliver()
	w.fault = nil
	w.step(cfg, nil)
	if h := w.head(c.ID, 0); !posted || h.Applied != 2 || w.visible(c.ID, 0)["https://"+host+"/late"] != 1 {
		t.Errorf("posted %v, %d mails applied", posted, h.Applied)
	}
}

// TestManyLinksAreMailed checks that links for another partition are buffered only until they fill a mail.
func TestManyLinksAreMailed(t *testing.T) {
	for _, n := range []int{flushURLs - 1, flushURLs} {
		c, w := newCrawl(2), newWorld(t)
		here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
		w.web = site(t, here, pages, func(i int) []string {
			if i > 0 {
				return all(here)
			}
			links := all(here)
			for k := range n {
				links = append(links, fmt.Sprintf("https://%s/%d", there, k))
			}
			return links
		})
		c = w.begin(c, all(here)[0])
		var sizes []int
		at := time.Duration(0)
		w.fault = func(e actor.Effect) (before, after error) {
			if s, ok := e.(actor.Send); ok && s.Queue == naming.MailboxQueue(1) {
				for _, b := range s.Bodies {
					m, err := blobschema.DecodeMail(b)
					if err != nil {
						t.Fatal(err)
					}
					sizes, at = append(sizes, len(m.URLs)), w.Mono
				}
			}
			return nil, nil
		}
		w.step(StepConfig{Crawl: c, Process: "p", CommitEvery: 10 * time.Second, MailEvery: time.Hour}, nil)
		sum := 0
		for _, s := range sizes {
			sum += s
		}
		if soon := at < 20*time.Second; sum != n || soon != (n == flushURLs) || slices.Max(sizes) < 1000 {
			t.Errorf("%d links are mailed after %v, as %v", n, at, sizes)
		}
	}
}

// TestSeedsAreTold checks that the owner of a seed's redirect hears of it as a seed even if it was sent as a link before.
func TestSeedsAreTold(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	here, there := ofPartition(t, c, 0), "https://"+ofPartition(t, c, 1)+"/x"
	w.serve(answers{
		"https://" + here + "/":   linking(t, actor.LinkAnchor, there, "https://"+here+"/2"),
		"https://" + here + "/2":  linking(t, actor.LinkAnchor, there),
		"https://" + here + "/go": linking(t, actor.LinkRedirect, there),
	})
	c = w.begin(c, "https://"+here+"/", "https://"+here+"/go")
	w.queues = map[string][]actor.Message{naming.MailboxQueue(0): w.queues[naming.MailboxQueue(0)]}
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	var flags []blobschema.QueuedFlags
	for _, m := range w.queues[naming.MailboxQueue(1)] {
		mail, err := blobschema.DecodeMail(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range mail.URLs {
			flags = append(flags, q.Flags&blobschema.FlagSeed)
		}
	}
	slices.Sort(flags)
	if d := cmp.Diff([]blobschema.QueuedFlags{0, blobschema.FlagSeed}, flags); d != "" {
		t.Errorf("reported (-want +got):\n%s", d)
	}
}
