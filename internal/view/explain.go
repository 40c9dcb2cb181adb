package view

import (
	"context"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Unknown is the state of a URL that no partition has heard of.
const Unknown = "unknown"

// URLReport is all that is known of a URL, and why it is as it is.
type URLReport struct {
	URL       string         `json:"url"`
	Host      string         `json:"host"`
	Slot      partition.Slot `json:"slot"`
	Partition partition.ID   `json:"partition"`
	State     string         `json:"state"` // "fetched", "refused", "pending", or Unknown
	Why       []string       `json:"why"`   // in words
	// Of a pending URL, as it is queued; of a settled one, from its page record.
	Depth      uint16 `json:"depth"`
	Attempts   uint8  `json:"attempts"`
	Generation uint32 `json:"generation,omitempty"`
	// Next is when a pending URL may be asked for at the earliest; zero for at once.
	Next   time.Time        `json:"next,omitzero"`
	Ahead  int              `json:"ahead,omitempty"` // pending URLs of the host that come first
	Page   *blobschema.Page `json:"page,omitempty"`  // the latest record
	Robots RobotsReport     `json:"robots"`
}

// RobotsReport is what a robots.txt says, of a URL where there is one.
type RobotsReport struct {
	Read     bool      `json:"read"`              // rules are known
	Allowed  bool      `json:"allowed,omitempty"` // the URL
	Line     int       `json:"line,omitempty"`    // that decides; 0 if none does
	Rule     string    `json:"rule,omitempty"`    // its text, or why there are no rules
	Delay    string    `json:"crawl_delay,omitempty"`
	Until    time.Time `json:"until,omitzero"` // the rules are good until then
	Retry    time.Time `json:"retry,omitzero"` // after a failure, asked for again no earlier
	Failures uint8     `json:"failures,omitempty"`
}

// HostReport is all that is known of a host.
type HostReport struct {
	Host       string           `json:"host"`
	Slot       partition.Slot   `json:"slot"`
	Partition  partition.ID     `json:"partition"`
	Known      bool             `json:"known"` // it was asked, or URLs of it are pending
	Why        []string         `json:"why,omitempty"`
	Pending    int64            `json:"pending"`
	Outcomes   map[string]int64 `json:"outcomes,omitempty"` // of its URLs, robots.txt apart
	Requests   uint64           `json:"requests"`
	Failures   uint64           `json:"failures"`
	InARow     uint8            `json:"failures_in_a_row,omitempty"`
	Delay      string           `json:"delay"`         // between the starts of two requests
	Next       time.Time        `json:"next,omitzero"` // when it may be asked at the earliest
	Backoff    time.Time        `json:"backoff_until,omitzero"`
	Connect    string           `json:"connect,omitempty"`  // estimated time to connect
	Response   string           `json:"response,omitempty"` // estimated time of a request
	PerConn    float64          `json:"requests_per_connection,omitempty"`
	Left       string           `json:"left,omitempty"` // least time for what is pending, by its pace
	RobotsHTTP RobotsReport     `json:"robots_http"`
	RobotsTLS  RobotsReport     `json:"robots_https"`
}

func robotsReport(r frontier.RobotsInfo) RobotsReport {
	out := RobotsReport{Read: r.Rules != nil, Retry: r.Retry, Failures: r.Attempts}
	if r.Rules == nil {
		out.Rule = "robots.txt was not read yet"
		return out
	}
	out.Until, out.Rule = r.Until, r.Rules.Reason()
	if d, ok := r.Rules.CrawlDelay(); ok {
		out.Delay = d.String()
	}
	return out
}

// ExplainURL reports on a URL. Of one that is not known it reads the links of all
// commits, to tell why.
func (v *View) ExplainURL(ctx context.Context, u weburl.URL) (*URLReport, error) {
	slot := v.Slot(u.Host())
	r := &URLReport{URL: u.String(), Host: string(u.Host()), Slot: slot, Partition: v.pmap.Owner(slot), State: Unknown}
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	m, err := v.Manifest(ctx, r.Partition)
	if err != nil {
		return nil, err
	}
	run := &blobschema.Run{}
	if m != nil {
		if run, err = v.state(ctx, m, slot, slot); err != nil {
			return nil, err
		}
	}
	host, err := oneHost(run, r.Partition, r.Host)
	if err != nil {
		return nil, err
	}
	rb := host.Info.HTTP
	if u.Scheme() == "https" {
		rb = host.Info.HTTPS
	}
	r.Robots = robotsReport(rb)
	if rb.Rules != nil {
		allowed, rule := rb.Rules.Allowed(u.RequestURI())
		r.Robots.Allowed, r.Robots.Line = allowed, rule.Line
		if rule.Text != "" {
			r.Robots.Rule = rule.Text
		}
	}
	if pg, found, err := v.Page(ctx, u); err != nil {
		return nil, err
	} else if found {
		r.Page = &pg
		r.Depth, r.Attempts, r.Generation = pg.Depth, pg.Attempts, pg.Generation
	}
	fp := v.hash.Fingerprint(r.URL)
	for _, s := range run.Seen {
		if s.Fingerprint == fp && s.Slot == slot {
			r.State, r.Generation = s.State.String(), s.Generation
			r.whySettled()
			return r, nil
		}
	}
	for i := range run.Queued {
		if run.Queued[i].URL == r.URL {
			r.pending(run, &run.Queued[i], host, rb)
			return r, nil
		}
	}
	if r.Page != nil && r.Page.Robots {
		r.State = r.Page.Outcome.String()
		r.Why = append(r.Why, "asked for by the crawler itself, for the rules of a host")
		return r, nil
	}
	return r, v.whyUnknown(ctx, &c, m, u, r)
}

// oneHost finds a host in the joined state of its slot.
func oneHost(run *blobschema.Run, p partition.ID, name string) (Host, error) {
	hosts, err := hostsIn(run, p)
	if err != nil {
		return Host{}, err
	}
	if h := hosts[name]; h != nil {
		return *h, nil
	}
	return Host{Name: name, Partition: p}, nil
}

// whySettled says in words how a URL was settled.
func (r *URLReport) whySettled() {
	pg := r.Page
	if pg == nil {
		r.Why = append(r.Why, "there is no page record of it: that is damage, see fsck")
		return
	}
	why := pg.Outcome.String()
	switch pg.Outcome {
	case blobschema.OutcomeRobots:
		why = "robots.txt forbids it"
	case blobschema.OutcomeRobotsGone:
		why = "robots.txt could not be had, so nothing of the host may be asked for (RFC 9309 section 2.3.1.4)"
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
	r.Why = append(r.Why, why)
}

// pending fills in what there is to say of a pending URL.
func (r *URLReport) pending(run *blobschema.Run, q *blobschema.Queued, h Host, rb frontier.RobotsInfo) {
	r.State, r.Depth, r.Attempts, r.Generation = blobschema.Pending.String(), q.Depth, q.Attempts, q.Generation
	later := func(t time.Time, why string) {
		if t.After(r.Next) {
			r.Next = t
		}
		if t.After(time.Now()) {
			r.Why = append(r.Why, why)
		}
	}
	for i := range run.Queued {
		if o := &run.Queued[i]; o.Host == q.Host && o.Rank < q.Rank {
			r.Ahead++
		}
	}
	switch {
	case rb.Rules == nil:
		r.Why = append(r.Why, "the host's robots.txt is asked for first")
	case !r.Robots.Allowed:
		r.Why = append(r.Why, "robots.txt forbids it: it will be refused when its turn comes")
	}
	if r.Ahead > 0 {
		r.Why = append(r.Why, fmt.Sprintf("%d URLs of its host come first", r.Ahead))
	}
	later(h.Info.Pace.Next, fmt.Sprintf("its host is asked every %s", h.Info.Pace.Delay))
	later(h.Info.Pace.BackoffUntil, "its host failed, or asked to be left alone")
	later(rb.Retry, "the host's robots.txt could not be had, and is tried again first")
	if q.NotBefore > 0 {
		later(time.UnixMilli(q.NotBefore).UTC(), fmt.Sprintf("attempt %d failed", q.Attempts))
	}
	if len(r.Why) == 0 {
		r.Why = append(r.Why, "it is the host's next")
	}
}

// whyUnknown finds out why a URL is not known to its partition.
func (v *View) whyUnknown(ctx context.Context, c *blobschema.Crawl, m *blobschema.Manifest, u weburl.URL, r *URLReport) error {
	w, err := v.Wish(ctx)
	if err != nil {
		return err
	}
	out, err := v.outOfScope(ctx, c, &w, u)
	if err != nil {
		return err
	}
	if out != "" {
		r.Why = append(r.Why, out)
	}
	if n, err := v.seedOf(ctx, c, u); err != nil {
		return err
	} else if n > 0 {
		r.Why = append(r.Why, fmt.Sprintf("it is a seed, in mail %d that its partition has not applied yet", n))
		return nil
	}
	links, err := v.linksTo(ctx, u, m)
	if err != nil {
		return err
	}
	switch {
	case links.mailed:
		r.Why = append(r.Why, "it was found, and is on its way to its partition")
	case links.plain != "" && out == "" && c.Settings.MaxDepth >= 0:
		r.Why = append(r.Why, fmt.Sprintf("%s links to it, and its links are beyond --max-depth %d", links.plain, c.Settings.MaxDepth))
	case links.plain != "":
		r.Why = append(r.Why, fmt.Sprintf("%s links to it", links.plain))
	case links.nofollow != "":
		r.Why = append(r.Why, fmt.Sprintf("%s links to it with nofollow, and nobody else does", links.nofollow))
	default:
		r.Why = append(r.Why, "no page that was fetched links to it")
	}
	return nil
}

// seedOf returns the batch of seeds that u came in, 0 if in none.
func (v *View) seedOf(ctx context.Context, c *blobschema.Crawl, u weburl.URL) (batch uint64, err error) {
	err = v.eachSeed(ctx, c, func(n uint64, s weburl.URL) bool {
		if s == u {
			batch = n
		}
		return batch == 0
	})
	return batch, err
}

// linksTo is what the commits know of a URL that its partition does not.
type linksTo struct {
	mailed   bool
	plain    string // a page with a link to it
	nofollow string // a page with a link to it that is not to be followed
}

func (v *View) linksTo(ctx context.Context, u weburl.URL, m *blobschema.Manifest) (found linksTo, err error) {
	fp := v.hash.Fingerprint(u.String())
	for c, err := range v.Commits(ctx) {
		if err != nil {
			return found, err
		}
		links, err := c.Links()
		if err != nil {
			return found, fmt.Errorf("links of %s: %w", c.Name, err)
		}
		for i := range links {
			for _, t := range links[i].Targets {
				switch {
				case t.Fingerprint != fp:
				case t.Followed:
					found.mailed = true // else its partition would know it
					return found, nil
				case t.NoFollow && found.nofollow == "":
					found.nofollow = v.sourceOf(c, links[i].Source)
				case !t.NoFollow && found.plain == "":
					found.plain = v.sourceOf(c, links[i].Source)
				}
			}
		}
	}
	return found, nil
}

// sourceOf names the page of a commit with the given fingerprint.
func (v *View) sourceOf(c Commit, fp uint64) string {
	pages, err := c.Pages()
	if err == nil {
		for i := range pages {
			if v.hash.Fingerprint(pages[i].URL) == fp {
				return pages[i].URL
			}
		}
	}
	return fmt.Sprintf("page %016x", fp)
}

// ExplainHost reports on a host. It reads the page records of its partition.
func (v *View) ExplainHost(ctx context.Context, name weburl.Host) (*HostReport, error) {
	slot := v.Slot(name)
	r := &HostReport{Host: string(name), Slot: slot, Partition: v.pmap.Owner(slot)}
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	m, err := v.Manifest(ctx, r.Partition)
	if err != nil {
		return nil, err
	}
	run := &blobschema.Run{}
	if m != nil {
		if run, err = v.state(ctx, m, slot, slot); err != nil {
			return nil, err
		}
	}
	h, err := oneHost(run, r.Partition, r.Host)
	if err != nil {
		return nil, err
	}
	i := &h.Info
	r.Pending, r.Requests, r.Failures, r.InARow = h.Pending, i.Requests, i.Failures, i.Pace.Failures
	r.RobotsHTTP, r.RobotsTLS = robotsReport(i.HTTP), robotsReport(i.HTTPS)
	r.Known = h.Pending > 0 || i.Requests > 0
	delay := max(polite.EffectiveDelay(c.Settings.Delay, i.HTTP.Rules), polite.EffectiveDelay(0, i.HTTPS.Rules))
	r.Delay, r.Next, r.Backoff = delay.String(), i.Pace.ReadyAt(), i.Pace.BackoffUntil
	if i.Pace.RespTime > 0 {
		r.Connect, r.Response, r.PerConn = i.Pace.ConnTime.String(), i.Pace.RespTime.String(), i.Pace.PerConnection
	}
	if h.Pending > 0 {
		r.Left = (time.Duration(h.Pending) * max(delay, i.Pace.RespTime)).Round(time.Second).String()
	}
	for pg, err := range v.pages(ctx, []partition.ID{r.Partition}) {
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
		w, err := v.Wish(ctx)
		if err != nil {
			return nil, err
		}
		u, err := weburl.Parse("https://" + r.Host + "/")
		if err != nil {
			return nil, err
		}
		out, err := v.outOfScope(ctx, &c, &w, u)
		if err != nil {
			return nil, err
		}
		if out == "" {
			out = "no page that was fetched links to it"
		}
		r.Why = append(r.Why, out)
	}
	return r, nil
}
