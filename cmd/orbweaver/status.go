package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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

// looking is what the commands that only look have in common.
type looking struct {
	place
	json bool
}

func (f *looking) register(cmd *cobra.Command) {
	f.place.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON, for a program")
}

// writeJSON writes a value for a program, and for people who look at it.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// oneURL parses the only argument of a command as a URL.
func oneURL(cmd *cobra.Command, args []string) (u weburl.URL, err error) {
	if len(args) != 1 {
		return u, usagef("'%s' takes one URL\nSee '%[1]s --help'", cmd.CommandPath())
	}
	if u, err = weburl.Parse(args[0]); err != nil {
		return u, usagef("cannot use URL %.200q: %w%s", args[0], err, crawlfile.Suggestion(args[0]))
	}
	return u, nil
}

type statusFlags struct {
	looking
	partitions bool
	hosts      int
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say how far a crawl is",
		Long: `Status says how far a crawl is, also while it runs. In a folder the figures are then those
of the process that crawls; else, and in a cloud, those of the last commits.

  running    a process works on it; in a cloud: steps do, or will in a minute
  idle       in a cloud: there is more to do, but the hosts want to be left alone
  finished   nothing is left to do
  limit      --max-pages is reached
  paused     there is more to do: 'orbweaver crawl' goes on with it, in a cloud 'resume' too
  stopped    there is more to do: 'orbweaver crawl' goes on with it

Of a crawl with --index it says how much of it is searchable, and how far the index is behind
the crawl's commits; of one with ranks, when they were computed, and of how much.

In a cloud it also says what functions did, and what that cost so far, as the crawl's
records tell it.`,
		Example: `  orbweaver status
  orbweaver status --platform aws.json
  orbweaver status --partitions --hosts 10
  watch orbweaver status
  orbweaver status --json | jq .totals.pages`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hosts < 0 {
				return usagef("--hosts must be 0 or more")
			}
			return f.look(cmd.Context(), func(v *view.View) error { return runStatus(cmd, &f, v) })
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.partitions, "partitions", false, "show every partition")
	cmd.Flags().IntVar(&f.hosts, "hosts", 0, "show this many hosts, those asked most first")
	return cmd
}

// statusReport is what status says, as JSON.
type statusReport struct {
	Crawl   string            `json:"crawl"`
	Data    string            `json:"data,omitempty"`
	Cloud   string            `json:"platform,omitempty"`
	State   view.State        `json:"state"`
	PID     int               `json:"pid,omitempty"`
	Running time.Time         `json:"running_since,omitzero"`
	Created time.Time         `json:"created,omitzero"`
	Totals  blobschema.Totals `json:"totals"`
	Active  int               `json:"active,omitempty"` // requests under way
	Steps   int               `json:"steps,omitempty"`  // at work
	Unread  int64             `json:"mail_unread"`
	// DeadRequests are requests from outside, or URLs of them, that could not be read.
	DeadRequests int64               `json:"requests_dead,omitempty"`
	Seeds        int                 `json:"seed_batches"`
	Paused       bool                `json:"paused,omitempty"`
	Why          string              `json:"paused_because,omitempty"` // if the coordinator paused the crawl
	Stopping     bool                `json:"stopping,omitempty"`       // told to stop, and not there yet
	Moving       int                 `json:"slots_moving,omitempty"`   // between partitions
	Index        *indexReport        `json:"index,omitempty"`
	Ranks        *ranksReport        `json:"ranks,omitempty"`
	InCloud      *cloudReport        `json:"cloud,omitempty"`
	Settings     blobschema.Settings `json:"settings"`
	Partitions   []blobschema.Head   `json:"partitions,omitempty"`
	Hosts        []hostLine          `json:"hosts,omitempty"`
	place        *place
}

