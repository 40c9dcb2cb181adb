package main

import (
	"context"
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

// reading holds the flags of the commands that report on a target.
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

// parseURL parses an argument.
func parseURL(text string) (weburl.URL, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		err = usagef("cannot use URL %.200q: %w%s", text, err, crawlfile.Suggestion(text))
	}
	return u, err
}

// newReport is newCommand for a command that reads a crawl, and reports the result with a template.
func (f *reading) newReport(name string, args cobra.PositionalArgs,
	read func(ctx context.Context, v *view.View, args []string) (template string, report any, err error),
) *cobra.Command {
	cmd := f.newCommand(name, args, func(cmd *cobra.Command, args []string) error {
		return f.read(cmd.Context(), func(v *view.View) error {
			template, r, err := read(cmd.Context(), v, args)
			if err != nil {
				return err
			}
			return f.report(cmd.OutOrStdout(), template, r)
		})
	})
	f.registerCrawl(cmd)
	return cmd
}

func newStatus() *cobra.Command {
	var f reading
	return f.newReport("status", noArguments, func(ctx context.Context, v *view.View, _ []string) (string, any, error) {
		s, err := v.Status(ctx)
		if err != nil {
			return "", nil, err
		}
		r, err := newStatusReport(f.where(v.ID()), &s)
		r.Replaced = !v.Active()
		return "status", r, err
	})
}

// statusReport describes the state of a crawl.
type statusReport struct {
	where
	State view.State `json:"state"`
	// Replaced says that another crawl is the active one.
	Replaced bool              `json:"replaced,omitempty"`
	PID      int               `json:"pid,omitempty"`
	Running  time.Time         `json:"running_since,omitzero"`
	Created  time.Time         `json:"created,omitzero"`
	Totals   blobschema.Totals `json:"totals"`
	Active   int               `json:"active,omitempty"` // requests under way
	Steps    int               `json:"steps,omitempty"`  // running
	Unread   int64             `json:"mail_unread"`
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
	AtWork     int              `json:"partitions_at_work"` // partitions whose lease a step holds
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
		Cost: prices.Dollars(s.Calls), PerMillion: prices.PerMillion(s.Calls, captures(&s.Totals), 0),
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
		DeadRequests: s.DeadRequests, Seeds: len(s.Crawl.SeedBatches), Paused: s.Desired.Pause, Why: s.Desired.Why, Settings: s.Crawl.Settings,
		Index: newIndexReport(s), Ranks: newRanksReport(s), Stopping: s.Desired.Stop && s.State == view.Running,
	}
	for _, m := range s.Map.Moving {
		r.Moving += len(m.Slots)
	}
	if s.Live != nil {
		r.PID, r.Running = s.Live.PID, s.Live.Started
		var snap service.Snapshot
		// A process that has just started knows less than its last commits.
		if err := json.Unmarshal(s.Live.Snapshot, &snap); err == nil && snap.Totals.Known >= s.Totals.Known {
			r.Totals, r.Active, r.Steps = snap.Totals, snap.Active, snap.Steps
		}
	}
	var err error
	if w.Deployed() {
		r.InCloud, err = newCloudReport(s)
	}
	return r, err
}

// Queue counts the URLs that are to be fetched, Known all URLs.
func (r *statusReport) Queue() int64 { return r.Totals.Pending + r.Totals.Unexamined }
func (r *statusReport) Known() int64 { return r.Totals.Known + r.Totals.Unexamined }

// Policy names the policy and its unit of pacing; "" for the defaults.
func (r *statusReport) Policy() string {
	c := &blobschema.Crawl{Settings: r.Settings}
	policy, by := crawlfile.Find("policy"), crawlfile.Find("partition-by")
	if policy.Get(c) == policy.Default && by.Get(c) == by.Default {
		return ""
	}
	return policy.Get(c) + ", paced by " + by.Get(c)
}

// Ran is the time since the process has begun to serve, in seconds.
func (r *statusReport) Ran() float64 { return time.Since(r.Running).Seconds() }

// Revisited counts the captures that Totals.Pages leaves out.
func (r *statusReport) Revisited() int64 { return recrawled(&r.Totals) }

// GBSeconds is the memory of functions times their duration.
func (r *cloudReport) GBSeconds() float64 { return gbSeconds(&r.Calls) }

func gbSeconds(c *ledger.Counts) float64 { return float64(c.FunctionMBMillis) / 1024 / 1000 }
