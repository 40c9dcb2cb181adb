package schedule

import "fmt"

// Quality is a source of quality: it rates a URL when it is found. To add one, add a line to sources
// and a row to TestSources.
type Quality struct {
	Name string // in QualityByName
	// Of returns the quality that one find of a URL gives it: more than 0, in a unit of the source's own.
	// It is a pure function.
	Of   func(c Candidate) float64
	Adds bool // the quality of a URL is the sum of its finds, not the best of them
}

const (
	// HostRank is the name of the source whose qualities [ParseHostRanks] reads.
	HostRank = "host-rank"
	// RequisiteRank is the rank of a requisite: its turn comes before those of other pages.
	RequisiteRank = 1
)

// sources lists the sources with a name; the first is the default.
var sources = []Quality{
	{"depth", ofDepth, false},
	// The quality of a URL is the number of pages found so far that link to it.
	{"in-links", func(Candidate) float64 { return 1 }, true},
	// OPIC estimates PageRank during the crawl (Abiteboul, Preda, Cobena, "Adaptive on-line page importance
	// computation", 2003). A seed has cash of 1, and a page divides its cash equally among its links. Unlike in the
	// paper, a settled page keeps the cash that it receives.
	{"opic", func(c Candidate) float64 {
		if c.Depth == 0 {
			return 1
		}
		return c.Cash
	}, true},
	hostRanks(nil),
	// For experiments: qualities follow Zipf's law with the exponent 1 and depend on nothing else. They come from
	// 16 bits of the fingerprint of the URL: 1, 1/2, 1/3, ... 1/65536, all equally likely.
	{"zipf", func(c Candidate) float64 { return 1 / float64(1+c.Fingerprint>>48) }, false},
}

// ofDepth returns (6 + priority) / 11 / (1 + depth), which is at most 1: quality falls with the distance from a seed
// and rises with the priority in a sitemap.
func ofDepth(c Candidate) float64 {
	return float64(6+min(max(int(c.Priority), -5), 5)) / 11 / (1 + float64(c.Depth))
}

// hostRanks returns the source for crawls that begin with known ranks of hosts: the quality by depth times the factor
// of the host, which is 1 for a host that is not in the table.
func hostRanks(table map[string]float64) Quality {
	return Quality{HostRank, func(c Candidate) float64 {
		if v, ok := table[c.Host]; ok {
			return ofDepth(c) * v
		}
		return ofDepth(c)
	}, false}
}

// QualityNames returns the names that QualityByName knows.
func QualityNames() (names []string) {
	for _, q := range sources {
		names = append(names, q.Name)
	}
	return names
}

// QualityByName returns a source of quality; "" is the one by depth.
func QualityByName(name string) (Quality, error) {
	for _, q := range sources {
		if name == q.Name || name == "" {
			return q, nil
		}
	}
	return Quality{}, fmt.Errorf("no source of quality is called %q; there are %q", name, QualityNames())
}
