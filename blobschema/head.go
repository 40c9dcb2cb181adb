package blobschema

import (
	"time"

	"github.com/orbweaver/orbweaver/partition"
)

// Head is the record that names a partition's last commit and holds its
// lease. Only steps write it, each time by compare-and-set (invariant I4).
type Head struct {
	Partition  partition.ID    `json:"partition"`
	Fence      uint64          `json:"fence"`
	Owner      string          `json:"owner,omitempty"` // "<process>/<step>", empty when released
	LeaseUntil time.Time       `json:"lease_until,omitzero"`
	Crashes    int             `json:"crashes,omitempty"` // takeovers since the last commit that settled a URL
	Floor      time.Time       `json:"floor,omitzero"`    // of the last takeover from a crash: from then on each host waits for its delay
	Commit     string          `json:"commit,omitempty"`  // object name; empty before the first
	Seq        uint64          `json:"seq"`               // of that commit
	Epoch      partition.Epoch `json:"epoch"`
	Desired    uint64          `json:"wish"` // version of the desired state that the commit obeyed
	Due        time.Time       `json:"due,omitzero"`
	Totals     Totals          `json:"totals"`
	Sent       []uint64        `json:"sent,omitempty"`     // mail sent, by receiving partition
	Applied    uint64          `json:"applied,omitempty"`  // mail applied, from all senders
	Requests   uint64          `json:"requests,omitempty"` // last applied number of the mail that intake makes of requests
	// Published is the newest commit up to which all outboxes are known to be sent.
	Published uint64   `json:"published,omitempty"`
	Scope     []string `json:"scope,omitempty"` // hosts that seeds redirected to, for the desired state
	// Domains counts the known URLs of the largest registrable domains, for the cap.
	Domains map[string]int64 `json:"domains,omitempty"`
	// WakeAt is the arrival time of the wake that a step sent for its partition's later work.
	// Until then no step needs to send another.
	WakeAt time.Time `json:"wake_at,omitzero"`
	// Workless counts the last consecutive steps that did no work.
	Workless int `json:"workless,omitempty"`
	// Owes counts the slots that the partition holds but that belong to others by the map of Epoch.
	Owes int `json:"owes,omitempty"`
	// Gives is, by receiver, the newest epoch of the hand-overs in the manifest that are not
	// known to be confirmed.
	Gives map[partition.ID]partition.Epoch `json:"gives,omitempty"`
	// Awaits is the oldest epoch whose map assigns slots to the partition that it has not received; 0 for
	// none. Moves to this partition of epochs up to Epoch and before Awaits are thus confirmed.
	Awaits partition.Epoch `json:"awaits,omitempty"`
	// Threshold is the threshold by which revisits are planned, to within a factor of 1.5.
	Threshold float64 `json:"threshold,omitempty"`
	// RevisitsDue is when the next revisit is due, if the limit on pages allows only revisits; otherwise, or if that is
	// unknown, zero.
	RevisitsDue time.Time `json:"looks_due,omitzero"`
	// Calls are the calls of the partition's steps, except those not yet reported when the last
	// step ended, and those of crashed steps after their last commit.
	Calls Calls `json:"calls,omitzero"`
}
