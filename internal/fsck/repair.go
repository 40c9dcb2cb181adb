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
	// Delete deletes an object. It is no error if the object does not exist.
	Delete(ctx context.Context, name string) error
}

// RepairOptions configure a repair.
type RepairOptions struct {
	Options               // Time is needed
	Grace   time.Duration // least age of an object to delete; 0 means an hour
	DryRun  bool          // only say what would be done
}

// Repairs is what a repair did, or would do.
type Repairs struct {
	Report  Report    `json:"report"` // of the check that came first
	DryRun  bool      `json:"dry_run"`
	Deleted []Removal `json:"deleted"`
	Kept    []Removal `json:"kept"` // orphans that stay
}

// Removal is an object that nothing names.
type Removal struct {
	Object string `json:"object"`
	Why    string `json:"why"` // it goes, or stays
}

// ErrViolations says that a crawl is not repaired, because it is damaged: what is wrong
// with it must be looked at first, and orphans may be all that is left of what is missing.
var ErrViolations = errors.New("the crawl has violations, and is not repaired")

const grace = time.Hour

// Repair checks a crawl, and deletes the objects that nothing names and nothing can come to
// name: crashes leave them. It deletes nothing if the check finds any violation.
//
// It deletes an object under three conditions. No record or object names it in two checks.
// No step can come to name it: it was written under a fence below the head's, or is a run
// that a commit has dropped, or a map or batch of seeds that its writer never named. And it
// is older than the grace period, so that readers of an older head are done.
func Repair(ctx context.Context, s RepairStore, opt RepairOptions) (Repairs, error) {
	opt.Grace = cmp.Or(opt.Grace, grace)
	did := Repairs{DryRun: opt.DryRun, Deleted: []Removal{}, Kept: []Removal{}}
	var checks [2]*checker
	for i := range checks {
		c, err := check(ctx, s, opt.Options)
		if checks[i] = c; i == 0 || !c.report.Clean() {
			did.Report = c.report
		}
		if err != nil {
			return did, err
		}
		if !c.report.Clean() {
			return did, ErrViolations
		}
		opt.Quick = true
	}
	first, again := checks[0], checks[1]
	for _, name := range slices.Sorted(maps.Keys(first.orphans)) {
		why, still := again.orphans[name]
		if !still {
			continue
		}
		if stays := again.stays(name, why, opt); stays != "" {
			did.Kept = append(did.Kept, Removal{name, stays})
			continue
		}
		if !opt.DryRun {
			if err := s.Delete(ctx, name); err != nil {
				return did, fmt.Errorf("delete %s: %w", name, err)
			}
		}
		did.Deleted = append(did.Deleted, Removal{name, why})
	}
	return did, nil
}

// stays says why an orphan is not deleted, "" if it is.
func (c *checker) stays(name, why string, opt RepairOptions) string {
	since := c.listed[name]
	if dropped := c.dropped[name]; dropped.After(since) {
		since = dropped
	}
	switch {
	case why == "":
		return "it may yet be named"
	case since.IsZero():
		return "its age is not known"
	case opt.Time.Sub(since) < opt.Grace:
		return fmt.Sprintf("it is younger than %v", opt.Grace)
	}
	return ""
}

// orphaned says why no step can come to name an orphan any more, so that it may be deleted. It
// returns "" if one can.
func (c *checker) orphaned(name string) string {
	of := func(p partition.ID) *part {
		if int(p) < len(c.parts) {
			return c.parts[p]
		}
		return &part{}
	}
	p, _, fence, err := naming.ParseCommit(name)
	if err != nil {
		p, _, fence, _, err = naming.ParseRun(name)
	}
	if err != nil {
		p, fence, _, err = naming.ParseWARC(name)
	}
	switch now := of(p).head.Fence; {
	case err != nil: // another kind of object
	case !c.dropped[name].IsZero():
		return "a run that was merged into another"
	case fence < now:
		return fmt.Sprintf("an object of fence %d, below the head's %d, that nothing names", fence, now)
	default:
		return ""
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
