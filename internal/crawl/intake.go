package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

const (
	// maxOutbox bounds the mail that is sent and not applied: one record lists all of it. Beyond that, messages wait in
	// their queue.
	maxOutbox = 2000
	// maxAtOnce bounds the URLs that are buffered in memory before they are sent.
	maxAtOnce = blobschema.MaxListURLs
	// maxAside bounds the bytes that a dead letter keeps of texts that are not URLs.
	maxAside = 64 << 10
)

// Intake turns messages from the intake queue into mail for the owners of their URLs. It is an [actor.Actor]. When it has
// ended without an error, the messages may be acknowledged.
//
//	put URLs → record numbers the mail → mail sent → wakes sent → messages acknowledged
//
// A crash on the way leaves the messages in the queue. When they are delivered again, their mail is sent again under the
// same numbers, or under new numbers if it was applied meanwhile. The owners recognise the request by its id.
type Intake struct {
	actor.Procedure
	cfg   IntakeConfig
	crawl string
	msgs  []actor.Message
	rec   blobschema.Crawl
	pmap  *partition.Map
	links frontier.Mapping

	mails []outMail        // mail to send
	urls  int              // number of URLs in mails
	dead  int64            // dead letters that the record does not count yet
	told  blobschema.Calls // calls that the record counts already
}

// IntakeConfig configures intake.
type IntakeConfig struct {
	Crawl  string // id of the crawl
	Bucket string // bucket whose notifications name lists of URLs; "": lists are not taken
	// Spent returns the billed calls of the process since intake began; nil: calls are not counted.
	Spent func() blobschema.Calls
}

// NewIntake returns the actor for some messages.
func NewIntake(cfg IntakeConfig, msgs []actor.Message) *Intake {
	in := &Intake{cfg: cfg, crawl: cfg.Crawl, msgs: msgs}
	in.Body = in.run
	return in
}

// outMail is one mail to send.
type outMail struct {
	to      partition.ID
	request uint64
	urls    []blobschema.Queued
	object  string
}

func (in *Intake) run(t *actor.Task) error {
	recs, err := t.Records(naming.CrawlKey(in.crawl), naming.MapKey(in.crawl))
	if err != nil {
		return err
	}
	if !recs[0].Found {
		return fmt.Errorf("crawl %s has no record", in.crawl)
	}
	if in.rec, err = actor.Decode[blobschema.Crawl](recs[0], "crawl"); err != nil {
		return err
	}
	r, err := mapRecord(&in.rec, recs[1])
	if err != nil {
		return err
	}
	if in.pmap, err = blobschema.ReadMap(t.Object, &in.rec, r.Object); err != nil {
		return err
	}
	if in.links, err = mapping(&in.rec); err != nil {
		return err
	}
	for _, m := range in.msgs {
		if err := in.read(t, m); err != nil {
			return err
		}
	}
	return in.flush(t)
}

// flush stores, numbers and sends the mail so far.
func (in *Intake) flush(t *actor.Task) error {
	mails := in.mails
	in.mails, in.urls = nil, 0
	for i := range mails {
		if err := in.put(t, &mails[i]); err != nil {
			return err
		}
	}
	numbers, before, err := in.number(t, mails)
	if err != nil || len(mails) == 0 {
		return err
	}
	for _, m := range before {
		urls, err := blobschema.ReadSeeds(t.Object, m.Object)
		if err != nil {
			return err
		}
		mails, numbers = append(mails, outMail{to: m.To, request: m.Request, urls: urls}), append(numbers, m)
	}
	return in.send(t, mails, numbers)
}

// read turns one message into mail. A message that cannot be read becomes a dead letter: reading it again would not help.
func (in *Intake) read(t *actor.Task, m actor.Message) error {
	if uploads, ok := blobschema.DecodeNotification(m.Body); ok && in.cfg.Bucket != "" {
		for _, u := range uploads {
			if err := in.readList(t, u); err != nil {
				return err
			}
		}
		return nil
	}
	r, err := blobschema.DecodeRequest(m.Body)
	switch {
	case err != nil:
		return in.putAside(t, m.Body, 1, err.Error())
	case r.Crawl != "" && r.Crawl != in.crawl:
		return in.putAside(t, m.Body, 1, fmt.Sprintf("it is for crawl %s, but crawl %s is active", r.Crawl, in.crawl))
	}
	r.ID = cmp.Or(r.ID, m.ID)
	return in.take(t, r)
}

