package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// figures are what pages show of a crawl as a whole.
type figures struct {
	*view.Status
	Totals blobschema.Totals // of the process that works on the folder, or else of the last commits
	Now    service.Snapshot  // of that process
	Points []point
}

// figures reads the figures, or returns cached ones.
func (s *Server) figures(ctx context.Context, v *view.View) (*figures, error) {
	st, err := read(s, &s.status, func() (view.Status, error) { return v.Status(ctx) })
	if err != nil {
		return nil, err
	}
	f := &figures{Status: &st, Totals: st.Totals}
	if st.Live != nil {
		// A process that has just started knows less than its last commits.
		if err := json.Unmarshal(st.Live.Snapshot, &f.Now); err == nil && f.Now.Totals.Known >= st.Totals.Known {
			f.Totals = f.Now.Totals
		}
	}
	f.Points, err = read(s, &s.points, func() ([]point, error) { return s.timeline.read(ctx, v, pointsDrawn) })
	if n := len(f.Points); n > 0 && st.Live != nil && f.Totals.Known > st.Totals.Known {
		f.Points = append(slices.Clone(f.Points), point{Time: time.Now(), Totals: f.Totals, Calls: f.Points[n-1].Calls})
	}
	return f, err
}

// queue counts the URLs that are known and not fetched.
func queue(t *blobschema.Totals) int64 { return t.Pending + t.Unexamined }

// failures are the outcomes that show that a host or the network has a problem. Others, such as client-error and robots,
// are usual.
var failures = []string{"server-error", "robots-gone", "dns", "connect", "tls", "timeout", "protocol", "cut", "suspect"}

// failed counts outcomes that are failures, and all outcomes.
func failed(t *blobschema.Totals) (bad, all int64) {
	for name, n := range t.Outcomes {
		if all += n; slices.Contains(failures, name) {
			bad += n
		}
	}
	return bad, all
}

// recently returns the point that the present rates refer to: the last one that is a minute old, or the first one.
func (f *figures) recently(now time.Time) *point {
	if len(f.Points) == 0 {
		return nil
	}
	p := &f.Points[0]
	for i := range f.Points {
		if now.Sub(f.Points[i].Time) >= time.Minute {
			p = &f.Points[i]
		}
	}
	return p
}

// overview is the data of the first page.
type overview struct {
	*figures
	Health
	Tiles    []tile
	Charts   []*chart
	Outcomes *table
	Settings []tile
	Orders   []string // orders that make sense now
}

// tile is a figure with its name.
type tile struct{ Name, Value, More, Class, Link string }

// Health says in a line whether a crawl is well.
type Health struct {
	Class    string // good, warn or bad
	Verdict  string
	Warnings []string
}

func (s *Server) overview(ctx context.Context, v *view.View, _ *http.Request) (string, string, any, error) {
	f, err := s.figures(ctx, v)
	if err != nil {
		return "", "", nil, err
	}
	now := time.Now()
	o := &overview{figures: f, Health: f.health(now)}
	o.Tiles = s.tiles(f, now)
	o.Charts = s.charts(f.Points)
	o.Outcomes = outcomes(&f.Totals)
	set := &f.Status.Crawl.Settings
	o.Settings = []tile{
		{Name: "crawl", Value: f.Status.Crawl.ID}, {Name: "in", Value: s.Name}, {Name: "created", Value: at(f.Status.Crawl.Created)},
		{Name: "scope", Value: string(set.Scope)}, {Name: "delay", Value: set.Delay.String()}, {Name: "user agent", Value: set.UserAgent},
	}
	if set.MaxPages > 0 {
		o.Settings = append(o.Settings, tile{Name: "page limit", Value: count(set.MaxPages)})
	}
	switch {
	case f.Desired.Stop || f.Desired.Pause:
		o.Orders = []string{"resume"}
	case f.State == view.Running || f.State == view.Idle:
		o.Orders = []string{"pause", "stop"}
	}
	return "overview", "Overview", o, nil
}

