package frontier

import (
	"net/netip"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds on robots.txt (RFC 9309).
const (
	robotsLifetime = 24 * time.Hour // section 2.4
	robotsHops     = 5              // section 2.3.1.2
)

// robotsTask asks for the robots.txt of a lane; url is one that it is about.
func (f *Frontier) robotsTask(l *lane, url weburl.URL, now time.Time) (Task, bool) {
	u := l.site.unit
	target, addr := l.next, netip.Addr{}
	if target.IsZero() {
		var err error
		if target, err = url.Resolve("/robots.txt"); err != nil { // cannot be: url is canonical
			l.setRules(polite.DenyAll("robots.txt has no URL"), now.Add(robotsLifetime))
			return Task{}, false
		}
	}
	if string(target.Host()) == l.site.name { // a redirect may lead to another address
		addr = u.addr
	}
	u.pace.Start(now, f.delay(l))
	f.touchUnit(u)
	return Task{
		Request: page.Request{URL: target, Host: u.key, Site: l.site.name, Addr: addr, Robots: true, Attempt: l.attempts},
		lane:    l,
	}, true
}

func (f *Frontier) robotsDone(now time.Time, t Task, o *page.Outcome) Verdict {
	l := t.lane
	u := l.site.unit
	out, status := o.Page.Outcome, int(o.Page.Status)
	if out == blobschema.OutcomeAborted {
		return Again
	}
	f.touchSite(l.site)
	if out == blobschema.OutcomeRedirect && l.hops < robotsHops {
		if next, err := weburl.Parse(o.Page.Redirect); err == nil {
			l.next, l.hops = next, l.hops+1
			return Final
		}
	}
	var rules *polite.Robots
	switch {
	case out.Answered():
		rules = polite.ForStatus(status, o.Body, f.cfg.Token)
	default:
		rules = polite.DenyAll(strings.TrimSuffix("robots.txt: "+out.String()+": "+o.Page.Detail, ": "))
	}
	if rules.Unreachable() && o.Temporary {
		l.attempts++
		if again, after := f.cfg.Retry.Next(out, o.Page.Status, l.attempts); again {
			u.delist(l)
			l.retry = now.Add(after) // until then the unit's other lanes have their turns
			u.enlist(l, now)
			return Again
		}
	}
	u.delist(l)
	l.setRules(rules, now.Add(robotsLifetime))
	u.enlist(l, now)
	if rules.Unreachable() {
		f.refuseAll(l, blobschema.OutcomeRobotsGone, rules.Reason())
	}
	if _, slower := rules.CrawlDelay(); !slower && !o.Started.IsZero() && !l.site.further() {
		// Once a day a host is asked for two things at once: its rules, and a page. A host that
		// asks for a pace has it from its robots.txt on, and so has a unit of many sites: two
		// things at once for each of them would be twice its pace for as long as there are more.
		u.pace.Next = o.Started
		u.free = true
	}
	return Final
}
