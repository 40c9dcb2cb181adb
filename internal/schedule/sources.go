package schedule

import "fmt"

// Quality says what a URL is worth when it is found. A new source of quality is a line in
// sources, and a row in TestSources.
type Quality struct {
	Name string // in QualityByName
	// Of returns the quality that one find of a URL gives it: more than 0, in a unit of the source's own.
	// It is a pure function.
	Of   func(c Candidate) float64
	Adds bool // a URL is worth the sum of its finds, not the best of them
}

// HostRank is the name of the source whose qualities [ParseHostRanks] reads.
const HostRank = "host-rank"

// sources are those that have a name; the first is the default.
var sources = []Quality{
	{"depth", ofDepth, false},
	// A URL is worth as many as there are pages that link to it, as far as is known while it waits.
	{"in-links", func(Candidate) float64 { return 1 }, true},
	// OPIC is an estimate of PageRank made on the way (Abiteboul, Preda, Cobena, "Adaptive on-line page importance
	// computation", 2003): a seed has cash of 1, and a page gives what it has in equal parts to what it links to. Unlike
	// the paper's, a page that is settled keeps what it gets.
	{"opic", func(c Candidate) float64 {
		if c.Depth == 0 {
			return 1
		}
		return c.Cash
	}, true},
	hostRanks(nil),
	// For experiments: qualities follow Zipf's law with the exponent 1 and are independent of all else. They come from
	// 16 bits of the URL's fingerprint: 1, 1/2, 1/3, ... 1/65536, each as likely as the others.
	{"zipf", func(c Candidate) float64 { return 1 / float64(1+c.Fingerprint>>48) }, false},
}

// ofDepth returns (6 + priority) / 11 / (1 + depth), so at most 1: URLs are worth less the farther they are from a
// seed, and sitemaps may say more about them.
func ofDepth(c Candidate) float64 {
	return float64(6+min(max(int(c.Priority), -5), 5)) / 11 / (1 + float64(c.Depth))
}

// hostRanks returns the source for crawls whose hosts' worth is known from elsewhere: the quality of a URL by depth
// times its host's number, which is 1 for a host that is not in the table.
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

// QualityByName returns a source of quality; "" is that by depth.
func QualityByName(name string) (Quality, error) {
	for _, q := range sources {
		if name == q.Name || name == "" {
			return q, nil
		}
	}
	return Quality{}, fmt.Errorf("no source of quality is called %q; there are %q", name, QualityNames())
}
