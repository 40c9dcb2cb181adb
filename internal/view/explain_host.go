package view

import (
	"cmp"
	"context"
	"time"

	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// HostReport is the state of a host.
type HostReport struct {
	Location
	Known      bool             `json:"known"` // it was requested, or has pending URLs
	Why        []string         `json:"why,omitempty"`
	With       []string         `json:"with,omitempty"` // other hosts of the politeness key, at most 20
	URLs       int64            `json:"known_urls"`
	Capped     uint64           `json:"capped,omitempty"` // links left out for a cap
	Pending    int64            `json:"pending"`
	Outcomes   map[string]int64 `json:"outcomes,omitempty"` // of its URLs, without robots.txt
	Requests   uint64           `json:"requests"`           // of the politeness key, like all that follows except robots.txt
	Failures   uint64           `json:"failures"`
	InARow     uint8            `json:"failures_in_a_row,omitempty"`
	Delay      string           `json:"delay"`         // between the starts of two requests
	Next       time.Time        `json:"next,omitzero"` // earliest time of the next request
	Backoff    time.Time        `json:"backoff_until,omitzero"`
	Connect    string           `json:"connect,omitempty"`  // estimated time to connect
	Response   string           `json:"response,omitempty"` // estimated time of a request
	PerConn    float64          `json:"requests_per_connection,omitempty"`
	Left       string           `json:"left,omitempty"` // least time for the pending URLs of the politeness key, by its pace
	RobotsHTTP RobotsReport     `json:"robots_http"`
	RobotsTLS  RobotsReport     `json:"robots_https"`
}

// maxWith bounds the hosts that a report names.
const maxWith = 20

// ExplainHost reports on a host. It reads the page records of the partitions that held its slot.
func (v *View) ExplainHost(ctx context.Context, name weburl.Host) (*HostReport, error) {
	places, err := v.slotStates(ctx, name)
	if err != nil {
		return nil, err
	}
	at := places[len(places)-1]
	r := &HostReport{Location: at.Location}
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	i := &at.info
	r.With = at.sites(name)
	r.With = r.With[:min(len(r.With), maxWith)]
	r.Requests, r.Failures, r.InARow = i.Requests, i.Failures, i.Pace.Failures
	r.RobotsHTTP, r.RobotsTLS = robotsReport(&at.site.HTTP), robotsReport(&at.site.HTTPS)
	for _, p := range places {
		r.Pending += p.pendingOf(name)
	}
	r.URLs, r.Capped = int64(at.site.Settled)+r.Pending, at.site.Capped
	r.Known = r.URLs > 0 || at.Key == r.Host && i.Requests > 0
	rule, ok := crawl.HostRules(&c.Settings)[at.Key]
	if !ok {
		rule.Delay = c.Settings.Delay
	}
	delay := max(polite.EffectiveDelay(rule.Delay, at.site.HTTP.Rules), polite.EffectiveDelay(0, at.site.HTTPS.Rules))
	r.Delay, r.Next, r.Backoff = delay.String(), i.Pace.ReadyAt(), i.Pace.BackoffUntil
	if i.Pace.RespTime > 0 {
		r.Connect, r.Response, r.PerConn = i.Pace.ConnTime.String(), i.Pace.RespTime.String(), i.Pace.PerConnection
	}
	if at.pending > 0 {
		r.Left = (time.Duration(at.pending) * max(delay, i.Pace.RespTime/time.Duration(max(1, rule.Connections)))).Round(time.Second).String()
	}
	held, err := v.held(ctx, at.Slot)
	if err != nil {
		return nil, err
	}
	for pg, err := range v.PagesSince(ctx, held, nil) {
		if err != nil {
			return nil, err
		}
		if u, err := weburl.Parse(pg.URL); err == nil && u.Host() == name && !pg.Robots {
			if r.Outcomes == nil {
				r.Outcomes = map[string]int64{}
			}
			r.Outcomes[pg.Outcome.String()]++
			r.Known = true
		}
	}
	if !r.Known {
		u, err := weburl.Parse("https://" + r.Host + "/")
		if err != nil {
			return nil, err
		}
		out, err := v.outOfScope(ctx, &c, u)
		if err != nil {
			return nil, err
		}
		r.Why = append(r.Why, cmp.Or(out, "no page that was fetched links to it"))
	}
	return r, nil
}
