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
	never = time.Duration(1<<63 - 1)
	// mailRaw is how many bytes of URLs go into one mail at most, so that a message stays
	// under one billing unit of 64 KB even if nothing compresses.
	mailRaw = 45 << 10
	// flushURLs is how many held links for one partition are worth a mail by themselves.
	flushURLs = 3000
	// firstWait is how long the first receive of a step waits for mail. It finds out whether there is any,
	// so it does not wait for more. It costs a step without mail one request more, 0.4 millionths of a dollar.
	firstWait = 20 * time.Millisecond
	mailWait  = 20 * time.Second // of each further receive; the longest that SQS allows
	// maxAsking is how many mails with requests may wait for their slots before no more mail is received. Seeds
	// for a slot that is not loaded are such; without a bound, a million of them would be held in memory.
	maxAsking = 100
)

// outgoing is what a step holds for one other partition: links that are in no mail yet.
type outgoing struct {
	links  []blobschema.Queued
	stored int    // of them, how many are in commits already
	since  uint64 // the first commit that has some, if stored > 0
}

// marks are the mail numbers applied from one sender.
type marks struct {
	low   uint64
	above map[uint64]bool
}

func (m *marks) has(n uint64) bool { return n <= m.low || m.above[n] }

func (m *marks) add(n uint64) {
	if m.has(n) {
		return
	}
	if m.above == nil {
		m.above = map[uint64]bool{}
	}
	m.above[n] = true
	for m.above[m.low+1] {
		delete(m.above, m.low+1)
		m.low++
	}
}

func (m *marks) stored() blobschema.Marks {
	out := blobschema.Marks{Low: m.low}
	for n := range m.above {
		out.Above = append(out.Above, n)
	}
	slices.Sort(out.Above)
	return out
}

// receive is the task that drains the mailbox while the step works. Nothing waits
// in the queue for politeness: mail goes straight into the frontier.
func (s *Step) receive(t *actor.Task) error {
	queue := naming.MailboxQueue(s.cfg.Partition)
	for wait := firstWait; ; wait = mailWait {
		t.Await(func() bool { return !s.fullOfMail() && len(s.asking)-s.stuck() < maxAsking })
		v, err := t.Do(actor.Receive{Queue: queue, Max: 10, Wait: wait})
		s.heard = true
		if err != nil {
			t.Sleep(time.Second)
			continue
		}
		for _, m := range v.([]actor.Message) {
			s.applyMail(m, false)
		}
	}
}

// fullOfMail reports whether so many URLs came by mail since the last commit that they take too much memory:
// the frontier cannot unload what no commit holds. The next mail waits in the queue until a commit is begun.
func (s *Step) fullOfMail() bool {
	return s.cfg.MaxResident > 0 && s.batch.urls >= max(s.cfg.MaxResident/2, 100)
}

// applyMail merges one mail into the frontier. It is acknowledged after the commit
// that holds its effect (I5); a repeat of what is committed already, at once.
func (s *Step) applyMail(m actor.Message, late bool) {
	if s.closed {
		return // it comes again, to the next step
	}
	mail, err := blobschema.DecodeMail(m.Body)
	if err != nil || mail.Crawl != s.cfg.Crawl.ID || mail.To != s.cfg.Partition {
		s.badMail(m, mail, err)
		return
	}
	if mail.Epoch > s.st.ter.pmap.Epoch() && !late { // what it holds may be ours by a map not read yet
		s.later, s.look = append(s.later, m), true
		return
	}
	if mail.Number == 0 {
		s.acknowledge([]actor.Receipt{m.Receipt})
		s.nudged()
		return
	}
	if !late && slices.ContainsFunc(mail.URLs, func(q blobschema.Queued) bool { return int(q.Topic) >= len(s.st.scopes) }) {
		s.later, s.look = append(s.later, m), true // the wish says that there are more topics
		return
	}
	mk := s.st.marks[mail.From]
	if mk == nil {
		mk = &marks{}
		s.st.marks[mail.From] = mk
	}
	if mk.has(mail.Number) {
		s.batch.receipts = append(s.batch.receipts, m.Receipt)
		return
	}
	s.batch.urls += len(mail.URLs)
	var again []frontier.Link
	for i := range mail.URLs {
		l, ok := s.links.Stored(&mail.URLs[i])
		switch {
		case !ok: // the sender made it canonical; a URL that is not one is nobody's page
			continue
		case l.Flags&blobschema.FlagAgain != 0:
			again = append(again, l)
			continue
		case s.owner(l.Slot) != s.cfg.Partition:
			s.buffer(l) // past the filter of sent links: it may have gone to the slot of its name
			continue
		}
		s.add(l)
		if s.lateSeed(l) {
			again = append(again, l)
		}
	}
	applied := func() {
		mk.add(mail.Number)
		s.batch.applied = true
		s.batch.receipts = append(s.batch.receipts, m.Receipt)
	}
	if len(again) > 0 {
		s.askAgain(mail, again, applied)
		return
	}
	applied()
}

