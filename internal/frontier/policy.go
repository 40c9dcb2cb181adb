package frontier

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Policy ranks the two queues. It must be a pure function of its arguments.
type Policy interface {
	// URLRank orders the URLs of one host, lower first.
	URLRank(q blobschema.Queued) uint32
	// HostRank orders the hosts that are ready, higher first; equals take turns.
	HostRank(h HostView) float64
}

// HostView is what a policy may know of a host.
type HostView struct {
	Pending       int           // URLs in its queue
	Best          uint32        // rank of its best URL
	Connect       time.Duration // smoothed time to connect
	Response      time.Duration // smoothed time of one request
	PerConnection float64       // requests a connection serves, smoothed
}

// BreadthFirst asks for URLs in the order of their depth and lets hosts take turns.
type BreadthFirst struct{}

// URLRank is the number of links from a seed.
func (BreadthFirst) URLRank(q blobschema.Queued) uint32 { return uint32(q.Depth) }

// HostRank is the same for every host.
func (BreadthFirst) HostRank(HostView) float64 { return 0 }
