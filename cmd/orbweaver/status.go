package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// reading is what the commands have in common that report on a target.
type reading struct {
	target
	json bool
}

// newCommand is [command] with the flags of the target and --json.
func (f *reading) newCommand(name string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := command(name, args, run)
	f.target.register(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON, for a program")
	return cmd
}

// report writes a report as JSON, or as print does.
func (f *reading) report(cmd *cobra.Command, r any, print func(*output)) error {
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	var out output
	print(&out)
	return out.to(cmd.OutOrStdout())
}

// parseURL parses an argument.
func parseURL(text string) (weburl.URL, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		err = usagef("cannot use URL %.200q: %w%s", text, err, crawlfile.Suggestion(text))
	}
	return u, err
}

func newStatus() *cobra.Command {
	var f reading
	return f.newCommand("status", noArguments, func(cmd *cobra.Command, _ []string) error {
		return f.read(cmd.Context(), func(v *view.View) error {
			s, err := v.Status(cmd.Context())
			if err != nil {
				return err
			}
			r, err := newStatusReport(f.where(v.ID()), &s)
			if err != nil {
				return err
			}
			return f.report(cmd, r, r.print)
		})
	})
}

// statusReport says how far a crawl is.
type statusReport struct {
	where
	State   view.State        `json:"state"`
	PID     int               `json:"pid,omitempty"`
	Running time.Time         `json:"running_since,omitzero"`
	Created time.Time         `json:"created,omitzero"`
	Totals  blobschema.Totals `json:"totals"`
	Active  int               `json:"active,omitempty"` // requests under way
	Steps   int               `json:"steps,omitempty"`  // running
	Unread  int64             `json:"mail_unread"`
	// DeadRequests are requests from outside, or URLs of them, that could not be read.
	DeadRequests int64               `json:"requests_dead,omitempty"`
	Seeds        int                 `json:"seed_batches"`
	Paused       bool                `json:"paused,omitempty"`
	Why          string              `json:"paused_because,omitempty"` // if the coordinator paused the crawl
	Stopping     bool                `json:"stopping,omitempty"`       // ordered to stop, and still running
	Moving       int                 `json:"slots_moving,omitempty"`   // between partitions
	Index        *indexReport        `json:"index,omitempty"`
	Ranks        *ranksReport        `json:"ranks,omitempty"`
	InCloud      *cloudReport        `json:"cloud,omitempty"`
	Settings     blobschema.Settings `json:"settings"`
}

// cloudReport describes the work of functions.
type cloudReport struct {
	Partitions int              `json:"partitions"`
	AtWork     int              `json:"partitions_at_work"` // whose lease a step holds
	Woken      int              `json:"partitions_woken"`   // by the coordinator, and not yet at work
	Due        time.Time        `json:"due,omitzero"`       // of the next URL
	Calls      blobschema.Calls `json:"calls"`
	Cost       float64          `json:"dollars"` // of the calls, at the price list's prices
	PerMillion ledger.Bill      `json:"cost_per_million_pages"`
	Prices     string           `json:"price_list"`
}

func newCloudReport(s *view.Status) (*cloudReport, error) {
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return nil, err
	}
	r := &cloudReport{
		Partitions: s.Owners, AtWork: s.Leased, Due: s.Due, Calls: s.Calls,
		Cost: prices.PerMillion(s.Calls, 1e6, 0).Total, PerMillion: prices.PerMillion(s.Calls, captures(&s.Totals), 0),
		Prices: fmt.Sprintf("%s, %s", prices.Name, prices.Date),
	}
	fences := map[partition.ID]uint64{}
	for i := range s.Heads {
		fences[s.Heads[i].Partition] = s.Heads[i].Fence
	}
	for p, w := range s.Tick.Woken {
		if fences[p] == w.Fence {
			r.Woken++
		}
	}
	return r, nil
}

func newStatusReport(w where, s *view.Status) (*statusReport, error) {
	r := &statusReport{
		where: w, State: s.State, Created: s.Crawl.Created, Totals: s.Totals, Unread: s.Unread,
		DeadRequests: s.DeadRequests, Seeds: len(s.Crawl.SeedBatches), Paused: s.Wish.Pause, Why: s.Wish.Why, Settings: s.Crawl.Settings,
		Index: newIndexReport(s), Ranks: newRanksReport(s), Stopping: s.Wish.Stop && s.State == view.Running,
	}
	for _, m := range s.Map.Moving {
		r.Moving += len(m.Slots)
	}
	if s.Live != nil {
		r.PID, r.Running = s.Live.PID, s.Live.Started
		var snap service.Snapshot
		// A process that has just begun knows less than its last commits say.
		if err := json.Unmarshal(s.Live.Snapshot, &snap); err == nil && snap.Totals.Known >= s.Totals.Known {
			r.Totals, r.Active, r.Steps = snap.Totals, snap.Active, snap.Steps
		}
	}
	var err error
	if w.at.inCloud() {
		r.InCloud, err = newCloudReport(s)
	}
	return r, err
}

