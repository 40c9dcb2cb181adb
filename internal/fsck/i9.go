package fsck

import (
	"cmp"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// i9 can only find politeness keys that were requested faster than their pace, from the times of answers:
// requests without an answer leave no record. A politeness key is in one partition until slots move.
func i9(v *judge, fact any) {
	switch f := fact.(type) {
	case *page:
		v.observe(f, cmp.Or(v.opt.Delay, f.in.m.Delay))
	case end:
		v.pace()
	}
}

// keyAnswer is an answer of a politeness key.
type keyAnswer struct {
	key  uint64 // hash of its name; in a crawl by IP of a host's, until its address is known
	url  uint64 // of a robots.txt; else 0
	time int64  // microseconds
	// delay is the pace that was kept when the answer was committed.
	delay time.Duration
}

// observe notes an answer. Refusals are left out: not every one is of a request.
func (v *judge) observe(pg *page, delay time.Duration) {
	if pg.err != nil || !pg.Outcome.Answered() || delay <= 0 {
		return
	}
	a := keyAnswer{key: v.hash.Fingerprint(pg.key), time: pg.Time.UnixMicro(), delay: delay}
	if pg.Robots {
		a.url = pg.fp
		if pg.Outcome == blobschema.OutcomeRedirect {
			v.hops[v.hash.Fingerprint(pg.Redirect)] = true
		}
	}
	v.answers = append(v.answers, a)
}

// pace checks the times between answers of one politeness key. The target of a redirect of robots.txt
// counts for the host that redirects, and is left out; the first page may be requested
// together with the robots.txt. In a crawl by IP the names of an address are one politeness key if
// mail, pending URLs or the WARC records that were read tell their address.
func (v *judge) pace() {
	const tolerance = 5 * time.Millisecond
	for i := range v.answers {
		if addr, ok := v.pins[v.answers[i].key]; ok {
			v.answers[i].key = v.hash.Fingerprint(blobschema.AddressKey(addr))
		}
	}
	slices.SortFunc(v.answers, func(a, b keyAnswer) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.time, b.time))
	})
	var last keyAnswer
	for _, a := range v.answers {
		if a.url != 0 && v.hops[a.url] {
			continue
		}
		v.Checked++
		gap := time.Duration(a.time-last.time)*time.Microsecond + 2*v.opt.Skew
		before := a.url != 0 && gap < 4*v.opt.Skew // the robots.txt may have come first
		if last.time != 0 && last.url == 0 && a.key == last.key && !before && gap < min(a.delay, last.delay)-tolerance {
			at := time.UnixMicro(a.time).UTC().Format(time.RFC3339Nano)
			v.violate(v.id, "the politeness key with hash %016x was asked at %s, %v after the request before", a.key, at, gap)
		}
		last = a
	}
}
