package blobschema

import "github.com/orbweaver/orbweaver/partition"

// Grants is the one record that distributes --max-pages. The sum of Granted never
// exceeds Limit, and a partition never stores more pages than its grant.
type Grants struct {
	Limit   int64                  `json:"limit"`
	Granted map[partition.ID]int64 `json:"granted"`
	// Fences are the fences of the steps that changed Granted last. A step that has lost its
	// lease can no longer change it.
	Fences map[partition.ID]uint64 `json:"fences,omitempty"`
}
