package blobschema

import "time"

// DesiredState is the desired state of a running crawl. Steps read it at each commit.
type DesiredState struct {
	Version uint64   `json:"version"`
	Stop    bool     `json:"stop,omitempty"`
	Pause   bool     `json:"pause,omitempty"`
	Why     string   `json:"why,omitempty"`    // reason of a pause by the coordinator
	Orders  uint64   `json:"orders,omitempty"` // number of changes of Stop and Pause
	Scope   []string `json:"scope,omitempty"`  // hosts that redirects of seeds added to the scope
	// Capped are the registrable domains that have reached the cap on known URLs. HalfCapped are those
	// that have reached half of it, the part that URLs from sitemaps may use.
	Capped     []string `json:"capped,omitempty"`
	HalfCapped []string `json:"half_capped,omitempty"`
	// Map is the last announced version of the [MapRecord].
	Map uint64 `json:"map,omitempty"`
	// Slices are the slices of topics by number that differ from the settings.
	Slices map[uint8]time.Duration `json:"slices,omitempty"`
	// Threshold is the least worth, in the unit of [Change], at which a settled URL is revisited; 0 before there is one.
	// Revisits are the figures of its last adjustment.
	Threshold float64       `json:"threshold,omitempty"`
	Revisits  RevisitCounts `json:"looks,omitzero"`
	// HostRanks is the object with the newest ranks of hosts, for the quality "host-rank".
	HostRanks string `json:"host_ranks,omitempty"`
}

// RevisitCounts are a crawl's figures at the last adjustment of its threshold.
type RevisitCounts struct {
	At    time.Time `json:"at"`
	Again int64     `json:"again,omitempty"` // as in Totals
	Pages int64     `json:"pages,omitempty"`
}
