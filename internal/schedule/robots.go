package schedule

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

// robotsTask returns the task that requests the robots.txt of a lane's origin. url is a URL of the origin.
func (s *Schedule) robotsTask(l *lane, url weburl.URL, now time.Time) (Task, bool) {
	d := l.origin
	k := d.site.key
	target, addr := d.Next, netip.Addr{}
	if target.IsZero() {
		var err error
		if target, err = url.Resolve("/robots.txt"); err != nil { // unreachable: url is canonical
			d.setRules(polite.DenyAll(blobschema.OutcomeNone, "robots.txt has no URL"), now.Add(robotsLifetime))
			return Task{}, false
		}
	}
	if string(target.Host()) == d.site.name { // a redirect may lead to another host
		addr = k.addr
	}
	k.pace.Start(now, d.delay())
	s.changes.key(k)
	d.relist(now, func() { d.asking = true })
	return Task{
		Request: actor.Request{URL: target, Key: k.name, Site: d.site.name, Addr: addr, Robots: true, Next: now, Attempt: d.Attempts},
		Topic:   l.topic,
		lane:    l,
	}, true
}

// robotsDone ends a request for a robots.txt.
func (s *Schedule) robotsDone(now time.Time, t *Task, o *actor.Outcome) (v Verdict) {
	d := t.lane.origin
	k := d.site.key
	v = Final
	d.relist(now, func() {
		d.asking = false
		if o.Page.Outcome != blobschema.OutcomeAborted {
			s.changes.site(d.site)
			v = d.read(now, o, &s.cfg)
		} else {
			v = Again
		}
	})
	rules := d.Rules
	if v != Final || rules == nil || !d.Until.After(now) {
		return v
	}
	if rules.Unreachable() {
		s.refuseAll(s.postpone(now, d.empty()), rules.Refusal(), rules.Reason())
	}
	if _, slower := rules.CrawlDelay(); !slower && !o.Started.IsZero() && !d.site.further() && k.allowed == 1 {
		// The request for the first page follows that for the robots.txt without a pause, once a day.
		// There are three exceptions. A host with a crawl delay keeps it from its robots.txt on. A further
		// site of a key keeps the pace, because a key of many sites would send such a pair for each. A key
		// that allows several requests at once may have got another one meanwhile.
		k.pace.Next = o.Started
		k.free = true
	}
	return v
}

// read takes the rules of an origin from an answer.
func (d *origin) read(now time.Time, o *actor.Outcome, cfg *Config) Verdict {
	out, status := o.Page.Outcome, int(o.Page.Status)
	if out == blobschema.OutcomeRedirect && d.hops < robotsHops {
		if next, err := weburl.Parse(o.Page.Redirect); err == nil {
			d.Next, d.hops = next, d.hops+1
			return Final
		}
	}
	var rules *polite.Robots
	switch {
	case out.Answered():
		rules = polite.ForStatus(status, o.Body, cfg.Token)
	default:
		rules = denial(out, o.Page.Detail, d.hops > 0)
	}
	if rules.Unreachable() && o.Temporary {
		d.Attempts++
		if again, after := cfg.Retry.Next(out, o.Page.Status, d.Attempts); again {
			d.Retry = now.Add(after) // until then the key's other origins have their turns
			return Again
		}
	}
	d.setRules(rules, now.Add(robotsLifetime))
	return Final
}

// denial returns the rules that follow from a robots.txt that did not arrive. If the host cannot be
// reached, its URLs are refused with that outcome, unless a redirect led elsewhere.
func denial(out blobschema.Outcome, detail string, redirected bool) *polite.Robots {
	if r := polite.DenyAll(out, strings.TrimSuffix("robots.txt: "+detail, ": ")); r.Refusal() == out && !redirected {
		return r
	}
	return polite.DenyAll(blobschema.OutcomeNone, strings.TrimSuffix("robots.txt: "+out.String()+": "+detail, ": "))
}

// resolved takes the outcome of resolving a name. If the name has no address, its URLs are refused.
// URLs that come later cause another attempt, after the back-off of the key. A resolution is not a
// request to the host, so it does not count for the pace.
func (s *Schedule) resolved(now time.Time, k *Key, o *actor.Outcome) Verdict {
	if o.Page.Outcome == blobschema.OutcomeAborted && !o.Addr.IsValid() {
		return Again
	}
	s.changes.key(k)
	if o.Addr.IsValid() {
		k.addr, k.resolves, k.hold = o.Addr.Unmap().WithZone(""), 0, time.Time{}
		return Final
	}
	k.failures++
	k.pace.Done(now, polite.End{Outcome: o.Page.Outcome, Status: o.Page.Status, RetryAfter: o.RetryAfter}, s.cfg.Retry.Backoff)
	if o.Temporary {
		k.resolves++
		if again, after := s.cfg.Retry.Next(o.Page.Outcome, o.Page.Status, k.resolves); again {
			k.hold = now.Add(after)
			return Again
		}
	}
	k.resolves, k.hold = 0, time.Time{}
	s.refuseAll(k.empty(), o.Page.Outcome, o.Page.Detail)
	return Final
}
