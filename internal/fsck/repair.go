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
	again := checks[1]
	for _, name := range slices.Sorted(maps.Keys(checks[0].orphans)) {
		why, still := again.orphans[name]
		since := again.listed[name]
		if dropped := again.dropped[name]; dropped.After(since) {
			since = dropped
		}
		stays := ""
		switch {
		case !still:
			continue
		case why == "":
			stays = "it may yet be named"
		case since.IsZero():
			stays = "its age is not known"
		case opt.Time.Sub(since) < opt.Grace:
			stays = fmt.Sprintf("it is younger than %v", opt.Grace)
		}
		if stays != "" {
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
	indexOf, number, indexErr := naming.ParseIndex(name)
	rankOf, job, _, rankErr := naming.ParseRankObject(name)
	head, index, rank := of(p).head, of(indexOf), of(rankOf).rankHead
	switch {
	case err == nil && !c.dropped[name].IsZero():
		return "a run that was merged into another"
	case err == nil && fence < head.Fence:
		return fmt.Sprintf("an object of fence %d, below the head's %d, that nothing names", fence, head.Fence)
	case indexErr == nil && number <= index.indexAt && int(indexOf) < len(c.parts):
		return fmt.Sprintf("an object made for manifest %d, and the index is at %d", number, index.indexAt)
	case rankErr == nil && (job < rank.Job || job == rank.Job && rank.Final):
		return fmt.Sprintf("an object of rank job %d that nothing names, and the partition is at job %d", job, rank.Job)
	case strings.HasPrefix(name, naming.MapPrefix(c.id)):
		return "a map that is not in force, and that no record names"
	case strings.HasPrefix(name, naming.RanksPrefix(c.id)) && c.ranks.Running == 0: // else the job may be about to name it
		return "ranks of hosts that the crawl does not name"
	case strings.HasPrefix(name, naming.SeedsPrefix(c.id)):
		return "a batch of seeds that the crawl does not name"
	}
	return ""
}