// health judges the figures.
func (f *figures) health(now time.Time) Health {
	h := Health{Class: "good"}
	warn := func(class, format string, args ...any) {
		h.Class = class
		h.Warnings = append(h.Warnings, fmt.Sprintf(format, args...))
	}
	switch f.State {
	case view.Finished:
		h.Verdict = "Finished: nothing is left to fetch."
	case view.Limited:
		h.Verdict = "Finished: the page limit is reached."
	case view.Idle:
		h.Verdict = "Idle: the next URL is due " + ago(f.Due) + "."
	case view.Paused, view.Stopped:
		h.Class, h.Verdict = "warn", strings.ToUpper(string(f.State[:1]))+string(f.State[1:])+": "+count(queue(&f.Totals))+" URLs are left, and nothing is requested."
	default:
		h.Verdict = "Running."
		f.judge(now, &h, warn)
	}
	if bad, all := failed(&f.Totals); (f.State == view.Finished || f.State == view.Limited) && all >= 20 && bad*5 > all {
		warn("warn", "%d%% of %s URLs failed: see the hosts and the links.", 100*bad/all, count(all))
	}
	if f.State == view.Running && (f.Desired.Pause || f.Desired.Stop) {
		h.Class, h.Verdict = "warn", map[bool]string{true: "Stopping.", false: "Paused: nothing new is requested."}[f.Desired.Stop]
	}
	if f.Desired.Why != "" {
		warn("bad", "The crawl was paused because %s.", f.Desired.Why)
	}
	if n := f.Totals.DeadMail + f.DeadRequests; n > 0 {
		warn("bad", "%s messages could not be read: see 'orbweaver dlq list'.", count(n))
	}
	return h
}

// judge compares the present rates with what they should be.
func (f *figures) judge(now time.Time, h *Health, warn func(class, format string, args ...any)) {
	p := f.recently(now)
	if p == nil {
		return
	}
	pages := f.Totals.Pages - p.Totals.Pages
	took := now.Sub(p.Time)
	h.Verdict = fmt.Sprintf("Running: %s pages a second, over %s.", figure(float64(pages)/max(took.Seconds(), 1)), span(took))
	bad0, all0 := failed(&p.Totals)
	bad, all := failed(&f.Totals)
	if bad, all = bad-bad0, all-all0; all >= 20 && bad*5 > all {
		warn("warn", "%d%% of the last %s requests failed: see the hosts.", 100*bad/all, count(all))
	}
	if took >= time.Minute && all == 0 && queue(&f.Totals) > 0 {
		warn("warn", "No URL was settled for %s: hosts make the crawl wait.", span(took))
	}
	if rest := f.Now.Rest; rest.Failed > 0 && rest.Failed == rest.Keys && f.Now.Active == 0 {
		warn("warn", "Every host that has URLs left is left alone after failures, the first %s.", ago(rest.Until))
	}
}

// tiles lists the figures at the top of the first page.
func (s *Server) tiles(f *figures, now time.Time) []tile {
	t := &f.Totals
	tiles := []tile{{Name: "pages", Value: count(t.Pages)}, {Name: "queue", Value: count(queue(t)), More: "of " + count(t.Known+t.Unexamined) + " URLs known"}}
	if n := len(f.Points); n > 1 {
		took := f.Points[n-1].Time.Sub(f.Points[0].Time)
		tiles[0].More = figure(float64(t.Pages)/max(took.Seconds(), 1)) + "/s on average"
		if p := f.recently(now); f.State == view.Running && p != nil {
			tiles[0].More = figure(float64(t.Pages-p.Totals.Pages)/max(now.Sub(p.Time).Seconds(), 1)) + "/s now"
		}
	}
	bad, all := failed(t)
	failures := tile{Name: "failed", Value: fmt.Sprintf("%.1f%%", 100*float64(bad)/float64(max(all, 1))), More: "of " + count(all) + " outcomes"}
	if bad*5 > all && all >= 20 {
		failures.Class = "warn"
	}
	hosts := tile{Name: "hosts", Value: count(t.Hosts), Link: "/hosts"}
	if f.Live != nil {
		hosts.More = fmt.Sprintf("%s wait, %s of them after failures", count(int64(f.Now.Rest.Keys)), count(int64(f.Now.Rest.Failed)))
		tiles = append(tiles, tile{Name: "requests", Value: count(int64(f.Now.Active)), More: fmt.Sprintf("under way in %d steps", f.Now.Steps)})
	} else if f.Leased > 0 {
		tiles = append(tiles, tile{Name: "at work", Value: count(int64(f.Leased)), More: fmt.Sprintf("of %d partitions", f.Owners), Link: "/partitions"})
	}
	tiles = append(tiles, failures, hosts, tile{Name: "received", Value: size(t.Bytes), More: size(t.Stored) + " stored"})
	moving := 0
	for i := range f.Map.Moving {
		moving += len(f.Map.Moving[i].Slots)
	}
	if moving > 0 {
		tiles = append(tiles, tile{Name: "moving", Value: count(int64(moving)), More: "slots between partitions", Link: "/partitions"})
	}
	if len(f.Index) > 0 {
		documents := int64(0)
		for i := range f.Index {
			documents += f.Index[i].Documents
		}
		tiles = append(tiles, tile{Name: "indexed", Value: count(documents), More: fmt.Sprintf("%d commits behind", f.Behind()), Link: "/search/"})
	}
	if prices, err := ledger.DefaultPrices(); s.Priced && err == nil {
		cost := prices.PerMillion(f.Calls, 1e6, 0).Total
		tiles = append(tiles, tile{Name: "cost", Value: dollars(cost), More: prices.Name + " prices of " + prices.Date})
	}
	return tiles
}