// cloudReport is what there is to say of a crawl that functions work on.
type cloudReport struct {
	Partitions int              `json:"partitions"`
	AtWork     int              `json:"partitions_at_work"` // whose lease a step holds
	Woken      int              `json:"partitions_woken"`   // by a tick, and not at work yet
	Due        time.Time        `json:"due,omitzero"`       // when the first partition has a URL to ask for
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

type hostLine struct {
	Host      string       `json:"host"`
	Partition partition.ID `json:"partition"`
	Requests  uint64       `json:"requests"`
	Failures  uint64       `json:"failures"`
	Pending   int64        `json:"pending"`
	Response  float64      `json:"response_seconds,omitempty"`
	Next      time.Time    `json:"next,omitzero"`
}

func runStatus(cmd *cobra.Command, f *statusFlags, v *view.View) error {
	s, err := v.Status(cmd.Context())
	if err != nil {
		return err
	}
	r := statusReport{
		Crawl: v.ID(), Cloud: f.cloud, place: &f.place, State: s.State, Created: s.Crawl.Created, Totals: s.Totals, Unread: s.Unread,
		DeadRequests: s.DeadRequests, Seeds: len(s.Crawl.SeedBatches), Paused: s.Wish.Pause, Why: s.Wish.Why, Settings: s.Crawl.Settings,
	}
	for _, m := range s.Map.Moving {
		r.Moving += len(m.Slots)
	}
	r.Index, r.Ranks = newIndexReport(&s), newRanksReport(&s)
	r.Stopping = s.Wish.Stop && s.State == view.Running
	if f.inCloud() {
		if r.InCloud, err = newCloudReport(&s); err != nil {
			return err
		}
	} else {
		r.Data = f.data
	}
	if s.Live != nil {
		r.PID, r.Running = s.Live.PID, s.Live.Started
		var snap service.Snapshot
		// A process that has just begun knows less than its last commits say.
		if err := json.Unmarshal(s.Live.Snapshot, &snap); err == nil && snap.Totals.Known >= s.Totals.Known {
			r.Totals, r.Active, r.Steps = snap.Totals, snap.Active, snap.Steps
		}
	}
	if f.partitions {
		r.Partitions = s.Heads
	}
	if f.hosts > 0 {
		hosts, err := v.TopHosts(cmd.Context(), f.hosts)
		if err != nil {
			return err
		}
		for _, h := range hosts {
			r.Hosts = append(r.Hosts, hostLine{
				Host: h.Name, Partition: h.Partition, Requests: h.Info.Requests, Failures: h.Info.Failures, Pending: h.Pending,
				Response: h.Info.Pace.RespTime.Seconds(), Next: h.Info.Pace.ReadyAt(),
			})
		}
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.print(cmd.OutOrStdout())
}

// print writes the report for people, in one write.
func (r *statusReport) print(out io.Writer) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	t := &r.Totals
	row("crawl", "%s in %s", r.Crawl, r.place)
	row("state", "%s", r.state())
	switch {
	case r.Stopping:
		row("", "told to stop")
	case r.Paused && r.State != view.Paused:
		row("", "paused")
	}
	if r.Why != "" {
		row("", "because %s; look for the cause in the functions' logs first", r.Why)
	}
	if p, by := policyOf(&r.Settings), partitionBy(&r.Settings); p != defaultPolicy || by != blobschema.ByHost {
		row("policy", "%s, paced by %s", p, by)
	}
	row("pages", "%s", count(t.Pages))
	if n := recrawled(t); n > 0 {
		row("recrawled", "%s", plural(n, "further answer"))
	}
	if k := kinds(t.Outcomes, blobschema.OutcomeOK.String()); k != "" {
		row("others", "%s", k)
	}
	row("queue", "%s of %s known", count(t.Pending+t.Unexamined), plural(t.Known+t.Unexamined, "URL"))
	if t.Urgent > 0 {
		row("", "%s asked for on purpose, and first", plural(t.Urgent, "URL"))
	}
	switch c := r.InCloud; {
	case c != nil:
		row("at work", "%d of %s", c.AtWork, plural(int64(c.Partitions), "partition"))
		if c.Woken > 0 {
			row("", "%s woken, and not at work yet", count(int64(c.Woken)))
		}
	case r.State == view.Running:
		row("at work", "%s, %s", plural(int64(r.Active), "request"), plural(int64(r.Steps), "step"))
	}
	if r.Moving > 0 {
		row("moving", "%s between partitions; see '%s'", plural(int64(r.Moving), "slot"), r.place.command("partitions"))
	}
	row("received", "%s, %s stored", size(t.Bytes), size(t.Stored))
	if t.Again > 0 {
		row("looks", "%s at pages that may have changed; %s had", count(t.Again), count(t.Changed))
	}
	if t.Revisits > 0 {
		row("revisits", "%s whose payload was stored already", plural(t.Revisits, "answer"))
	}
	row("robots.txt", "%s kept", plural(t.Robots, "answer"))
	if t.Retries > 0 {
		row("retried", "%s", plural(t.Retries, "request"))
	}
	if r.Unread+t.Held > 0 {
		row("mail", "%s on the way, %s held back", plural(r.Unread, "message"), plural(t.Held, "link"))
	}
	if t.DeadMail > 0 {
		row("dead mail", "%s could not be read; see '%s'", plural(t.DeadMail, "message"), r.place.command("dlq list"))
	}
	if r.DeadRequests > 0 {
		row("requests", "%s could not be read; see '%s'", plural(r.DeadRequests, "request"), r.place.command("dlq list"))
	}
	if left := leftOut(t); left != "" {
		row("left out", "%s", left)
	}
	r.Index.rows(row)
	r.Ranks.rows(row)
	if c := r.InCloud; c != nil {
		row("calls", "%s of functions, %.4g GB-seconds", count(c.Calls.Functions), gbSeconds(&c.Calls))
		row("", "queue %s · KV %s read and %s write units · blob %s puts and %s gets", count(c.Calls.QueueRequests),
			count(c.Calls.KVReadUnits), count(c.Calls.KVWriteUnits), count(c.Calls.BlobPuts), count(c.Calls.BlobGets))
		row("cost", "$%.4g so far, %s per million pages fetched at %s", c.Cost, dollars(c.PerMillion.Total), c.Prices)
		row("", "%s", notInCalls)
	}
	w.Flush() // into memory: it cannot fail
	r.tables(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// state says how the crawl is, and what to do about it.
func (r *statusReport) state() string {
	switch {
	case r.State == view.Running && r.InCloud != nil:
		return "running"
	case r.State == view.Running:
		return fmt.Sprintf("running for %s, process %d", span(time.Since(r.Running).Seconds()), r.PID)
	case r.State == view.Idle:
		return "idle until the next URL is due, " + when(r.InCloud.Due)
	case r.State == view.Paused:
		return fmt.Sprintf("paused; go on with '%s'", r.place.command("crawl"))
	case r.State == view.Stopped:
		return fmt.Sprintf("stopped; go on with '%s'", r.place.command("crawl"))
	case r.State == view.Limited:
		return fmt.Sprintf("the limit of --max-pages %d is reached", r.Settings.MaxPages)
	}
	return string(r.State)
}

// leftOut says which links were not followed.
func leftOut(t *blobschema.Totals) string {
	var parts []string
	for _, p := range []struct {
		n   int64
		why string
	}{
		{t.OutOfScope, "out of scope"},
		{t.Trapped, "into what looks like a trap"},
		{t.Capped, "to hosts or domains with too many URLs"},
	} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, "link")+" "+p.why)
		}
	}
	return strings.Join(parts, " · ")
}

