package schedule

import "fmt"

// Quality says what a URL is worth when it is found: more than 0, in a unit of the source's own.
// It must be a pure function of what it is given. A new source is a type like those below, a
// place in sources, and a row in TestSources.
type Quality interface {
	// Name is what QualityByName finds it by.
	Name() string
	// Of is the quality that one find of a URL gives it.
	Of(c Candidate) float64
	// Adds reports whether a URL is worth the sum of its finds, or the best of them.
	Adds() bool
}

// sources are those that have a name.
func sources() []Quality { return []Quality{Depth{}, InLinks{}, OPIC{}, HostRanks{}, Zipf{}} }

// QualityNames are the names that QualityByName knows.
func QualityNames() []string { return namesOf(sources()) }

// QualityByName returns a source of quality; "" is [Depth].
func QualityByName(name string) (Quality, error) {
	for _, q := range sources() {
		if name == q.Name() || name == "" {
			return q, nil
		}
	}
	return nil, fmt.Errorf("no source of quality is called %q; there are %q", name, QualityNames())
}

// Depth is for URLs that are worth less the farther they are from a seed, and what sitemaps say of
// them: (6 + priority) / 11 / (1 + depth), so at most 1.
type Depth struct{}

// Name is "depth".
func (Depth) Name() string { return "depth" }

// Of depends on depth and priority.
func (Depth) Of(c Candidate) float64 {
	return float64(6+min(max(int(c.Priority), -5), 5)) / 11 / (1 + float64(c.Depth))
}

// Adds is false.
func (Depth) Adds() bool { return false }

// InLinks is for URLs that are worth as many as there are pages that link to them, as far as is
// known while they wait.
type InLinks struct{}

// Name is "in-links".
func (InLinks) Name() string { return "in-links" }

// Of is 1.
func (InLinks) Of(Candidate) float64 { return 1 }

// Adds is true.
func (InLinks) Adds() bool { return true }

// OPIC is an estimate of PageRank made on the way (Abiteboul, Preda, Cobena, "Adaptive on-line page
// importance computation", 2003): a seed has cash of 1, and a page gives what it has in equal
// parts to what it links to. Unlike the paper's, a page that is settled keeps what it gets.
type OPIC struct{}

// Name is "opic".
func (OPIC) Name() string { return "opic" }

// Of is the cash that comes with the link.
func (OPIC) Of(c Candidate) float64 {
	if c.Depth == 0 {
		return 1
	}
	return c.Cash
}

// Adds is true.
func (OPIC) Adds() bool { return true }

// Zipf is for experiments: qualities follow Zipf's law with the exponent 1 and are independent
// of all else. They come from 16 bits of the URL's fingerprint: 1, 1/2, 1/3, ... 1/65536, each as
// likely as the others.
type Zipf struct{}

// Name is "zipf".
func (Zipf) Name() string { return "zipf" }

// Of depends on the fingerprint.
func (Zipf) Of(c Candidate) float64 { return 1 / float64(1+c.Fingerprint>>48) }

// Adds is false.
func (Zipf) Adds() bool { return false }
