package crawl

type Signal interface{ signal() }

type (
	// Stop makes a step end soon: it aborts its requests and commits finished work.
	Stop struct{}
	// ReadOrders makes a step read the operator's orders now instead of with its next commit.
	ReadOrders struct{}
	// Demands tells which partitions have little or nothing to do, so that mail for them is sent soon. Of has the demand
	// of each partition by its ID; partitions beyond its end are Fed. The sender must not change the slice afterwards.
	Demands struct{ Of []Demand }
)

func (Stop) signal()       {}
func (ReadOrders) signal() {}
func (Demands) signal()    {}

type Demand uint8

// Demand values, from least to most.
const (
	NoDemand   Demand = iota // enough hosts are being fetched
	LowDemand                // few hosts are being fetched
	HighDemand               // no host is being fetched, and none will be soon
)
