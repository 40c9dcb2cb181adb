package fsck_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

// moved is a crawl with three moved slots. The first has arrived at a new partition, which has
// crawled more of it; the second is handed over and not taken; the third is not handed over.
func moved(t testing.TB) *maker {
	m := newMaker(t, blobschema.Settings{})
	a, b, d := "http://"+m.host(0, 0)+"/", "http://"+m.host(1, 0)+"/", "http://"+m.host(2, 0)+"/"
	slot := func(url string) partition.Slot { return m.queued(url, 0).Slot }
	link := func(from string, to ...string) []blobschema.PageLinks {
		l := blobschema.PageLinks{Source: m.hash.Fingerprint(from), Slot: slot(from)}
		for _, u := range to {
			l.Targets = append(l.Targets, blobschema.Target{Fingerprint: m.hash.Fingerprint(u), Slot: slot(u), Followed: true})
		}
		return []blobschema.PageLinks{l}
	}
	m.seeds(a, b, d)

	first := m.answer(0, a, 0, body, nil)
	m.refuse(0, a+"1", blobschema.OutcomeRobots)
	m.apply(0, partition.Intake, 1)
	m.commit(0, blobschema.Commit{
		State: m.pending(m.queued(a+"2", 0), m.queued(a+"3", 0)), Links: link(a, a+"1", a+"2", a+"3", b+"b"), Outbox: []blobschema.OutMail{m.mail(0, 1, blobschema.Queued{URL: b + "b"})},
	})
	m.answer(2, d, 0, body, nil)
	m.apply(2, partition.Intake, 1)
	m.commit(2, blobschema.Commit{Links: link(d, a+"stale"), Outbox: []blobschema.OutMail{m.mail(2, 0, blobschema.Queued{URL: a + "stale"})}})

	// The new partition receives a URL before it has the slot.
	m.move(0, 4, slot(a))
	m.answer(1, b, 0, body, nil)
	m.apply(1, partition.Intake, 1)
	m.apply(1, 0, 1)
	m.parts[1].man.Epoch = 2
	m.commit(1, blobschema.Commit{
		State: m.pending(m.queued(b+"b", 0)), Links: link(b, a+"early"), Outbox: []blobschema.OutMail{m.mail(1, 4, blobschema.Queued{URL: a + "early"})},
	})
	m.apply(4, 1, 1)
	m.parts[4].man.Epoch = 2
	m.parts[4].unexamined[slot(a)] = 1
	m.commit(4, blobschema.Commit{State: m.pending(m.queued(a+"early", 0))})
	m.give(0)
	m.commit(0, blobschema.Commit{})
	m.take(4, 0)
	m.commit(4, blobschema.Commit{})
	m.confirm(4)

	// It crawls pending URLs of the slot, and revisits a page.
	delete(m.parts[4].unexamined, slot(a))
	m.answer(4, a+"2", 0, body+"2", nil)
	m.answer(4, a, 1, body, &first)
	m.refuse(4, a+"early", blobschema.OutcomeRobots)
	m.commit(4, blobschema.Commit{})
	m.parts[0].man.Given = nil
	m.apply(0, 2, 1)
	m.commit(0, blobschema.Commit{Outbox: []blobschema.OutMail{m.mail(0, 4, blobschema.Queued{URL: a + "stale"})}})

	// The second slot is handed over to a partition that has read the map. The third is not.
	m.move(1, 0, slot(b))
	m.move(2, 3, slot(d))
	m.give(1)
	m.commit(1, blobschema.Commit{})
	m.parts[0].man.Epoch = 4
	m.parts[0].unexamined[slot(b)] = 1
	m.commit(0, blobschema.Commit{State: m.pending(m.queued(b+"late", 0))})
	m.parts[2].man.Epoch = 4
	m.commit(2, blobschema.Commit{
		State: m.pending(m.queued(d+"2", 0)), Outbox: []blobschema.OutMail{m.mail(2, 0, blobschema.Queued{URL: b + "new"})},
	})
	m.put(naming.RequestsKey(crawlID), blobschema.Requests{
		Sent:   map[partition.ID]uint64{4: 1},
		Outbox: []blobschema.RequestMail{m.request(4, 1, 7, blobschema.Queued{URL: a + "asked", Flags: blobschema.FlagAgain})},
	})
	m.requests(func(r *blobschema.Requests) { r.Outbox[0].Epoch = 2 })
	return m
}

// record changes the record of the map.
func (h *hand) record(change func(*blobschema.MapRecord)) {
	edit(h, naming.MapKey(crawlID), change)
}