// readList turns a list of URLs in the bucket into mail.
func (in *Intake) readList(t *actor.Task, u blobschema.Upload) error {
	aside := func(reason string) error { return in.putAside(t, []byte(u.Name), 1, reason) }
	seeds := strings.HasPrefix(u.Name, blobschema.SeedLists)
	switch {
	case u.Bucket != in.cfg.Bucket:
		return aside(fmt.Sprintf("it is in bucket %.100q, not in %s", u.Bucket, in.cfg.Bucket))
	case !seeds && !strings.HasPrefix(u.Name, blobschema.RecrawlLists):
		return aside("it is not in a folder for lists of URLs")
	case u.Size > blobschema.MaxListBytes:
		return aside(fmt.Sprintf("the list has %d bytes, more than %d: split it", u.Size, blobschema.MaxListBytes))
	case u.Size <= 0 || strings.HasSuffix(u.Name, "/"):
		return nil // an empty object, or a folder
	}
	data, err := t.Object(u.Name, 0, blobschema.MaxListBytes+1) // the object may have grown since the notification
	switch {
	case errors.Is(err, actor.ErrNotFound):
		return aside("the list was removed before it was read")
	case err != nil:
		return err
	case len(data) > blobschema.MaxListBytes:
		return aside(fmt.Sprintf("the list has %d bytes, more than %d: split it", len(data), blobschema.MaxListBytes))
	}
	var urls []string
	for line := range strings.Lines(string(data)) {
		if line, _, _ = strings.Cut(strings.TrimSpace(line), " "); line != "" && line[0] != '#' {
			urls = append(urls, line)
		}
	}
	if len(urls) > blobschema.MaxListURLs {
		return aside(fmt.Sprintf("the list has %d URLs, more than %d: split it", len(urls), blobschema.MaxListURLs))
	}
	r := blobschema.Request{ID: u.ID, Recrawl: urls}
	if seeds {
		r.Recrawl, r.Seeds = nil, urls
	}
	return in.take(t, r)
}

// take turns a request with an id into mail.
func (in *Intake) take(t *actor.Task, r blobschema.Request) error {
	policy, err := policyOf(&in.rec, nil)
	if err != nil {
		return err
	}
	request := in.links.Hash.Fingerprint("request " + r.ID)
	shares := map[partition.ID][]blobschema.Queued{}
	var none notURLs
	// Each URL goes to the owner of its slot; texts that are not URLs make one dead letter.
	for i, list := range [][]string{r.Recrawl, r.Seeds} {
		flag := []blobschema.QueuedFlags{blobschema.FlagAgain, blobschema.FlagSeed}[i]
		for _, raw := range list {
			u, err := weburl.Parse(raw)
			if err != nil {
				none.add(raw, err)
				continue
			}
			l := in.links.Link(u)
			l.Flags |= flag
			if flag == blobschema.FlagSeed {
				l.Rank = seedRank(policy, l)
			}
			p := in.pmap.Owner(l.Slot)
			shares[p] = append(shares[p], l.Queued())
		}
	}
	if none.n > 0 {
		if err := in.putAside(t, none.kept, none.n, none.reason()); err != nil {
			return err
		}
	}
	// The mail is buffered; if there is too much of it, what is buffered is sent first.
	var mails []outMail
	n := 0
	for _, p := range slices.Sorted(maps.Keys(shares)) {
		n += len(shares[p])
		for _, urls := range blobschema.SplitMail(shares[p], mailRaw) {
			mails = append(mails, outMail{to: p, request: request, urls: urls})
		}
	}
	if in.urls > 0 && (in.urls+n > maxAtOnce || len(in.mails)+len(mails) > maxOutbox) {
		if err := in.flush(t); err != nil {
			return err
		}
	}
	in.mails, in.urls = append(in.mails, mails...), in.urls+n
	return nil
}

// notURLs collects the texts of a request that are not URLs. They make one dead letter, however many they are.
type notURLs struct {
	n     int64
	kept  []byte // one a line, up to maxAside bytes
	first error
}

