package crawl

import (
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

const (
	// carefulRequests is the number of requests for which the first alarm makes steps careful. Each further alarm
	// quadruples it, so that a URL that crashes steps is found among any number of URLs.
	carefulRequests = 32
	maxAlarms       = 8
	// suspectCrashes is the number of careful steps that a URL may crash before it is refused. A few crashes may be chance,
	// for example a process that a user kills again and again.
	suspectCrashes = 5
)

// care finds URLs that crash steps. After too many crashes, steps request one URL at a time, the suspect, and name it in a
// commit first. If such a step crashes, the suspect is counted as the cause.
type care struct {
	left     int            // requests still to be made one at a time
	alarms   int            // number of times that steps became careful
	crashes  map[string]int // crashes of steps that requested only this URL
	suspect  *schedule.Task // task that waits for the commit that names it; nil: none
	clearing bool           // the suspect did no harm; a commit must record that before the next request
}

// resume restores the state of the last commit, and raises the alarm after too many crashes.
func (c *care) resume(man *blobschema.Manifest, crashes, allowed int) {
	c.left, c.alarms, c.crashes = man.Careful, man.Alarms, map[string]int{}
	if c.left == 0 && crashes > allowed {
		c.left = carefulRequests << (2 * min(c.alarms, maxAlarms))
		c.alarms++
	}
	for _, u := range man.Suspects {
		c.crashes[u]++
	}
}

// record writes into a manifest what the next step must know.
func (c *care) record(man *blobschema.Manifest) {
	for _, u := range slices.Sorted(maps.Keys(c.crashes)) {
		man.Suspects = append(man.Suspects, slices.Repeat([]string{u}, c.crashes[u])...)
	}
	if c.suspect != nil { // counts against it, unless a later commit clears it
		man.Suspects = append(man.Suspects, c.suspect.Request.URL.String())
	}
	man.Careful, man.Alarms = c.left, c.alarms
}

// commits reports whether a commit must come before the next request.
func (c *care) commits() bool { return c.suspect != nil || c.clearing }

// allows reports whether another request may start beside underWay others.
func (c *care) allows(underWay int) bool { return !c.commits() && (c.left == 0 || underWay == 0) }

// refuses reports whether a URL has crashed too many steps to be requested.
func (c *care) refuses(url string) bool { return c.crashes[url] >= suspectCrashes }

// done records that a request for a URL has ended without a crash.
func (c *care) done(url string) {
	if c.left > 0 {
		c.left, c.clearing = c.left-1, true
	}
	delete(c.crashes, url)
}

// release returns the suspect, which no longer waits, or nil.
func (c *care) release() *schedule.Task {
	t := c.suspect
	c.suspect = nil
	return t
}
