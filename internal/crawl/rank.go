package crawl

import (
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// policyOf is the policy that a crawl's settings name, unless another one is given.
func policyOf(c *blobschema.Crawl, given frontier.Policy) (frontier.Policy, error) {
	if given != nil {
		return given, nil
	}
	p, err := frontier.PolicyByName(c.Settings.Policy, c.Settings.Quality)
	if err != nil {
		return nil, fmt.Errorf("crawl %s: %w", c.ID, err)
	}
	return p, nil
}

// readRanks completes the policy of a crawl that goes by the ranks of hosts: its table is an
// object, "" if there is none yet.
func (s *Step) readRanks(t *actor.Task, name string) error {
	if name == "" || s.cfg.Policy != nil {
		return nil
	}
	data, err := t.Object(name, 0, frontier.MaxHostRankBytes+1)
	if err != nil {
		return err
	}
	v, err := t.Do(actor.Work{Do: func() (any, error) { return frontier.ParseHostRanks(data) }})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.policy, err = frontier.NewPolicy(s.cfg.Crawl.Settings.Policy, v.(frontier.HostRanks))
	return err
}

// takeRanks goes by the ranks of hosts that the wish names, where the crawl has none of its own: URLs
// found from now on are ranked by them.
func (s *Step) takeRanks(t *actor.Task, name string) error {
	set := &s.cfg.Crawl.Settings
	if name == s.st.wish.HostRanks || set.HostRanks != "" || set.Quality != (frontier.HostRanks{}).Name() {
		return nil
	}
	switch err := s.readRanks(t, name); {
	case errors.Is(err, actor.ErrNotFound): // newer ones have taken their place; the wish will say so
		return nil
	case err != nil:
		return err
	}
	s.st.policy, s.st.wish.HostRanks = s.policy, name
	return nil
}

// seedRank is the rank of a seed. Where hosts have ranks, it is as if none had.
func seedRank(p frontier.Policy, l frontier.Link) uint32 {
	return p.URLRank(frontier.Candidate{Fingerprint: l.Fingerprint, Host: string(l.URL.Host())})
}

// rank is the place of a URL in the order within its unit, by the crawl's policy.
func (s *Step) rank(u weburl.URL, c frontier.Candidate) uint32 {
	c.Host = string(u.Host())
	return s.policy.URLRank(c)
}

// summing is the policy, if what several finds of a URL tell adds up; else nil.
func summing(p frontier.Policy) frontier.Rated {
	if r, ok := p.(frontier.Rated); ok && r.Adds() {
		return r
	}
	return nil
}

// cash is what each link of an answer brings: the page's quality, in equal parts. That
// of a robots.txt is a seed's.
func (s *Step) cash(t frontier.Task, links []actor.Link) float64 {
	r := summing(s.policy)
	if r == nil {
		return 0
	}
	n := 0
	for i := range links {
		if !links[i].NoFollow {
			n++
		}
	}
	return r.Quality(t.Rank()) / float64(max(n, 1))
}
