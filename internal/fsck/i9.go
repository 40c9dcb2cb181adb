package fsck

import (
	"cmp"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// asked is an answer of a unit, for I9.
type asked struct {
	unit uint64 // hash of its name; of a host's, in a crawl by IP, until its address is known
	url  uint64 // 0 but for a robots.txt
	time int64  // microseconds
	// delay is the pace that was kept when the answer was committed.
	delay time.Duration
}

// observe takes note of an answer. Refusals are left out: not every one is of a
// request, and requests that brought nothing are in no record anyway.
func (c *checker) observe(pg *blobschema.Page, host weburl.Host, delay time.Duration) {
	if !pg.Outcome.Answered() || delay <= 0 {
		return
	}
	unit, _ := c.unit(host)
	a := asked{unit: c.hash.Fingerprint(unit), time: pg.Time.UnixMicro(), delay: delay}
	if pg.Robots {
		a.url = c.hash.Fingerprint(pg.URL)
		if pg.Outcome == blobschema.OutcomeRedirect {
			c.hops[c.hash.Fingerprint(pg.Redirect)] = true
		}
	}
	c.asked = append(c.asked, a)
}

// checkPace checks the times between answers of one unit. What a robots.txt
// redirects to counts for the host that redirects, and is left out; the first page
// may be asked for together with the robots.txt. In a crawl by IP the names of an address
// are one unit as far as mail, pending URLs and the WARC records that were read tell
// their address; others are taken one by one.
func (c *checker) checkPace() {
	const tolerance = 5 * time.Millisecond
	if c.byIP() {
		for i := range c.asked {
			if addr, ok := c.pins[c.asked[i].unit]; ok {
				c.asked[i].unit = c.hash.Fingerprint(addressUnit(addr))
			}
		}
	}
	slices.SortFunc(c.asked, func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.time, b.time))
	})
	var last asked
	for _, a := range c.asked {
		if a.url != 0 && c.hops[a.url] {
			continue
		}
		c.checked["I9"]++
		gap := time.Duration(a.time-last.time)*time.Microsecond + 2*c.opt.Skew
		before := a.url != 0 && gap < 4*c.opt.Skew // it may have been the robots.txt that came first
		if last.time != 0 && last.url == 0 && a.unit == last.unit && !before && gap < min(a.delay, last.delay)-tolerance {
			c.violate("I9", c.id, "the unit with hash %016x was asked at %s, %v after the request before", a.unit, time.UnixMicro(a.time).UTC().Format(time.RFC3339Nano), gap)
		}
		last = a
	}
}