// charts draws the history.
func (s *Server) charts(points []point) (out []*chart) {
	if len(points) < 2 {
		return nil
	}
	var times []time.Time
	for i := range points {
		times = append(times, points[i].Time)
	}
	add := func(c *chart) {
		if c != nil {
			out = append(out, c)
		}
	}
	add(draw("Pages per second", times, perSecond, series{"pages", rates(points, func(p *point) float64 { return float64(p.Totals.Pages) })}))
	add(draw("Queue: known and not fetched", times, whole, series{"queue", levels(points, func(p *point) float64 { return float64(queue(&p.Totals)) })}))
	last := points[len(points)-1].Totals.Outcomes
	kinds := slices.DeleteFunc(slices.Collect(maps.Keys(last)), func(k string) bool {
		return k == "ok" || k == "redirect" || k == "unchanged" || last[k] == 0
	})
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(last[b], last[a]), cmp.Compare(a, b)) })
	var lines []series
	for _, k := range kinds[:min(len(kinds), 5)] {
		lines = append(lines, series{k, rates(points, func(p *point) float64 { return float64(p.Totals.Outcomes[k]) })})
	}
	if lines != nil {
		add(draw("Errors per second, by kind", times, perSecond, lines...))
	}
	add(draw("Bytes received per second", times, bytesPerSecond, series{"bytes", rates(points, func(p *point) float64 { return float64(p.Totals.Bytes) })}))
	if prices, err := ledger.DefaultPrices(); s.Priced && err == nil && points[len(points)-1].Calls != (blobschema.Calls{}) {
		add(draw("Cost of fetching", times, dollars, series{"cost", levels(points, func(p *point) float64 {
			return prices.PerMillion(p.Calls, 1e6, 0).Total
		})}))
	}
	return out
}

// outcomes lists outcomes with their share.
func outcomes(t *blobschema.Totals) *table {
	names := slices.Sorted(maps.Keys(t.Outcomes))
	_, all := failed(t)
	return newTable(nil, "outcomes", "Outcomes", "-urls", names, []column[string]{
		{Name: "outcome", Text: func(k string) string { return k }, Class: func(k string) string {
			if slices.Contains(failures, k) {
				return "bad"
			}
			return ""
		}},
		{Name: "URLs", Num: func(k string) float64 { return float64(t.Outcomes[k]) }},
		{Name: "share", Num: func(k string) float64 { return float64(t.Outcomes[k]) }, Text: func(k string) string {
			return fmt.Sprintf("%.1f%%", 100*float64(t.Outcomes[k])/float64(max(all, 1)))
		}},
	})
}

// hosts is the data of the page of hosts.
type hosts struct {
	Table *table
	*view.Estimates
	Filter string
}

// waitFor bounds the time that the page of hosts takes to find out why hosts wait.
const waitFor = 5 * time.Second

