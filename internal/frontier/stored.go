package frontier

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/internal/polite"
)

// HostInfo is what the stored state of a host says, for those who only look.
type HostInfo struct {
	Pace     polite.Pace
	HTTP     RobotsInfo // of http URLs
	HTTPS    RobotsInfo // of https URLs
	Requests uint64     // robots.txt included, and those that brought nothing
	Failures uint64
}

// RobotsInfo is what is known of one robots.txt.
type RobotsInfo struct {
	Rules    *polite.Robots // nil if none was read yet
	Until    time.Time      // Rules are good until then
	Next     string         // where its redirect points to, "" for the usual place
	Attempts uint8          // in vain, since the last rules
	Retry    time.Time      // it is asked for again no earlier; zero for at once
}

// DecodeHost reads the Data of a [blobschema.HostState]. It keeps nothing of data.
func DecodeHost(data []byte) (HostInfo, error) {
	var h host
	if err := h.decode(data); err != nil {
		return HostInfo{}, fmt.Errorf("decode host state: %w", err)
	}
	info := HostInfo{Pace: h.pace, Requests: h.requests, Failures: h.failures}
	for i, to := range []*RobotsInfo{&info.HTTP, &info.HTTPS} {
		r := &h.robots[i]
		*to = RobotsInfo{Rules: r.rules, Until: r.until, Next: r.next.String(), Attempts: r.attempts, Retry: r.retry}
	}
	return info, nil
}