func (r *statusReport) tables(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', tabwriter.AlignRight)
	if len(r.Partitions) > 0 {
		fmt.Fprint(w, "\npartition\tcommits\tpages\tknown\tpending\theld\tfence\tlease\tdue\t\n")
		for i := range r.Partitions {
			h := &r.Partitions[i]
			lease := "-"
			if h.Owner != "" {
				lease = when(h.LeaseUntil)
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t\n", h.Partition, count(int64(h.Seq)), count(h.Totals.Pages),
				count(h.Totals.Known+h.Totals.Unexamined), count(h.Totals.Pending+h.Totals.Unexamined), count(h.Totals.Held), h.Fence, lease, when(h.Due))
		}
	}
	if len(r.Hosts) > 0 {
		fmt.Fprint(w, "\nrequests\tfailures\tpending\tresponse\tpartition\thost\t\n")
		for _, h := range r.Hosts {
			fmt.Fprintf(w, "%d\t%d\t%s\t%.0f ms\t%d\t%s\t\n", h.Requests, h.Failures, count(h.Pending), 1000*h.Response, h.Partition, h.Host)
		}
	}
	w.Flush() // into memory: it cannot fail
}

// when writes a time relative to now.
func when(t time.Time) string {
	switch d := time.Until(t); {
	case t.IsZero():
		return "-"
	case d <= 0:
		return "now"
	default:
		return "in " + span(d.Seconds())
	}
}
