package view

import (
	"context"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Unknown is the state of a URL that no partition knows.
const Unknown = "unknown"

// Location is the location of a host.
type Location struct {
	Host      string         `json:"host"`
	Key       string         `json:"politeness_key"` // politeness key: the host, its registrable domain, or its address in brackets
	Slot      partition.Slot `json:"slot"`           // of the politeness key
	Partition partition.ID   `json:"partition"`
	Move      *Move          `json:"move,omitempty"` // of the slot, if it is on the move
}

// URLReport is the state of a URL with its reasons.
type URLReport struct {
	URL string `json:"url"`
	Location
	State string   `json:"state"` // "fetched", "refused", "pending", or Unknown; of a robots.txt its outcome
	Why   []string `json:"why"`   // in words
	// From the queue if the URL is pending, else from its page record.
	Depth      uint16 `json:"depth"`
	Attempts   uint8  `json:"attempts"`
	Generation uint32 `json:"generation,omitempty"`
	Topic      string `json:"topic,omitempty"`     // name; "" for no topic
	Urgent     bool   `json:"urgent,omitempty"`    // pending, and requested
	Sitemap    bool   `json:"sitemap,omitempty"`   // pending, to be read as a sitemap
	Requisite  bool   `json:"requisite,omitempty"` // found only as a requisite of pages
	// Next is the earliest time of the request of a pending URL; zero for at once.
	Next    time.Time         `json:"next,omitzero"`
	Ahead   int               `json:"ahead,omitempty"`   // pending URLs of the politeness key that come first
	Page    *blobschema.Page  `json:"page,omitempty"`    // the latest record
	Earlier []blobschema.Page `json:"earlier,omitempty"` // the others, the latest first
	Robots  RobotsReport      `json:"robots"`
	Linked  LinkedFrom        `json:"linked_from"`

	topic uint8 // its number
}

// RobotsReport is the content of a robots.txt for a host, and for a URL if one is given.
type RobotsReport struct {
	Read     bool      `json:"read"`              // rules are known
	Allowed  bool      `json:"allowed,omitempty"` // the URL
	Line     int       `json:"line,omitempty"`    // number of the line that decides; 0 if no line does
	Rule     string    `json:"rule,omitempty"`    // text of that line, or why there are no rules
	Delay    string    `json:"crawl_delay,omitempty"`
	Until    time.Time `json:"until,omitzero"` // the rules are valid until then
	Retry    time.Time `json:"retry,omitzero"` // earliest next request after a failure
	Failures uint8     `json:"failures,omitempty"`
}

func robotsReport(r *schedule.RobotsInfo) RobotsReport {
	out := RobotsReport{Read: r.Rules != nil, Retry: r.Retry, Failures: r.Attempts}
	if r.Rules == nil {
		out.Rule = "robots.txt has not been read yet"
		return out
	}
	out.Until, out.Rule = r.Until, r.Rules.Reason()
	if d, ok := r.Rules.CrawlDelay(); ok {
		out.Delay = d.String()
	}
	return out
}

// linkExamples is how many links to a URL a report shows.
const linkExamples = 5

// ExplainURL reports on a URL. It reads all commits for the links to it.
func (v *View) ExplainURL(ctx context.Context, u weburl.URL) (*URLReport, error) {
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	places, err := v.slotStates(ctx, u.Host())
	if err != nil {
		return nil, err
	}
	at := places[len(places)-1]
	r := &URLReport{URL: u.String(), Location: at.Location, State: Unknown}
	rb := at.robots(u)
	r.Robots = robotsReport(rb)
	if rb.Rules != nil {
		allowed, rule := rb.Rules.Allowed(u.RequestURI())
		r.Robots.Allowed, r.Robots.Line = allowed, rule.Line
		if rule.Text != "" {
			r.Robots.Rule = rule.Text
		}
	}
	history, err := v.History(ctx, u)
	if err != nil {
		return nil, err
	}
	if len(history) > 0 {
		r.Page, r.Earlier = &history[0], history[1:]
		r.Depth, r.Attempts, r.Generation, r.topic, r.Requisite = r.Page.Depth, r.Page.Attempts, r.Page.Generation, r.Page.Topic, r.Page.Requisite
	}
	if r.Linked, err = v.LinkedFrom(ctx, u, linkExamples); err != nil {
		return nil, err
	}
	known := r.find(u, v.hash.Fingerprint(r.URL), places)
	r.Topic = TopicName(&c.Settings, r.topic)
	if !known {
		if r.Page != nil && r.Page.Robots {
			r.State = r.Page.Outcome.String()
			r.because("requested by the crawler itself, for the rules of a host")
			return r, nil
		}
		if r.Page != nil && r.Page.Outcome == blobschema.OutcomeScope {
			r.because("it was requested on purpose at %s, and refused", r.Page.Time.UTC().Format(time.DateTime))
		}
		if err := v.whyUnknown(ctx, &c, at, u, r); err != nil {
			return nil, err
		}
	}
	return r, v.requested(ctx, r)
}

// find searches the state of the places for a URL, the last place first. It fills in the report,
// and reports whether a place has the URL.
func (r *URLReport) find(u weburl.URL, fp uint64, places []*slotState) bool {
	for i := len(places) - 1; i >= 0; i-- {
		p := places[i]
		for _, s := range p.run.Settled {
			if s.Fingerprint != fp || s.Slot != p.Slot {
				continue
			}
			r.State, r.Generation = s.State.String(), s.Generation
			if s.State == blobschema.Forwarded {
				r.State = blobschema.Pending.String()
				r.because("the slot of its name has forwarded it to the slot of its address, which has not taken it yet")
				return true
			}
			r.whySettled()
			return true
		}
		for j := range p.run.Queued {
			if p.run.Queued[j].URL == r.URL {
				r.pending(u, p, &p.run.Queued[j])
				return true
			}
		}
	}
	return false
}

// whySettled adds how a URL was settled.
func (r *URLReport) whySettled() {
	pg := r.Page
	if pg == nil {
		r.because("it has no page record: that is damage, see 'orbweaver fsck'")
		return
	}
	why := pg.Outcome.String()
	switch pg.Outcome {
	case blobschema.OutcomeRobots:
		why = "robots.txt forbids it"
	case blobschema.OutcomeRobotsGone:
		why = "robots.txt could not be read, so nothing of the host may be requested (RFC 9309 section 2.3.1.4)"
	case blobschema.OutcomeUnchanged:
		why = "answered with status 304: it has not changed since the previous request"
	case blobschema.OutcomeRedirect:
		why = fmt.Sprintf("answered with status %d: it redirects to %s", pg.Status, pg.Redirect)
	default:
		if pg.Outcome.Answered() {
			why = fmt.Sprintf("answered with status %d", pg.Status)
		}
	}
	if pg.Detail != "" {
		why += ": " + pg.Detail
	}
	if pg.Attempts > 1 {
		why += fmt.Sprintf(", after %d attempts", pg.Attempts)
	}
	r.because("%s", why)
	if pg.Generation > 0 {
		r.because("it was requested again: generation %d", pg.Generation)
	}
	if o := pg.Original; o != nil {
		of := "the payload of"
		if o.URL != pg.URL {
			of += " " + o.URL + ","
		}
		r.because("its payload is not stored again: it is %s %s", of, o.Time.UTC().Format(time.DateTime))
	}
}

// pending fills in what the queue says of a pending URL, and why it waits.
func (r *URLReport) pending(u weburl.URL, p *slotState, q *blobschema.Queued) {
	r.State, r.Depth, r.Attempts, r.Generation, r.topic = blobschema.Pending.String(), q.Depth, q.Attempts, q.Generation, q.Topic
	r.Urgent, r.Sitemap, r.Requisite = q.Rank == 0, q.Flags&blobschema.FlagSitemap != 0, q.Flags.Requisite()
	later := func(t time.Time, why string) {
		if t.After(r.Next) {
			r.Next = t
		}
		if t.After(time.Now()) {
			r.because("%s", why)
		}
	}
	for i := range p.run.Queued {
		if o := &p.run.Queued[i]; o.Key == q.Key && o.Rank < q.Rank {
			r.Ahead++
		}
	}
	if r.Urgent {
		r.because("it is requested on purpose, before all other URLs")
	}
	if r.Sitemap {
		r.because("it is a sitemap")
	}
	rb, key := p.robots(u), "host"
	if p.Key != r.Host {
		key = "politeness key " + p.Key
	}
	switch {
	case rb.Rules == nil:
		r.because("the host's robots.txt is requested first")
	case !r.Robots.Allowed:
		r.because("robots.txt forbids it: it will be refused when its turn comes")
	}
	if r.Ahead > 0 {
		r.because("%d URLs of its %s come first", r.Ahead, key)
	}
	later(p.info.Pace.Next, fmt.Sprintf("its %s is requested every %s", key, p.info.Pace.Delay))
	later(p.info.Pace.BackoffUntil, fmt.Sprintf("its %s failed, or asked for a pause", key))
	later(p.info.Hold, "its name could not be resolved; that is tried again first")
	later(rb.Retry, "the host's robots.txt could not be read; that is tried again first")
	if q.NotBefore > 0 {
		why := fmt.Sprintf("attempt %d failed", q.Attempts)
		if q.Attempts == 0 {
			why = "it was fetched before, and waits for a revisit"
		}
		later(time.UnixMilli(q.NotBefore).UTC(), why)
	}
	if len(r.Why) == 0 {
		r.because("it is the host's next")
	}
}