// applyLater applies the mail that waited for the map, or for topics.
func (s *Step) applyLater() {
	list := s.later
	s.later = nil
	for _, m := range list {
		s.applyMail(m, true)
	}
}

// badMail deals with a message that is not ours or cannot be read. What may be read
// next time is left in the queue once; then it is put aside with its reason, and
// counted. Its numbers stay unapplied, so the sender's copy will be sent again.
func (s *Step) badMail(m actor.Message, mail blobschema.Mail, err error) {
	if err != nil && m.Receives < 2 {
		return
	}
	reason := "mail for another crawl or partition"
	if err != nil {
		reason = err.Error()
	} else if mail.Crawl != s.cfg.Crawl.ID {
		s.batch.receipts = append(s.batch.receipts, m.Receipt) // left over from an older crawl
		return
	}
	sum := sha256.Sum256(m.Body)
	key := hex.EncodeToString(sum[:8])
	if s.dead[key] {
		s.batch.receipts = append(s.batch.receipts, m.Receipt)
		return
	}
	s.dead[key] = true
	body := actor.Encode(DeadLetter{Crawl: s.cfg.Crawl.ID, Partition: s.cfg.Partition, Reason: reason, Body: m.Body})
	b := s.batch
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

// DeadLetter is a message that could not be read, as it is put aside.
type DeadLetter struct {
	Crawl     string       `json:"crawl"`
	Partition partition.ID `json:"partition"`
	Reason    string       `json:"reason"`
	Body      []byte       `json:"body"`
}

// placements forwards the URLs of names whose address is pinned to the slots of these.
func (s *Step) placements() {
	for _, l := range s.st.f.Placements() {
		s.st.totals.Forwarded++
		asked := looks(&s.cfg.Crawl.Settings) && l.Rank == 0
		if asked { // the slot of the name does not know of revisits: the owner knows the next generation
			l.Flags |= blobschema.FlagAgain
		}
		if asked || s.owner(l.Slot) != s.cfg.Partition {
			s.buffer(l) // past the filter of sent links: the name's slot has sent it once
		} else {
			s.st.f.Add(s.Clock(), l)
		}
	}
}

// held is the number of links that are in no mail yet.
func (s *Step) held() (n int64) {
	for _, o := range s.st.out {
		n += int64(len(o.links))
	}
	return n
}

// feedAfter is how long after the last commit the next one is due so that others
// get what is held for them: sooner for a partition with nothing to do than for one
// with little, and at times that grow further apart as the step goes on. A crawl
// spreads fast that way, and near its end, when partitions run dry one after another,
// it does not commit for the sake of links that most likely are known.
func (s *Step) feedAfter() time.Duration {
	after, age := never, s.lastCommit.Sub(s.Begun())
	for p, a := range s.appetites {
		o := s.st.out[p]
		if o == nil || len(o.links) == 0 {
			continue
		}
		switch a {
		case Starved:
			after = min(after, max(s.cfg.CommitMin, age/8))
		case Hungry:
			after = min(after, max(s.cfg.CommitMin, age/2))
		}
	}
	return after
}

// flushes reports whether what is held for p should go into mail with this commit.
func (s *Step) flushes(p partition.ID, o *outgoing, now time.Time) bool {
	return s.stopping || !s.idleSince.IsZero() || s.appetites[p] != Fed || len(o.links) >= flushURLs ||
		now.Sub(s.lastMail) >= s.mailEvery(now)
}

// publish sends the mail of a commit. If it fails for good the manifest still names
// the outbox, and the next step sends it: same numbers, same content.
func (s *Step) publish(seq uint64, outbox []blobschema.OutMail) {
	if len(outbox) == 0 {
		s.sentAll(seq)
		return
	}
	s.publishing++
	s.Spawn(func(t *actor.Task) error {
		defer func() { s.publishing-- }()
		for len(outbox) > 0 {
			to := outbox[0].To
			n := 1
			for n < len(outbox) && n < 10 && outbox[n].To == to {
				n++
			}
			var bodies [][]byte
			for _, m := range outbox[:n] {
				bodies = append(bodies, m.Body)
			}
			for try := 0; ; try++ {
				_, err := t.Do(actor.Send{Queue: naming.MailboxQueue(to), Bodies: bodies})
				if err == nil {
					break
				}
				if try == 4 || s.stopping {
					return nil
				}
				t.Sleep(time.Second << try)
			}
			outbox = outbox[n:]
		}
		s.sentAll(seq)
		s.wakeMailed(t)
		return nil
	})
}

func (s *Step) sentAll(seq uint64) {
	s.unsent = slices.DeleteFunc(s.unsent, func(u uint64) bool { return u == seq })
}