func (l *notURLs) add(raw string, why error) {
	if l.n++; l.n == 1 {
		l.first = why
	}
	line := fmt.Appendf(nil, "%.4096s", raw)
	if l.n > 1 {
		line = append([]byte{'\n'}, line...)
	}
	if len(l.kept)+len(line) <= maxAside {
		l.kept = append(l.kept, line...)
	}
}

func (l *notURLs) reason() string {
	if l.n == 1 {
		return "not a URL: " + l.first.Error()
	}
	return fmt.Sprintf("%d are not URLs; the first: %v", l.n, l.first)
}

// putAside stores a dead letter for n messages or URLs that cannot be read.
func (in *Intake) putAside(t *actor.Task, body []byte, n int64, reason string) error {
	in.dead += n
	letter := actor.Encode(DeadLetter{Crawl: in.crawl, Partition: partition.Requests, Reason: reason, Body: body})
	name := naming.Dead(in.crawl, letter)
	return t.Put(name, letter)
}

func (in *Intake) put(t *actor.Task, m *outMail) error {
	data, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: m.request, URLs: m.urls})
	if err != nil {
		return err
	}
	m.object = naming.Request(in.crawl, data)
	return t.Put(m.object, data)
}

// number gives the mail its numbers, in the record that lists mail with requests. before returns other mail of the same
// requests: a crashed intake numbered it by a map that has changed since, and may not have sent it.
func (in *Intake) number(t *actor.Task, mails []outMail) (numbers, before []blobschema.RequestMail, err error) {
	if len(mails) == 0 && in.dead == 0 {
		return nil, nil, nil
	}
	spent := blobschema.Calls{}
	if in.cfg.Spent != nil {
		spent = in.cfg.Spent().Minus(in.told) // the mail itself is sent later and not included
	}
	fresh := 0
	err = actor.Revise(t, naming.RequestsKey(in.crawl), func(r *blobschema.Requests) (bool, error) {
		numbers, before = numbers[:0], before[:0]
		if r.Sent == nil {
			r.Sent = map[partition.ID]uint64{}
		}
		old := len(r.Outbox)
		for _, m := range mails {
			entry := blobschema.RequestMail{To: m.to, Request: m.request, Object: m.object, Epoch: in.pmap.Epoch()}
			i := slices.IndexFunc(r.Outbox, func(e blobschema.RequestMail) bool {
				return e.To == entry.To && e.Request == entry.Request && e.Object == entry.Object
			})
			if i < 0 {
				r.Sent[m.to]++
				entry.Number, i = r.Sent[m.to], len(r.Outbox)
				r.Outbox = append(r.Outbox, entry)
			} // else a crashed intake has numbered it already
			numbers = append(numbers, r.Outbox[i])
		}
		fresh = len(r.Outbox) - old
		for _, e := range r.Outbox[:old] {
			ours := slices.ContainsFunc(mails, func(m outMail) bool { return m.request == e.Request })
			if ours && !slices.Contains(numbers, e) {
				before = append(before, e)
			}
		}
		if fresh > 0 && old > 0 && len(r.Outbox) > maxOutbox {
			return false, fmt.Errorf("%d requests wait to be applied; messages stay in the queue until some are", maxOutbox)
		}
		r.Dead += in.dead
		r.Calls.Add(spent)
		return fresh > 0 || in.dead > 0, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if fresh > 0 || in.dead > 0 {
		in.told.Add(spent)
	}
	in.dead = 0
	return numbers, before, nil
}

func (in *Intake) send(t *actor.Task, mails []outMail, numbers []blobschema.RequestMail) error {
	var woken []partition.ID
	for i, m := range mails {
		body, err := blobschema.EncodeMail(requestMail(in.crawl, numbers[i], m.urls))
		if err != nil {
			return err
		}
		if _, err := t.Do(actor.Send{Queue: naming.MailboxQueue(m.to), Bodies: [][]byte{body}}); err != nil {
			return fmt.Errorf("send requests: %w", err)
		}
		if !slices.Contains(woken, m.to) {
			woken = append(woken, m.to)
		}
	}
	return sendWakes(t, in.crawl, 0, woken)
}

// requestMail returns the mail of a request. Every call returns the same mail.
func requestMail(crawl string, m blobschema.RequestMail, urls []blobschema.Queued) blobschema.Mail {
	return blobschema.Mail{Crawl: crawl, From: partition.Requests, To: m.To, Number: m.Number, Epoch: m.Epoch, Request: m.Request, URLs: urls}
}
