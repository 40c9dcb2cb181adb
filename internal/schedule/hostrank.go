package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds of a table of hosts' ranks.
const (
	MaxHostRanks     = 1_000_000
	MaxHostRankBytes = 64 << 20
)

// HostRanks is a source of quality for crawls whose hosts' worth is known from elsewhere: the
// quality of a URL by [Depth] times its host's number, which is 1 for a host that is not in the table.
type HostRanks struct{ of map[string]float64 }

// ParseHostRanks reads lines of a host, a tab and a number from 1e-6 to 1e6, as large as the host
// is better than one that is not in the table. Empty lines, and those that begin with #, are
// left out. Of a host's lines the last counts. It is an error if a line is none of this, or if there are
// more than MaxHostRanks or MaxHostRankBytes.
func ParseHostRanks(data []byte) (HostRanks, error) {
	const least, most = 1e-6, 1e6
	r := HostRanks{of: map[string]float64{}}
	if len(data) > MaxHostRankBytes {
		return HostRanks{}, fmt.Errorf("ranks of hosts: %d bytes, more than %d", len(data), MaxHostRankBytes)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		wrong := func(err error) (HostRanks, error) {
			return HostRanks{}, fmt.Errorf("ranks of hosts, line %d: %w", n, err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, number, ok := bytes.Cut(line, []byte("\t"))
		if !ok {
			return wrong(errors.New("it has no tab"))
		}
		u, err := weburl.Parse("https://" + string(name) + "/")
		if err != nil || u.RequestURI() != "/" || len(name) > maxAuthority {
			return wrong(fmt.Errorf("%.100q is not a host", name))
		}
		v, err := strconv.ParseFloat(string(number), 64)
		if err != nil || math.IsNaN(v) || v < least || v > most {
			return wrong(fmt.Errorf("%.100q is not a number from %g to %g", number, least, most))
		}
		if r.of[string(u.Host())] = v; len(r.of) > MaxHostRanks {
			return wrong(fmt.Errorf("more than %d hosts", MaxHostRanks))
		}
	}
	return r, nil
}

// maxAuthority is longer than any host with a port.
const maxAuthority = 300

// Name is "host-rank".
func (HostRanks) Name() string { return "host-rank" }

// Of depends on host, depth and priority.
func (r HostRanks) Of(c Candidate) float64 {
	q := Depth{}.Of(c)
	if v, ok := r.of[c.Host]; ok {
		q *= v
	}
	return q
}

// Adds is false.
func (HostRanks) Adds() bool { return false }