func (s *Server) hostsPage(ctx context.Context, v *view.View, r *http.Request) (string, string, any, error) {
	release, err := s.busy(ctx)
	if err != nil {
		return "", "", nil, err
	}
	defer release()
	e, err := read(s, &s.hosts, func() (*view.Estimates, error) { return v.Estimates(ctx) })
	if err != nil {
		return "", "", nil, err
	}
	q := r.URL.Query()
	p := &hosts{Estimates: e, Filter: q.Get("host")}
	var list []*view.HostEstimate
	for i := range e.Hosts {
		if h := &e.Hosts[i]; strings.Contains(h.Host, p.Filter) {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b *view.HostEstimate) int { return cmp.Compare(a.Host, b.Host) })
	type host = *view.HostEstimate
	p.Table = newTable(q, "hosts", "Hosts", "-pending", list, []column[host]{
		{Name: "host", Text: func(h host) string { return h.Host }, Link: func(h host) string { return explainLink(h.Host) }},
		{Name: "pending", Num: func(h host) float64 { return float64(h.Pending) }},
		{Name: "known", Num: func(h host) float64 { return float64(h.Known) }},
		{Name: "requests", Num: func(h host) float64 { return float64(h.Requests) }},
		{Name: "failures", Num: func(h host) float64 { return float64(h.Failures) }, Class: func(h host) string {
			if h.Failures*5 > h.Requests {
				return "bad"
			}
			return ""
		}},
		{Name: "score", Num: func(h host) float64 { return h.Score }, Text: func(h host) string { return fmt.Sprintf("%.3g", h.Score) }},
		{Name: "response", Num: func(h host) float64 { return h.Resp.Seconds() }, Text: func(h host) string { return millis(h.Resp) }},
		{Name: "pace", Fixed: true, Text: func(host) string { return "" }},
		{Name: "why it waits", Fixed: true, Text: func(host) string { return "" }},
	})
	list = list[p.Table.First-1:][:len(p.Table.Rows)]
	var keys []string
	for _, h := range list {
		if h.Pending > 0 {
			keys = append(keys, h.Host)
		}
	}
	short, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	waits, err := v.Waits(short, keys)
	if err != nil && short.Err() == nil {
		return "", "", nil, err
	}
	for i, h := range list {
		w, ok := waits[h.Host]
		pace, why := &p.Table.Rows[i][len(p.Table.Rows[i])-2], &p.Table.Rows[i][len(p.Table.Rows[i])-1]
		switch {
		case h.Pending == 0:
			why.Text = "nothing is pending"
		case !ok:
			why.Text = "see its page"
		default:
			if pace.Text = w.Delay.String(); w.Delay == 0 {
				pace.Text = ""
			}
			if why.Text = w.Why; !w.Until.IsZero() {
				why.Text += ", " + ago(w.Until)
			}
			if w.Bad {
				why.Class = "bad"
			}
		}
	}
	return "hosts", "Hosts", p, nil
}

func millis(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return count(max(1, d.Milliseconds())) + " ms"
}

func (s *Server) topics(ctx context.Context, v *view.View, r *http.Request) (string, string, any, error) {
	f, err := s.figures(ctx, v)
	if err != nil {
		return "", "", nil, err
	}
	type topic = view.TopicStatus
	t := newTable(r.URL.Query(), "topics", "Topics", "", f.Status.Topics(), []column[topic]{
		{Name: "topic", Text: func(t topic) string { return cmp.Or(t.Name, "none") }},
		{Name: "priority", Num: func(t topic) float64 { return float64(slices.Max(append(t.Priorities, -101))) }, Text: func(t topic) string {
			switch n := len(t.Priorities); {
			case n == 0:
				return ""
			case n == 1:
				return fmt.Sprint(t.Priorities[0])
			}
			return fmt.Sprintf("%d to %d", slices.Min(t.Priorities), slices.Max(t.Priorities))
		}},
		{Name: "turn", Num: func(t topic) float64 { return t.Slice.Seconds() }, Text: func(t topic) string {
			if t.Name == "" {
				return ""
			}
			return cmp.Or(t.Shrunk, t.Slice).String()
		}},
		{Name: "minimum", Num: func(t topic) float64 { return float64(t.Minimum) }, Text: func(t topic) string {
			if t.Minimum == 0 {
				return ""
			}
			return fmt.Sprintf("%s of %s in %s", count(t.Had), count(t.Minimum), t.Period)
		}},
		{Name: "pages", Num: func(t topic) float64 { return float64(t.Totals.Pages) }},
		{Name: "share", Num: func(t topic) float64 { return float64(t.Totals.Pages) }, Text: func(t topic) string {
			return fmt.Sprintf("%.1f%%", 100*float64(t.Totals.Pages)/float64(max(f.Status.Totals.Pages, 1)))
		}},
		{Name: "pending", Num: func(t topic) float64 { return float64(t.Totals.Pending) }},
		{Name: "received", Num: func(t topic) float64 { return float64(t.Totals.Bytes) }, Text: func(t topic) string { return size(t.Totals.Bytes) }},
	})
	return "topics", "Topics", t, nil
}

