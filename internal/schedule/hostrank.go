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

// ParseHostRanks returns the source of quality by the ranks of hosts. It reads lines of a host, a tab and a factor from
// 1e-6 to 1e6; a host that is not in the table has the factor 1. It skips empty lines and lines that begin with #. The
// last line of a host counts. Any other line is an error, and so are more than MaxHostRanks or MaxHostRankBytes.
func ParseHostRanks(data []byte) (Quality, error) {
	table, err := parseHostRanks(data)
	return hostRanks(table), err
}

func parseHostRanks(data []byte) (map[string]float64, error) {
	const least, most = 1e-6, 1e6
	table := map[string]float64{}
	if len(data) > MaxHostRankBytes {
		return nil, fmt.Errorf("ranks of hosts: %d bytes, more than %d", len(data), MaxHostRankBytes)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		wrong := func(err error) (map[string]float64, error) {
			return nil, fmt.Errorf("ranks of hosts, line %d: %w", n, err)
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
		if table[string(u.Host())] = v; len(table) > MaxHostRanks {
			return wrong(fmt.Errorf("more than %d hosts", MaxHostRanks))
		}
	}
	return table, nil
}

// maxAuthority is longer than any host with a port.
const maxAuthority = 300