// manifest changes the manifest of a partition's last commit.
func (h *hand) manifest(p partition.ID, change func(*blobschema.Manifest)) {
	h.last(p, func(c *blobschema.Commit) { change(&c.Manifest) })
}

// at changes any commit of a partition.
func (h *hand) at(p partition.ID, seq uint64, change func(*blobschema.Commit)) {
	h.rewrite(naming.Commit(crawlID, p, seq, 1), change)
}

// headOf changes the head of a partition.
func (h *hand) headOf(p partition.ID, change func(*blobschema.Head)) {
	edit(h, naming.HeadKey(crawlID, p), change)
}

var movedCorruptions = []corruption{
	{"slot in no partition", moved, "I3", "no partition holds the slots", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given = nil })
		m.headOf(1, func(h *blobschema.Head) { h.Gives = nil })
	}},
	{"slot in two partitions", moved, "I3", "are held more than once", func(m *maker) {
		m.manifest(0, func(man *blobschema.Manifest) { man.Moved = nil })
	}},
	{"slot held and handed over", moved, "I3", "are held more than once", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Moved = nil })
	}},
	{"taken and not given", moved, "I3", "and no commit gave it then", func(m *maker) {
		m.manifest(4, func(man *blobschema.Manifest) { man.Moved[0].Slots = append(man.Moved[0].Slots, m.owned(3)) })
	}},
	{"taken in an unknown epoch", moved, "I3", "move by epoch 9", func(m *maker) {
		m.manifest(4, func(man *blobschema.Manifest) { man.Moved[0].Epoch = 9 })
	}},
	{"taken in another epoch", moved, "I3", "by epoch 3, and no commit gave it", func(m *maker) {
		for _, seq := range []uint64{2, 3} {
			m.at(4, seq, func(c *blobschema.Commit) { c.Manifest.Epoch, c.Manifest.Moved[0].Epoch = 3, 3 })
		}
	}},
	{"taken beyond all slots", moved, "I3", "of 64", func(m *maker) {
		m.manifest(4, func(man *blobschema.Manifest) { man.Moved[0].Slots = append(man.Moved[0].Slots, 64) })
	}},
	{"given to the wrong partition", moved, "I3", "and handed from", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].To = 3 })
	}},
	{"given to one, taken by another", moved, "I3", "which partition 0 gave to partition 3", func(m *maker) {
		m.at(0, 2, func(c *blobschema.Commit) { c.Manifest.Given[0].To = 3 })
	}},
	{"given and not held", moved, "I3", "is given that was not held", func(m *maker) {
		m.manifest(2, func(man *blobschema.Manifest) {
			man.Moved = []blobschema.Moved{{Epoch: 4, Slots: partition.Slots{m.slotBut(3)}}}
		})
	}},
	{"given to an unknown partition", moved, "I3", "to partition 99", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].To = 99 })
	}},
	{"given beyond all slots", moved, "I3", "it hands slot 70 over", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].Slots = append(man.Given[0].Slots, 70) })
	}},
	{"given and kept", moved, "I3", "and has not given it", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) {
			man.Given[0].Slots = partition.SlotsOf(append(man.Given[0].Slots, m.slotBut(1)))
		})
	}},
	{"given without a hand-over", moved, "I3", "and no hand-over has it", func(m *maker) {
		m.at(0, 2, func(c *blobschema.Commit) { c.Manifest.Given = nil })
	}},
	{"moved back in time", moved, "I3", "had moved by epoch 2 before", func(m *maker) {
		m.manifest(4, func(man *blobschema.Manifest) { man.Moved = nil })
	}},
	{"held again by the same epoch", moved, "I3", "way round, by the same epoch", func(m *maker) {
		m.manifest(4, func(man *blobschema.Manifest) { man.Moved[0].Received = false })
	}},
	{"epoch above that of the map", moved, "I3", "the map is of epoch 4", func(m *maker) {
		m.manifest(0, func(man *blobschema.Manifest) { man.Epoch = 5 })
		m.headOf(0, func(h *blobschema.Head) { h.Epoch = 5 })
	}},
	{"hand-over without runs", moved, "I7", "known URLs", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].Runs = []blobschema.RunRef{} })
	}},
	{"run of a hand-over missing", moved, "I6", "does not exist", func(m *maker) {
		delete(m.objects, naming.Commit(crawlID, 1, 2, 1))
		delete(m.objects, naming.Commit(crawlID, 1, 1, 1))
	}},
	{"run of a hand-over longer than its object", moved, "I6", "lie outside", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].Runs[0].Length += 1 << 20 })
	}},
	{"taken run lost", moved, "I7", "merging lost that", func(m *maker) {
		m.manifest(4, func(man *blobschema.Manifest) {
			man.Runs = slices.DeleteFunc(man.Runs, func(r blobschema.RunRef) bool { return strings.Contains(r.Object, "p00000") })
		})
	}},
	{"mail before the slot lost", moved, "I7", "does not know it", func(m *maker) {
		for _, seq := range []uint64{1, 2, 3} {
			m.at(4, seq, func(c *blobschema.Commit) {
				c.Pages = slices.DeleteFunc(c.Pages, func(p blobschema.Page) bool { return strings.HasSuffix(p.URL, "early") })
				c.Manifest.Runs = slices.DeleteFunc(c.Manifest.Runs, func(r blobschema.RunRef) bool { return strings.Contains(r.Object, "p00004/c0000000001") })
				if seq == 1 {
					c.State = nil
				}
			})
		}
		m.at(4, 3, func(c *blobschema.Commit) {
			c.State.Settled = slices.DeleteFunc(c.State.Settled, func(s blobschema.Settled) bool { return s.State == blobschema.Refused })
		})
	}},
	{"summary of a hand-over", moved, "I7", "its summary says", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].State[0].Known++ })
	}},
	{"no summary in a hand-over", moved, "I7", "no summary", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].State = nil })
	}},
	{"summary of a slot not in the hand-over", moved, "I3", "has a summary of slot", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Given[0].State[0].Slot++ })
	}},
	{"summary of a slot that was given", moved, "I3", "it has a summary of slot", func(m *maker) {
		m.manifest(1, func(man *blobschema.Manifest) { man.Slots = man.Given[0].State })
	}},
	{"summary of a slot not yet taken", moved, "I7", "is still to come", func(m *maker) {
		m.manifest(0, func(man *blobschema.Manifest) {
			s := &man.Slots[len(man.Slots)-1]
			s.Known, s.Unexamined = 1, 0
		})
	}},
	{"page of a slot that was given", moved, "I3", "partition 4's", func(m *maker) {
		m.last(0, func(c *blobschema.Commit) {
			c.Pages = append(c.Pages, blobschema.Page{URL: "http://" + m.host(0, 0) + "/x", Outcome: blobschema.OutcomeDNS})
		})
	}},
	{"page in two partitions", moved, "I8", "another page record", func(m *maker) {
		m.at(0, 1, func(c *blobschema.Commit) {
			c.Pages = append(c.Pages, blobschema.Page{URL: "http://" + m.host(0, 0) + "/2", Outcome: blobschema.OutcomeDNS})
		})
	}},
	{"page lost with the slot", moved, "I7", "has no page record", func(m *maker) {
		m.at(0, 1, func(c *blobschema.Commit) { c.Pages = c.Pages[:1] })
	}},
	{"record in the previous partition", moved, "I7", "is not the commit with its record", func(m *maker) {
		m.at(4, 3, func(c *blobschema.Commit) { c.State.Settled[0].Record.Partition = 0 })
	}},
	{"requested too soon after the move", moved, "I9", "after the request before", func(m *maker) {
		at := m.own(1).Pages[0].Time
		m.at(4, 3, func(c *blobschema.Commit) { c.Pages[0].Time = at.Add(time.Millisecond) })
	}},
	{"original in no partition", moved, "I6", "a response that has no page record", func(m *maker) {
		m.at(4, 3, func(c *blobschema.Commit) { c.Pages[1].Original.Offset++ })
	}},
	{"stale mail not forwarded", moved, "I7", "was mailed to", func(m *maker) {
		for _, seq := range []uint64{3, 4} {
			m.at(0, seq, func(c *blobschema.Commit) {
				c.Outbox, c.Manifest.Unsent = nil, nil
				delete(c.Manifest.Sent, 4)
			})
		}
	}},
	{"mail to a partition that never had the slot", moved, "I3", "was mailed to partition", func(m *maker) {
		m.lastMail(2, func(mail *blobschema.Mail) { mail.URLs[0].URL = "http://" + m.host(3, 0) + "/" })
	}},
	{"mail of a later epoch", moved, "I3", "is of epoch 9", func(m *maker) {
		m.lastMail(2, func(mail *blobschema.Mail) { mail.Epoch = 9 })
	}},
	{"mail by a map too old", moved, "I3", "was mailed to partition", func(m *maker) {
		m.at(1, 1, func(c *blobschema.Commit) {
			mail, err := blobschema.DecodeMail(c.Outbox[0].Body)
			if err != nil {
				m.Fatal(err)
			}
			mail.Epoch = 1
			if c.Outbox[0].Body, err = blobschema.EncodeMail(mail); err != nil {
				m.Fatal(err)
			}
		})
	}},
	{"request by another map", moved, "I3", "was requested from partition 4", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Outbox[0].Epoch = 1 })
	}},
	{"request by a later map", moved, "I3", "by a map of epoch 9", func(m *maker) {
		m.requests(func(r *blobschema.Requests) { r.Outbox[0].Epoch = 9 })
	}},
	{"run of a partition that gave nothing", moved, "I4", "not a run of it", func(m *maker) {
		runs := m.hand.commit(m.head(0).Commit).Manifest.Runs
		m.manifest(2, func(man *blobschema.Manifest) { man.Runs = append(man.Runs, runs...) })
	}},

	{"move forgotten", moved, "I3", "is not on the move, and its home", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving = r.Moving[:1] })
		m.record(func(r *blobschema.MapRecord) { r.Moving[0].Slots = r.Moving[0].Slots[:0] })
	}},
	{"move of another epoch", moved, "I3", "and handed from", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving[0].Epoch = 4 })
	}},
	{"move of a later epoch", moved, "I3", "by epoch 5", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving[0].Epoch = 5 })
	}},
	{"move to the wrong partition", moved, "I3", "and by the map", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving[0].To = 3 })
	}},
	{"move from the wrong partition", moved, "I3", "holds it since epoch", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving[1].From = 1 })
	}},
	{"move twice", moved, "I3", "on the move twice", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving = append(r.Moving, r.Moving[0]) })
	}},
	{"move beyond all slots", moved, "I3", "is on the move, of 64", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Moving[0].Slots = append(r.Moving[0].Slots, 64) })
	}},
	{"map missing", moved, "I6", "does not exist", func(m *maker) { delete(m.objects, m.moves.Object) }},
	{"map damaged", moved, "I6", "map", func(m *maker) { m.flip(m.moves.Object, 5) }},
	{"previous map missing", moved, "I6", "does not exist", func(m *maker) { delete(m.objects, m.moves.Previous[0]) }},
	{"map of another epoch", moved, "I3", "that of its map", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Object = r.Previous[0] })
	}},
	{"target missing", moved, "I6", "does not exist", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Target = crawlID + "/maps/e00000009-0" })
	}},
	{"map record garbage", moved, "I6", "cannot be decoded", func(m *maker) { m.records[naming.MapKey(crawlID)] = "{" }},
	{"map record without an epoch", moved, "I6", "its epoch is 0", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Epoch = 0 })
	}},
	{"partition beyond those of the map", moved, "I3", "says that there are", func(m *maker) {
		m.record(func(r *blobschema.MapRecord) { r.Partitions = 4 })
	}},
	{"map record lost", moved, "I3", "the map is of epoch 1", func(m *maker) { delete(m.records, naming.MapKey(crawlID)) }},
	{"head owes", moved, "I3", "slots that it owes: 0", func(m *maker) { m.headOf(2, func(h *blobschema.Head) { h.Owes = 0 }) }},
	{"head gives", moved, "I6", "epochs of hand-overs", func(m *maker) { m.headOf(1, func(h *blobschema.Head) { h.Gives[0]++ }) }},
	{"head awaits", moved, "I3", "slots that it awaits (0: none): 0", func(m *maker) { m.headOf(0, func(h *blobschema.Head) { h.Awaits = 0 }) }},
}

// slotBut returns a slot that a partition owned at first, but not the slot of its first host.
func (m *maker) slotBut(p partition.ID) partition.Slot { return m.wrong(p, m.host(p, 0)) }

// TestTakenBack checks a slot that returned to its first owner, which still has runs of it.
func TestTakenBack(t *testing.T) {
	m := moved(t)
	a := "http://" + m.host(0, 0) + "/"
	m.move(4, 0, m.queued(a, 0).Slot)
	m.apply(4, 0, 1) // the stale mail
	m.commit(4, blobschema.Commit{State: m.pending(m.queued(a+"stale", 0))})
	m.give(4)
	m.commit(4, blobschema.Commit{})
	m.take(0, 4)
	m.take(0, 1)
	m.commit(0, blobschema.Commit{})
	m.confirm(0)
	m.parts[4].man.Given = nil
	m.commit(4, blobschema.Commit{})
	m.parts[1].man.Given = nil
	rep := check(t, m.memory, fsck.Options{})
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Epoch != 5 || rep.URLs != 11 {
		t.Errorf("%+v", rep)
	}
}
