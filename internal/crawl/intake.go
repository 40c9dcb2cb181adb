package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// maxOutbox is how much mail may be on its way from intake before messages wait in
// their queue: the record that lists it has a bound.
const maxOutbox = 2000

// Intake turns messages from the intake queue into mail for the owners of their URLs.
// It is an [Actor]; when it has ended without an error, the messages may be
// acknowledged.
//
//	put URLs → record numbers the mail → mail sent → wakes sent → messages acknowledged
//
// A crash on the way leaves the messages in the queue. Delivered again they are sent
// again, under the same numbers, or if they were applied meanwhile under new ones, and
// the owners tell by the request's id that it is the same.
type Intake struct {
	procedure
	cfg   IntakeConfig
	crawl string
	msgs  []Message
	rec   blobschema.Crawl
	pmap  *partition.Map
	hash  partition.Hash
	dead  int64
}

// IntakeConfig says what intake works for.
type IntakeConfig struct {
	Crawl  string // id
	Bucket string // whose notifications name lists of URLs; "": none are taken
	// Spent is what the process was billed for since intake began; nil: that is not counted.
	Spent func() blobschema.Calls
}

// NewIntake returns the actor for some messages.
func NewIntake(cfg IntakeConfig, msgs []Message) *Intake {
	in := &Intake{cfg: cfg, crawl: cfg.Crawl, msgs: msgs}
	in.body = in.run
	return in
}

// outMail is one mail to be.
type outMail struct {
	to      partition.ID
	request uint64
	urls    []blobschema.Queued
	object  string
}

func (in *Intake) run(t *task) error {
	recs, err := readRecords(t, []string{blobschema.CrawlKey(in.crawl)})
	if err != nil {
		return err
	}
	if !recs[0].Found {
		return fmt.Errorf("crawl %s has no record", in.crawl)
	}
	if in.rec, err = decodeJSON[blobschema.Crawl](recs[0], "crawl"); err != nil {
		return err
	}
	if in.pmap, err = partition.NewMap(in.rec.Slots, in.rec.Partitions); err != nil {
		return err
	}
	if in.hash, err = NewHash(&in.rec); err != nil {
		return err
	}
	var mails []outMail
	for _, m := range in.msgs {
		more, err := in.read(t, m)
		if err != nil {
			return err
		}
		mails = append(mails, more...)
	}
	for i := range mails {
		if err := in.put(t, &mails[i]); err != nil {
			return err
		}
	}
	numbers, err := in.number(t, mails)
	if err != nil || len(mails) == 0 {
		return err
	}
	return in.send(t, mails, numbers)
}

// read makes mail of one message. What of it cannot be read is put aside, with its
// reason: it will not be better the next time.
func (in *Intake) read(t *task, m Message) ([]outMail, error) {
	if uploads, ok := blobschema.DecodeNotification(m.Body); ok && in.cfg.Bucket != "" {
		var out []outMail
		for _, u := range uploads {
			more, err := in.readList(t, u)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	}
	r, err := blobschema.DecodeRequest(m.Body)
	switch {
	case err != nil:
		return nil, in.putAside(t, m.Body, err.Error())
	case r.Crawl != "" && r.Crawl != in.crawl:
		return nil, in.putAside(t, m.Body, fmt.Sprintf("it is for crawl %s, the active one is %s", r.Crawl, in.crawl))
	}
	r.ID = cmp.Or(r.ID, m.ID)
	return in.mails(t, r)
}

// readList makes mail of a list of URLs that was put into the bucket.
func (in *Intake) readList(t *task, u blobschema.Upload) ([]outMail, error) {
	aside := func(reason string) ([]outMail, error) {
		return nil, in.putAside(t, []byte(u.Name), reason)
	}
	seeds := strings.HasPrefix(u.Name, blobschema.SeedLists)
	switch {
	case u.Bucket != in.cfg.Bucket:
		return aside(fmt.Sprintf("it is in bucket %.100q, not in %s", u.Bucket, in.cfg.Bucket))
	case !seeds && !strings.HasPrefix(u.Name, blobschema.RecrawlLists):
		return aside("it is in none of the folders for lists of URLs")
	case u.Size > blobschema.MaxListBytes:
		return aside(fmt.Sprintf("the list has %d bytes, more than %d: cut it into several", u.Size, blobschema.MaxListBytes))
	case strings.HasSuffix(u.Name, "/"):
		return nil, nil // a folder
	}
	data, err := getObject(t, u.Name, 0, -1)
	switch {
	case errors.Is(err, ErrNotFound):
		return aside("the list was removed before it was read")
	case err != nil:
		return nil, err
	case len(data) > blobschema.MaxListBytes:
		return aside(fmt.Sprintf("the list has %d bytes, more than %d: cut it into several", len(data), blobschema.MaxListBytes))
	}
	var urls []string
	for line := range strings.Lines(string(data)) {
		if line, _, _ = strings.Cut(strings.TrimSpace(line), " "); line != "" && line[0] != '#' {
			urls = append(urls, line)
		}
	}
	if len(urls) > blobschema.MaxListURLs {
		return aside(fmt.Sprintf("the list has %d URLs, more than %d: cut it into several", len(urls), blobschema.MaxListURLs))
	}
	r := blobschema.Request{ID: u.ID, Recrawl: urls}
	if seeds {
		r.Recrawl, r.Seeds = nil, urls
	}
	return in.mails(t, r)
}

// mails makes mail of a request, which has an id.
func (in *Intake) mails(t *task, r blobschema.Request) ([]outMail, error) {
	policy, err := frontier.PolicyByName(in.rec.Settings.Policy)
	if err != nil {
		return nil, err
	}
	request := in.hash.Fingerprint("request " + r.ID)
	shares := map[partition.ID][]blobschema.Queued{}
	for i, list := range [][]string{r.Recrawl, r.Seeds} {
		flag := []blobschema.QueuedFlags{blobschema.FlagAgain, blobschema.FlagSeed}[i]
		for _, raw := range list {
			u, err := weburl.Parse(raw)
			if err != nil {
				if err := in.putAside(t, fmt.Appendf(nil, "%.4096s", raw), "not a URL: "+err.Error()); err != nil {
					return nil, err
				}
				continue
			}
			q := blobschema.Queued{URL: u.String(), Flags: flag}
			if flag == blobschema.FlagSeed {
				q.Rank = policy.URLRank(frontier.Candidate{})
			}
			unit := place(&in.rec.Settings, u, &q)
			p := in.pmap.Owner(in.hash.Slot(unit))
			shares[p] = append(shares[p], q)
		}
	}
	var out []outMail
	for _, p := range slices.Sorted(maps.Keys(shares)) {
		for _, urls := range blobschema.SplitMail(shares[p], mailRaw) {
			out = append(out, outMail{to: p, request: request, urls: urls})
		}
	}
	return out, nil
}

// place sets the unit of a URL and whether it is one of an address.
func place(s *blobschema.Settings, u weburl.URL, q *blobschema.Queued) string {
	unit, placed := Unit(s.PartitionBy, u.Host())
	q.Host = unit
	if placed {
		q.Flags |= blobschema.FlagPlaced
	}
	return unit
}

func (in *Intake) putAside(t *task, body []byte, reason string) error {
	in.dead++
	letter := encodeJSON(DeadLetter{Crawl: in.crawl, Partition: partition.Requests, Reason: reason, Body: body})
	name := blobschema.DeadName(in.crawl, body)
	if _, err := t.do(PutObject{Name: name, Parts: [][]byte{letter}}); err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	return nil
}

func (in *Intake) put(t *task, m *outMail) error {
	data, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: m.request, URLs: m.urls})
	if err != nil {
		return err
	}
	m.object = blobschema.RequestName(in.crawl, data)
	if _, err := t.do(PutObject{Name: m.object, Parts: [][]byte{data}}); err != nil {
		return fmt.Errorf("put %s: %w", m.object, err)
	}
	return nil
}

