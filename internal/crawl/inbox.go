package crawl

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/partition"
)

const (
	// firstWait is how long the first receive of a step waits for mail. It only finds out whether there is any, so it is
	// short. A step without mail pays for one extra request, 0.4 millionths of a dollar.
	firstWait = 20 * time.Millisecond
	mailWait  = 20 * time.Second // wait of each further receive; the longest that SQS allows
	// maxAsking bounds the mails with requests that wait for their slots; beyond it the step receives no mail. Seeds for a
	// slot that is not loaded are such requests: without a bound, a million of them would fill the memory.
	maxAsking = 100
)

// inbox is the mail that a step has received and not yet applied.
type inbox struct {
	heard    bool                   // the first receive was answered; before, the step does not know whether there is mail
	later    []actor.Message        // mail from senders with a newer map, or for new topics
	requests map[string]bool        // mails with requests being applied, by sender and number
	waiting  map[partition.Slot]int // number of tasks that wait for a slot
	dead     map[string]bool        // hashes of the messages that this step has stored as dead letters
}

func newInbox() inbox {
	return inbox{requests: map[string]bool{}, waiting: map[partition.Slot]int{}, dead: map[string]bool{}}
}

// asking returns the number of mails with requests that wait for something this step can do. Requests for slots that other
// partitions must give first do not count: the step may end before they arrive, and that mail comes again.
func (in *inbox) asking(ter *territory) int {
	n := len(in.requests)
	for slot, tasks := range in.waiting {
		if ter.awaited[slot] != 0 {
			n -= tasks
		}
	}
	return n
}

// receive is the task that drains the mailbox while the step works. Mail goes straight into the frontier; politeness never
// keeps it in the queue.
func (s *Step) receive(t *actor.Task) error {
	queue := naming.MailboxQueue(s.cfg.Partition)
	for wait := firstWait; ; wait = mailWait {
		t.Await(func() bool { return !s.st.fullOfMail() && s.inbox.asking(s.st.ter) < maxAsking })
		v, err := t.Do(actor.Receive{Queue: queue, Max: 10, Wait: wait})
		s.inbox.heard = true
		if err != nil {
			t.Sleep(time.Second)
			continue
		}
		for _, m := range v.([]actor.Message) {
			s.applyMail(m, false)
		}
	}
}

// fullOfMail reports whether too many URLs came by mail since the last commit. They take memory, because the frontier
// cannot unload what no commit holds. The next mail waits in the queue until a commit begins.
func (st *state) fullOfMail() bool {
	return st.cfg.MaxResident > 0 && st.batch.urls >= max(st.cfg.MaxResident/2, 100)
}

// applyMail merges one mail into the frontier. The mail is acknowledged after the commit that holds its effect (I5). late
// is true for mail that has waited for a newer map or topics.
func (s *Step) applyMail(m actor.Message, late bool) {
	if s.lease.phase == closed {
		return // the next step receives it again
	}
	// Mail that cannot be read, or belongs elsewhere, becomes a dead letter or is dropped.
	mail, err := blobschema.DecodeMail(m.Body)
	if err != nil || mail.Crawl != s.cfg.Crawl.ID || mail.To != s.cfg.Partition {
		s.badMail(m, mail, err)
		return
	}
	if mail.Epoch > s.st.ter.pmap.Epoch() && !late { // by a map that this step has not read, its URLs may be ours
		s.inbox.later, s.orders.signalled = append(s.inbox.later, m), true
		return
	}
	// Mail without a number is a nudge: a giver has just handed slots over.
	if mail.Number == 0 {
		s.outbox.acknowledge([]actor.Receipt{m.Receipt})
		s.st.nudged()
		return
	}
	if !late && slices.ContainsFunc(mail.URLs, func(q blobschema.Queued) bool { return int(q.Topic) >= len(s.st.scopes) }) {
		s.inbox.later, s.orders.signalled = append(s.inbox.later, m), true // the desired state names more topics
		return
	}
	// A number that is applied already identifies a repeated delivery.
	mk := s.st.marks[mail.From]
	if mk == nil {
		mk = &blobschema.Marks{}
		s.st.marks[mail.From] = mk
	}
	if mk.Has(mail.Number) {
		s.st.batch.receipts = append(s.st.batch.receipts, m.Receipt)
		return
	}
	// New URLs go into the frontier, URLs of other partitions into their buffers. Requests must wait for their slots.
	s.st.batch.urls += len(mail.URLs)
	var again []frontier.Link
	for i := range mail.URLs {
		l, ok := s.st.links.Stored(&mail.URLs[i])
		switch {
		case !ok: // the sender made it canonical; any other text is no page
			continue
		case l.Flags&blobschema.FlagAgain != 0:
			again = append(again, l)
			continue
		case s.st.owner(l.Slot) != s.cfg.Partition:
			s.st.buffer(l) // bypasses the filter of sent links, which may know it from the slot of its name
			continue
		}
		s.st.add(l)
		if s.st.lateSeed(l) {
			again = append(again, l)
		}
	}
	applied := func() {
		mk.Add(mail.Number)
		s.st.batch.applied = true
		s.st.batch.receipts = append(s.st.batch.receipts, m.Receipt)
	}
	if len(again) > 0 {
		s.askAgain(mail, again, applied)
		return
	}
	applied()
}

