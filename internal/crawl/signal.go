package crawl

type Signal interface{ signal() }

type (
	// Stop makes a step end soon: it aborts its requests and commits finished work.
	Stop struct{}
	// Look makes a step read the operator's orders now instead of with its next commit.
	Look struct{}
	// Appetites tells which partitions have little or nothing to do, so that mail for them is sent soon. Of has the appetite
	// of each partition by its ID; partitions beyond its end are Fed. The sender must not change the slice afterwards.
	Appetites struct{ Of []Appetite }
)

func (Stop) signal()      {}
func (Look) signal()      {}
func (Appetites) signal() {}

type Appetite uint8

// Appetite values, from least to most.
const (
	Fed     Appetite = iota // enough hosts are being fetched
	Hungry                  // few hosts are being fetched
	Starved                 // no host is being fetched, and none will be soon
)
