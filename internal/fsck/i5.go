package fsck

import (
	"fmt"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// i5 can only refute that mail is acknowledged after the commit with its effect: no more
// mail is applied than was sent, requests included, mail is numbered without a gap, and
// marks never shrink.
func i5(v *judge, fact any) {
	switch f := fact.(type) {
	case moment:
		v.numbersGrow()
	case *part:
		if f.man.Seq > 0 {
			h := &f.head
			v.must(h.Published <= h.Seq, naming.HeadKey(v.id, f.id), "it says the mail of commit %d is sent, and its last commit is %d", h.Published, h.Seq)
			v.wasSent(f)
		}
	case *batch:
		m := &f.mail
		v.must(f.seeds > 0 || int(m.To) < len(v.parts) && m.Number >= 1 && m.Number <= v.requests.Sent[m.To],
			f.by, "request %d to partition %d, to which %d are numbered", m.Number, m.To, v.requests.Sent[m.To])
	case *commit:
		v.marksGrow(f)
		v.mailNumbers(f)
	case *letter:
		m := &f.mail
		v.must(f.buffered || f.err != nil || f.fits, f.name, "mail %d to partition %d says it is mail %d of crawl %s from %d to %d",
			f.number, f.to, m.Number, m.Crawl, m.From, m.To)
	}
}

// wasSent checks that a partition has applied no mail that was not sent.
func (v *judge) wasSent(p *part) {
	where := p.head.Commit
	for _, from := range slices.Sorted(maps.Keys(p.man.Applied)) {
		m := p.man.Applied[from]
		v.must(slices.IsSorted(m.Above) && (len(m.Above) == 0 || m.Above[0] > m.Low+1), where,
			"its marks of mail from %s are %v", sender(from), m)
		last := max(m.Low, slices.Max(append(m.Above, 0)))
		if sent, known := v.sentBy(from, p.id, last); known {
			v.must(last <= sent, where, "mail %d from %s is applied, of which %d were sent", last, sender(from), sent)
		}
	}
}

// sentBy returns how much mail was sent to a partition. If that is less than was applied,
// the sender's head may have been read before it sent that: it is read again.
func (v *judge) sentBy(from, to partition.ID, applied uint64) (sent uint64, known bool) {
	switch {
	case from == partition.Intake:
		return uint64(len(v.crawl.SeedBatches)), true
	case from == partition.Requests:
		return v.numbered[to], true
	case int(from) >= len(v.parts):
		return 0, true
	case v.parts[from].damage != nil:
		return 0, false
	}
	if sent = v.parts[from].man.Sent[to]; applied > sent {
		if now, _ := record[blobschema.Head](v.checker, naming.HeadKey(v.id, from)); int(to) < len(now.Sent) {
			sent = max(sent, now.Sent[to])
		}
	}
	return sent, true
}

// numbersGrow checks the numbers of requests and of batches of seeds.
func (v *judge) numbersGrow() {
	key := naming.RequestsKey(v.id)
	for _, to := range slices.Sorted(maps.Keys(v.requests.Sent)) {
		n, now := v.requests.Sent[to], v.numbered[to]
		v.must(now >= n, key, "%d requests to partition %d were numbered, and are %d", n, to, now)
		v.must(int(to) < len(v.parts) || n == 0, key, "requests to partition %d, of %d", to, len(v.parts))
	}
	n := len(v.crawl.SeedBatches)
	v.must(v.crawl.Published <= n, naming.CrawlKey(v.id), "%d batches of seeds are published, of %d", v.crawl.Published, n)
	seen := map[[2]uint64]bool{}
	for _, m := range v.requests.Outbox {
		at := [2]uint64{uint64(m.To), m.Number}
		v.must(!seen[at], key, "request %d to partition %d is there twice", m.Number, m.To)
		seen[at] = true
	}
}

// marksGrow compares the marks of a commit with those of the commit before.
func (v *judge) marksGrow(f *commit) {
	prev, m := f.prev, f.m
	for _, from := range slices.Sorted(maps.Keys(prev.Applied)) {
		was, is := prev.Applied[from], m.Applied[from]
		forgotten := func(n uint64) bool { return n > is.Low && !slices.Contains(is.Above, n) }
		v.must(is.Low >= was.Low && !slices.ContainsFunc(was.Above, forgotten),
			f.name, "mail from %s was applied up to %v before, and is up to %v", sender(from), was, is)
	}
	for _, seq := range m.Unsent {
		v.must(seq >= 1 && seq <= m.Seq, f.name, "it names the outbox of commit %d", seq)
	}
}

// mailNumbers checks that the mail of a commit is numbered on from the commit before. A
// partition writes to itself what it requests again, so that a crash does not lose it.
func (v *judge) mailNumbers(f *commit) {
	next := f.m.Seq == f.prev.Seq+1
	sent := maps.Clone(f.prev.Sent)
	if sent == nil {
		sent = map[partition.ID]uint64{}
	}
	for _, out := range f.outbox {
		v.must(!next || out.Number == sent[out.To]+1, f.name, "mail %d to partition %d follows mail %d", out.Number, out.To, sent[out.To])
		sent[out.To] = out.Number
	}
	v.must(!next || maps.Equal(sent, f.m.Sent), f.name, "its mail ends with the numbers %v, and its manifest says %v", sent, f.m.Sent)
	v.must(len(f.outbox) == 0 || slices.Contains(f.m.Unsent, f.m.Seq), f.name, "it has mail that its manifest does not name as unsent")
}

func sender(p partition.ID) string {
	if p == partition.Intake {
		return "intake"
	}
	return fmt.Sprintf("partition %d", p)
}