// explanation is the data of the page about a URL or a host.
type explanation struct {
	Asked     string
	URL       *view.URLReport
	Host      *view.HostReport
	History   *table
	Links     *table
	Outcomes  *table
	Stored    string // address of the stored page that is shown; "" if none is stored
	Requested bool
}

func (s *Server) explain(ctx context.Context, v *view.View, r *http.Request) (string, string, any, error) {
	q := r.URL.Query()
	e := &explanation{Asked: strings.TrimSpace(q.Get("url")), Requested: q.Get("requested") != ""}
	if e.Asked == "" {
		return "explain", "Explain", e, nil
	}
	release, err := s.busy(ctx)
	if err != nil {
		return "", "", nil, err
	}
	defer release()
	if !strings.Contains(e.Asked, "/") {
		h, err := weburl.ParseHost(e.Asked)
		if err != nil {
			return "", "", nil, badRequest("This is neither a URL nor a host: %s.", line(err.Error()))
		}
		if e.Host, err = v.ExplainHost(ctx, h); err == nil {
			e.Outcomes = outcomes(&blobschema.Totals{Outcomes: e.Host.Outcomes})
		}
		return "explain", e.Asked, e, err
	}
	u, err := parseURL(e.Asked)
	if err != nil {
		return "", "", nil, err
	}
	if e.URL, err = v.ExplainURL(ctx, u); err != nil {
		return "", "", nil, err
	}
	e.history(q)
	e.Links = newTable(nil, "from", "Pages that link to it", "", e.URL.Linked.Examples, linkColumns(explainLink))
	return "explain", u.String(), e, nil
}

// history lists the records of a URL, and chooses the stored page that is shown.
func (e *explanation) history(q url.Values) {
	var list []blobschema.Page
	if e.URL.Page != nil {
		list = append([]blobschema.Page{*e.URL.Page}, e.URL.Earlier...)
	}
	stored := func(p blobschema.Page) string {
		if p.WARC == "" {
			return ""
		}
		return "/stored?" + url.Values{"url": {e.URL.URL}, "generation": {fmt.Sprint(p.Generation)}}.Encode()
	}
	for _, p := range list {
		if want := q.Get("generation"); e.Stored == "" && (want == "" || want == fmt.Sprint(p.Generation)) {
			e.Stored = stored(p)
		}
	}
	type page = blobschema.Page
	e.History = newTable(q, "history", "History", "-requested", list, []column[page]{
		{Name: "requested", Num: func(p page) float64 { return float64(p.Time.UnixMicro()) }, Text: func(p page) string { return at(p.Time) }},
		{Name: "outcome", Text: func(p page) string {
			return strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Outcome, status(p.Status), line(p.Detail)))
		}},
		{Name: "type", Text: func(p page) string { return line(p.MIME) }},
		{Name: "bytes", Num: func(p page) float64 { return float64(p.BodyBytes) }},
		{Name: "change", Text: func(p page) string { return p.Change }},
		{Name: "stored", Fixed: true, Text: func(p page) string {
			if p.WARC == "" {
				return ""
			}
			return fmt.Sprintf("show generation %d", p.Generation)
		}, Link: func(p page) string {
			if p.WARC == "" {
				return ""
			}
			return with(q, map[string]string{"generation": fmt.Sprint(p.Generation), "requested": ""})
		}},
	})
}

// status writes a status; "" for none.
func status(n uint16) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
