package crawl

import "github.com/orbweaver/orbweaver/partition"

// Signal is something that happens to a step from outside.
type Signal interface{ signal() }

type (
	// Stop asks a step to end soon: fetches are aborted, what is done is committed.
	Stop struct{}
	// Look asks a step to read what the operator wishes now, not with its next commit.
	Look struct{}
	// Appetites says which other partitions have little or nothing to do, so that mail for
	// them is sent soon. Those not named are Fed. The map may not change afterwards.
	Appetites struct{ Of map[partition.ID]Appetite }
)

func (Stop) signal()      {}
func (Look) signal()      {}
func (Appetites) signal() {}

// Appetite says how much a step wants mail.
type Appetite uint8

// The appetites.
const (
	Fed     Appetite = iota // enough hosts are at work
	Hungry                  // few are
	Starved                 // none is, nor will be soon
)
