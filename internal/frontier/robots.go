package frontier

import (
	"net/netip"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds on robots.txt (RFC 9309).
const (
	robotsLifetime = 24 * time.Hour // section 2.4
	robotsHops     = 5              // section 2.3.1.2
)

// robotsTask asks for the robots.txt of a lane's door; url is one that it is about.
func (f *Frontier) robotsTask(l *lane, url weburl.URL, now time.Time) (Task, bool) {
	d := l.door
	u := d.site.unit
	target, addr := d.next, netip.Addr{}
	if target.IsZero() {
		var err error
		if target, err = url.Resolve("/robots.txt"); err != nil { // cannot be: url is canonical
			d.setRules(polite.DenyAll(blobschema.OutcomeNone, "robots.txt has no URL"), now.Add(robotsLifetime))
			return Task{}, false
		}
	}
	if string(target.Host()) == d.site.name { // a redirect may lead to another address
		addr = u.addr
	}
	u.pace.Start(now, f.delay(d))
	f.touchUnit(u)
	d.relist(now, func() { d.asking = true })
	return Task{
		Request: actor.Request{URL: target, Host: u.key, Site: d.site.name, Addr: addr, Robots: true, Next: now, Attempt: d.attempts},
		Topic:   l.topic,
		lane:    l,
	}, true
}

func (f *Frontier) robotsDone(now time.Time, t Task, o *actor.Outcome) (v Verdict) {
	d := t.lane.door
	u := d.site.unit
	v = Final
	d.relist(now, func() {
		d.asking = false
		if o.Page.Outcome != blobschema.OutcomeAborted {
			v = f.readRobots(now, d, o)
		} else {
			v = Again
		}
	})
	rules := d.rules
	if v != Final || rules == nil || !d.until.After(now) {
		return v
	}
	if rules.Unreachable() {
		f.refuseAll(f.postpone(now, f.empty(d)), rules.Refusal(), rules.Reason())
	}
	if _, slower := rules.CrawlDelay(); !slower && !o.Started.IsZero() && !d.site.further() && u.allowed == 1 {
		// Once a day a host is asked for two things at once: its rules, and a page. A host that
		// asks for a pace has it from its robots.txt on, and so has a unit of many sites: two
		// things at once for each of them would be twice its pace for as long as there are more. One
		// that allows several requests at once may have been asked for something else meanwhile.
		u.pace.Next = o.Started
		u.free = true
	}
	return v
}

// readRobots takes what an answer says about a door.
func (f *Frontier) readRobots(now time.Time, d *door, o *actor.Outcome) Verdict {
	out, status := o.Page.Outcome, int(o.Page.Status)
	f.touchSite(d.site)
	if out == blobschema.OutcomeRedirect && d.hops < robotsHops {
		if next, err := weburl.Parse(o.Page.Redirect); err == nil {
			d.next, d.hops = next, d.hops+1
			return Final
		}
	}
	var rules *polite.Robots
	switch {
	case out.Answered():
		rules = polite.ForStatus(status, o.Body, f.cfg.Token)
	default:
		rules = denial(out, o.Page.Detail, d.hops > 0)
	}
	if rules.Unreachable() && o.Temporary {
		d.attempts++
		if again, after := f.cfg.Retry.Next(out, o.Page.Status, d.attempts); again {
			d.retry = now.Add(after) // until then the unit's other doors have their turns
			return Again
		}
	}
	d.setRules(rules, now.Add(robotsLifetime))
	return Final
}

// denial is what follows from a robots.txt that did not arrive. If nothing of the host can be
// reached, that is the cause, unless a redirect led elsewhere.
func denial(out blobschema.Outcome, detail string, redirected bool) *polite.Robots {
	if r := polite.DenyAll(out, strings.TrimSuffix("robots.txt: "+detail, ": ")); r.Refusal() == out && !redirected {
		return r
	}
	return polite.DenyAll(blobschema.OutcomeNone, strings.TrimSuffix("robots.txt: "+out.String()+": "+detail, ": "))
}