// applyLater applies the mail that waited for a newer map or for topics.
func (s *Step) applyLater() {
	list := s.inbox.later
	s.inbox.later = nil
	for _, m := range list {
		s.applyMail(m, true)
	}
}

// badMail handles a message that cannot be read or is for another partition. An unreadable message stays in the queue once,
// in case the next step can read it. Then it becomes a dead letter with its reason, and is counted. Its number stays
// unapplied, so the coordinator resends the sender's copy.
func (s *Step) badMail(m actor.Message, mail blobschema.Mail, err error) {
	if err != nil && m.Receives < 2 {
		return
	}
	reason := "mail for another crawl or partition"
	if err != nil {
		reason = err.Error()
	} else if mail.Crawl != s.cfg.Crawl.ID {
		s.st.batch.receipts = append(s.st.batch.receipts, m.Receipt) // left over from an older crawl
		return
	}
	sum := sha256.Sum256(m.Body)
	key := hex.EncodeToString(sum[:8])
	if s.inbox.dead[key] {
		s.st.batch.receipts = append(s.st.batch.receipts, m.Receipt)
		return
	}
	s.inbox.dead[key] = true
	body := actor.Encode(DeadLetter{Crawl: s.cfg.Crawl.ID, Partition: s.cfg.Partition, Reason: reason, Body: m.Body})
	b := s.st.batch
	b.puts++
	s.Issue(actor.PutObject{Name: naming.Dead(s.cfg.Crawl.ID, body), Parts: [][]byte{body}}, func(r actor.Reply) {
		b.puts--
		if r.Err != nil {
			s.End(r.Err)
		}
	})
	s.st.totals.DeadMail++
	b.applied = true
	b.receipts = append(b.receipts, m.Receipt)
}

// DeadLetter is a stored message that could not be read.
type DeadLetter struct {
	Crawl     string       `json:"crawl"`
	Partition partition.ID `json:"partition"`
	Reason    string       `json:"reason"`
	Body      []byte       `json:"body"`
}

// placements forwards the URLs of names that were pinned to an address to the slot of that address.
func (st *state) placements() {
	for _, l := range st.f.Placements() {
		st.totals.Forwarded++
		requests := revisits(&st.cfg.Crawl.Settings) && l.Rank == 0
		if requests { // only the owner knows the next generation: the slot of the name does not record revisits
			l.Flags |= blobschema.FlagAgain
		}
		if requests || st.owner(l.Slot) != st.cfg.Partition {
			st.buffer(l) // bypasses the filter of sent links, which knows it from the name's slot
		} else {
			st.f.Add(st.lease.Clock(), l)
		}
	}
}
