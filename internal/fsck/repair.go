package fsck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// RepairStore is a [Store] that can be repaired.
type RepairStore interface {
	Store
	// Modified says when an object was written; the zero time if that is not known.
	Modified(ctx context.Context, name string) (time.Time, error)
	// Delete deletes an object. It is no error if there is none.
	Delete(ctx context.Context, name string) error
	// Wake sends a wake for each of some partitions.
	Wake(ctx context.Context, crawl string, partitions []partition.ID) error
}

// RepairOptions configure a repair.
type RepairOptions struct {
	Options               // Time is needed
	Grace   time.Duration // an object that is younger stays; 0 stands for an hour
	DryRun  bool          // only say what would be done
}

// Repairs is what a repair did, or would do.
type Repairs struct {
	Report  Report    `json:"report"` // of the check that came first
	DryRun  bool      `json:"dry_run"`
	Deleted []Removal `json:"deleted"`
	Kept    []Removal `json:"kept"` // orphans that stay
	Woken   []Waking  `json:"woken"`
}

// Removal is an object that nothing names.
type Removal struct {
	Object string `json:"object"`
	Why    string `json:"why"` // it goes, or stays
}

// Waking is a partition that has something to do and no step that does it.
type Waking struct {
	Partition partition.ID `json:"partition"`
	Why       string       `json:"why"`
}

// ErrViolations says that a crawl is not repaired, because it is damaged: what is wrong
// with it must be looked at first, and orphans may be all that is left of what is missing.
var ErrViolations = errors.New("the crawl has violations, and is not repaired")

const grace = time.Hour

// Repair checks a crawl, and mends what a crash may leave and what may be mended without
// knowing more: it deletes objects that nothing names, and wakes partitions whose wake was
// lost. It does neither if the check finds any violation.
//
// An object goes only if no manifest, hand-over, map record, page record or request names it
// in two looks, if nobody can come to name it any more (it was written under a fence below
// the head's, or is a run that a commit has dropped, or a map or batch of seeds that its
// writer never named), and if it is older than the grace period, so that who reads by an
// older head is done.
func Repair(ctx context.Context, s RepairStore, opt RepairOptions) (Repairs, error) {
	opt.Grace = cmp.Or(opt.Grace, grace)
	did := Repairs{DryRun: opt.DryRun, Deleted: []Removal{}, Kept: []Removal{}, Woken: []Waking{}}
	first, err := check(ctx, s, opt.Options)
	did.Report = first.report
	if err != nil {
		return did, err
	}
	if !first.report.Clean() {
		return did, ErrViolations
	}
	second := opt.Options
	second.WARCs = SomeWARCs
	again, err := check(ctx, s, second)
	if err != nil {
		return did, err
	}
	if !again.report.Clean() {
		did.Report = again.report
		return did, ErrViolations
	}
	if err := did.sweep(ctx, s, opt, first, again); err != nil {
		return did, err
	}
	return did, did.wake(ctx, s, opt, again)
}

// sweep deletes the orphans of two looks.
func (r *Repairs) sweep(ctx context.Context, s RepairStore, opt RepairOptions, first, again *checker) error {
	for _, name := range slices.Sorted(maps.Keys(first.orphans)) {
		why, still := again.orphans[name]
		if !still {
			continue
		}
		stays := func(why string) { r.Kept = append(r.Kept, Removal{name, why}) }
		if why == "" {
			stays("it may yet be named")
			continue
		}
		since, err := s.Modified(ctx, name)
		if err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
		if dropped := again.dropped[name]; dropped.After(since) {
			since = dropped
		}
		switch {
		case since.IsZero():
			stays("its age is not known")
			continue
		case opt.Time.Sub(since) < opt.Grace:
			stays(fmt.Sprintf("it is younger than %v", opt.Grace))
			continue
		}
		if !opt.DryRun {
			if err := s.Delete(ctx, name); err != nil {
				return fmt.Errorf("delete %s: %w", name, err)
			}
		}
		r.Deleted = append(r.Deleted, Removal{name, why})
	}
	return nil
}