// number gives the mail its numbers, in the record that will be asked for them.
func (in *Intake) number(t *task, mails []outMail) (numbers []uint64, err error) {
	if len(mails) == 0 && in.dead == 0 {
		return nil, nil
	}
	full, spent := false, blobschema.Calls{}
	if in.cfg.Spent != nil {
		spent = in.cfg.Spent() // but for the mail itself, which is sent after this
	}
	err = update(t, blobschema.RequestsKey(in.crawl), func(r *blobschema.Requests) bool {
		numbers = numbers[:0]
		if full = len(mails) > 0 && len(r.Outbox) >= maxOutbox; full {
			return false
		}
		if r.Sent == nil {
			r.Sent = map[partition.ID]uint64{}
		}
		old := len(r.Outbox)
		for _, m := range mails {
			entry := blobschema.RequestMail{To: m.to, Request: m.request, Object: m.object}
			i := slices.IndexFunc(r.Outbox, func(e blobschema.RequestMail) bool {
				return e.To == entry.To && e.Request == entry.Request && e.Object == entry.Object
			})
			if i < 0 {
				r.Sent[m.to]++
				entry.Number, i = r.Sent[m.to], len(r.Outbox)
				r.Outbox = append(r.Outbox, entry)
			} // else an intake that crashed has numbered it
			numbers = append(numbers, r.Outbox[i].Number)
		}
		r.Dead += in.dead
		r.Calls.Add(spent)
		return len(r.Outbox) > old || in.dead > 0
	})
	if full {
		return nil, fmt.Errorf("%d requests wait to be applied; messages stay in the queue until some are", maxOutbox)
	}
	return numbers, err
}

func (in *Intake) send(t *task, mails []outMail, numbers []uint64) error {
	var wakes [][]byte
	woken := map[partition.ID]bool{}
	for i, m := range mails {
		body, err := blobschema.EncodeMail(requestMail(&in.rec, in.pmap, m.to, numbers[i], m.request, m.urls))
		if err != nil {
			return err
		}
		if _, err := t.do(Send{Queue: blobschema.MailboxQueue(m.to), Bodies: [][]byte{body}}); err != nil {
			return fmt.Errorf("send requests: %w", err)
		}
		if !woken[m.to] {
			woken[m.to] = true
			wakes = append(wakes, blobschema.EncodeWake(in.crawl, m.to))
		}
	}
	for wake := range slices.Chunk(wakes, 10) {
		if _, err := t.do(Send{Queue: blobschema.WakesQueue, Bodies: wake}); err != nil {
			return fmt.Errorf("send wakes: %w", err)
		}
	}
	return nil
}

// requestMail is mail of a request, the same however often it is made.
func requestMail(c *blobschema.Crawl, pmap *partition.Map, to partition.ID, number, request uint64, urls []blobschema.Queued) blobschema.Mail {
	return blobschema.Mail{Crawl: c.ID, From: partition.Requests, To: to, Number: number, Epoch: pmap.Epoch(), Request: request, URLs: urls}
}