func (r *statusReport) print(out *output) {
	t := &r.Totals
	out.row("crawl", "%s in %s", r.Crawl, r.at)
	out.row("state", "%s", r.state())
	switch {
	case r.Stopping:
		out.row("", "told to stop")
	case r.Paused && r.State != view.Paused:
		out.row("", "paused")
	}
	out.rowIf(r.Why != "", "", "because %s; look for the cause in the functions' logs first", r.Why)
	c := &blobschema.Crawl{Settings: r.Settings}
	if policy, by := crawlfile.Find("policy"), crawlfile.Find("partition-by"); policy.Get(c) != policy.Default || by.Get(c) != by.Default {
		out.row("policy", "%s, paced by %s", policy.Get(c), by.Get(c))
	}
	out.row("pages", "%s", count(t.Pages))
	if k := kinds(t.Outcomes, blobschema.OutcomeOK.String()); k != "" {
		out.row("others", "%s", k)
	}
	out.refetches(t)
	out.row("queue", "%s of %s known", count(t.Pending+t.Unexamined), plural(t.Known+t.Unexamined, "URL"))
	out.rowIf(t.Urgent > 0, "", "%s asked for on purpose, and first", plural(t.Urgent, "URL"))
	switch c := r.InCloud; {
	case c != nil:
		out.row("at work", "%d of %s", c.AtWork, plural(c.Partitions, "partition"))
		out.rowIf(c.Woken > 0, "", "%s woken, and not at work yet", count(c.Woken))
	case r.State == view.Running:
		out.row("at work", "%s, %s", plural(r.Active, "request"), plural(r.Steps, "step"))
	}
	out.rowIf(r.Moving > 0, "moving", "%s between partitions; see '%s'", plural(r.Moving, "slot"), r.at.command("partitions"))
	out.row("received", "%s, %s stored", size(t.Bytes), size(t.Stored))
	out.row("robots.txt", "%s kept", plural(t.Robots, "answer"))
	out.rowIf(t.Retries > 0, "retried", "%s", plural(t.Retries, "request"))
	out.rowIf(r.Unread+t.Held > 0, "mail", "%s on the way, %s held back", plural(r.Unread, "message"), plural(t.Held, "link"))
	out.rowIf(t.DeadMail > 0, "dead mail", "%s could not be read; see '%s'", plural(t.DeadMail, "message"), r.at.command("dlq list"))
	if r.DeadRequests > 0 {
		out.row("requests", "%s could not be read; see '%s'", plural(r.DeadRequests, "request"), r.at.command("dlq list"))
	}
	out.leftOut(t.OutOfScope, t)
	r.Index.print(out)
	r.Ranks.print(out)
	if c := r.InCloud; c != nil {
		out.row("calls", "%s of functions, %.4g GB-seconds", count(c.Calls.Functions), gbSeconds(&c.Calls))
		out.calls("", &c.Calls)
		out.row("cost", "$%.4g so far, %s per million pages fetched at %s", c.Cost, dollars(c.PerMillion.Total), c.Prices)
		out.row("", "%s", notInCalls)
	}
}

// state says how the crawl is, and what to do about it.
func (r *statusReport) state() string {
	switch {
	case r.State == view.Running && r.InCloud == nil:
		return fmt.Sprintf("running for %s, process %d", span(time.Since(r.Running).Seconds()), r.PID)
	case r.State == view.Idle:
		return "idle until the next URL is due, " + when(r.InCloud.Due)
	case r.State == view.Paused, r.State == view.Stopped:
		return fmt.Sprintf("%s; resume with '%s'", r.State, r.at.command("crawl"))
	case r.State == view.Limited:
		return fmt.Sprintf("the limit of --max-pages %d is reached", r.Settings.MaxPages)
	}
	return string(r.State)
}

// refetches says how many answers were refetches.
func (o *output) refetches(t *blobschema.Totals) {
	if n := recrawled(t); n > 0 {
		o.row("recrawled", "%s", plural(n, "further answer"))
	}
	if t.Again > 0 {
		o.row("looks", "%s at pages that may have changed; %s had", count(t.Again), count(t.Changed))
	}
	if t.Revisits > 0 {
		o.row("revisits", "%s whose payload was stored already", plural(t.Revisits, "answer"))
	}
}

// leftOut says which links were not followed.
func (o *output) leftOut(outOfScope int64, t *blobschema.Totals) {
	left := parts(
		some(outOfScope, plural(outOfScope, "link")+" out of scope"),
		some(t.Trapped, plural(t.Trapped, "link")+" into what looks like a trap"),
		some(t.Capped, plural(t.Capped, "link")+" to hosts or domains with too many URLs"),
	)
	if left != "" {
		o.row("left out", "%s", left)
	}
}

// calls counts calls of a platform.
func (o *output) calls(name string, n *ledger.Counts) {
	o.row(name, "queue %s · KV %s read and %s write units · blob %s puts and %s gets",
		count(n.QueueRequests), count(n.KVReadUnits), count(n.KVWriteUnits), count(n.BlobPuts), count(n.BlobGets))
}

// notInCalls says what the calls in records leave out.
const notInCalls = "as told by its records: without crashed steps, ticks of an idle crawl, polls that start functions, searches, " +
	"and what commands read"

func gbSeconds(c *ledger.Counts) float64 { return float64(c.FunctionMBMillis) / 1024 / 1000 }