// orphaned says why an object that nothing names may be deleted: no step can come to name
// it any more. It returns "" if one might.
func (c *checker) orphaned(name string) string {
	of := func(p partition.ID) *part {
		if int(p) < len(c.parts) {
			return c.parts[p]
		}
		return &part{}
	}
	fenced := func(p partition.ID, fence uint64, what string) string {
		if now := of(p).head.Fence; fence < now {
			return fmt.Sprintf("a %s of fence %d, below the head's %d, that nothing names", what, fence, now)
		}
		return ""
	}
	if p, _, fence, err := naming.ParseCommit(name); err == nil {
		return fenced(p, fence, "commit")
	}
	if p, _, fence, _, err := naming.ParseRun(name); err == nil {
		if !c.dropped[name].IsZero() {
			return "a run that was merged into another"
		}
		return fenced(p, fence, "run")
	}
	if p, fence, _, err := naming.ParseWARC(name); err == nil {
		return fenced(p, fence, "WARC object")
	}
	if p, number, err := naming.ParseIndex(name); err == nil {
		if now := of(p).indexAt; number <= now && int(p) < len(c.parts) {
			return fmt.Sprintf("an object made for manifest %d, and the index is at %d", number, now)
		}
		return ""
	}
	if p, job, _, err := naming.ParseRankObject(name); err == nil {
		if now := of(p).rankHead; job < now.Job || job == now.Job && now.Final {
			return fmt.Sprintf("an object of rank job %d that nothing names, and the partition is at job %d", job, now.Job)
		}
		return ""
	}
	switch {
	case strings.HasPrefix(name, naming.MapPrefix(c.id)):
		return "a map that is not in force, and that no record names"
	case strings.HasPrefix(name, naming.RanksPrefix(c.id)) && c.ranks.Running == 0: // else the job may be about to name it
		return "ranks of hosts that the crawl does not name"
	case strings.HasPrefix(name, naming.SeedsPrefix(c.id)):
		return "a batch of seeds that the crawl does not name"
	}
	return ""
}

// wake wakes the partitions that should have a step by now.
func (r *Repairs) wake(ctx context.Context, s RepairStore, opt RepairOptions, c *checker) error {
	if c.wish.Stop {
		return nil
	}
	var ids []partition.ID
	for _, p := range c.parts {
		if why := c.lostWake(p, opt.Time); why != "" {
			ids = append(ids, p.id)
			r.Woken = append(r.Woken, Waking{p.id, why})
		}
	}
	if opt.DryRun || len(ids) == 0 {
		return nil
	}
	if err := s.Wake(ctx, c.id, ids); err != nil {
		return fmt.Errorf("wake partitions: %w", err)
	}
	return nil
}

// lostWake says why a partition should have a step, "" if it has one or needs none.
func (c *checker) lostWake(p *part, now time.Time) string {
	h := &p.head
	if h.Owner != "" && now.Before(h.LeaseUntil) {
		return ""
	}
	sent := c.sent(p)
	handed := func(s partition.Slot) bool { return c.atlas.handed[s] != nil && c.atlas.handed[s].To == p.id }
	for _, m := range c.atlas.record.Moving {
		switch {
		case m.From == p.id && (h.Epoch < m.Epoch || h.Owes > 0):
			return fmt.Sprintf("it has slots to give by epoch %d", m.Epoch)
		case m.To == p.id && slices.ContainsFunc(m.Slots, handed):
			return fmt.Sprintf("slots were handed to it by epoch %d", m.Epoch)
		}
	}
	set := &c.crawl.Settings
	limited := set.MaxPages > 0 && h.Totals.Urgent == 0 && h.Totals.Pages >= c.granted[p.id] && c.spent &&
		(set.RecrawlPerHour == 0 || h.LooksDue.After(now))
	switch {
	case sent > h.Applied:
		return fmt.Sprintf("%d mails are not applied", sent-h.Applied)
	case h.Owner != "":
		return fmt.Sprintf("its lease ended at %s", h.LeaseUntil.UTC().Format(time.RFC3339))
	case h.Published < h.Seq:
		return fmt.Sprintf("its mail since commit %d may not be sent", h.Published)
	case h.Totals.Held > 0:
		return fmt.Sprintf("it holds %d links for others", h.Totals.Held)
	case c.wish.Pause || limited:
	case c.unexamined(p) > 0:
		return fmt.Sprintf("%d URLs are not examined", c.unexamined(p))
	case !h.Due.IsZero() && !h.Due.After(now):
		return fmt.Sprintf("URLs are due since %s", h.Due.UTC().Format(time.RFC3339))
	}
	return ""
}

// unexamined counts the URLs that a step could examine now.
func (c *checker) unexamined(p *part) (n int64) {
	if p.man == nil {
		return 0
	}
	for _, s := range p.man.Slots {
		if !c.awaits(p, s.Slot) && !c.owes(p, s.Slot) {
			n += int64(s.Unexamined)
		}
	}
	return n
}
