package crawl

import (
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// policyOf is the policy that a crawl's settings name, unless another one is given.
func policyOf(c *blobschema.Crawl, given schedule.Policy) (schedule.Policy, error) {
	if given != nil {
		return given, nil
	}
	p, err := schedule.PolicyByName(c.Settings.Policy, c.Settings.Quality)
	if err != nil {
		return nil, fmt.Errorf("crawl %s: %w", c.ID, err)
	}
	return p, nil
}

// policy returns the policy of a crawl, with a table of the ranks of hosts. The table is an
// object, "" if there is none yet.
func (c *StepConfig) policy(t *actor.Task, name string) (schedule.Policy, error) {
	if name == "" || c.Policy != nil {
		return policyOf(&c.Crawl, c.Policy)
	}
	data, err := t.Object(name, 0, schedule.MaxHostRankBytes+1)
	if err != nil {
		return nil, err
	}
	v, err := t.Do(actor.Work{Do: func() (any, error) { return schedule.ParseHostRanks(data) }})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return schedule.NewPolicy(c.Crawl.Settings.Policy, v.(schedule.HostRanks))
}

// takeRanks uses the ranks of hosts that the wish names, where the crawl has none of its own: URLs
// found from now on are ranked by them.
func (st *state) takeRanks(t *actor.Task, name string) error {
	set := &st.cfg.Crawl.Settings
	if name == st.wish.HostRanks || set.HostRanks != "" || set.Quality != (schedule.HostRanks{}).Name() {
		return nil
	}
	policy, err := st.cfg.policy(t, name)
	switch {
	case errors.Is(err, actor.ErrNotFound): // newer ones have taken their place; the wish will say so
		return nil
	case err != nil:
		return err
	}
	st.policy, st.wish.HostRanks = policy, name
	return nil
}

// seedRank is the rank of a seed. Where hosts have ranks, it is as if none had.
func seedRank(p schedule.Policy, l frontier.Link) uint32 {
	return p.URLRank(schedule.Candidate{Fingerprint: l.Fingerprint, Host: string(l.URL.Host())})
}

// rank is the place of a URL in the order within its unit, by the crawl's policy.
func (st *state) rank(u weburl.URL, c schedule.Candidate) uint32 {
	c.Host = string(u.Host())
	return st.policy.URLRank(c)
}

// summing is the policy, if what several finds of a URL tell adds up; else nil.
func summing(p schedule.Policy) schedule.Rated {
	if r, ok := p.(schedule.Rated); ok && r.Adds() {
		return r
	}
	return nil
}

// cash is what each link of an answer brings: the page's quality, in equal parts. That
// of a robots.txt is a seed's.
func (st *state) cash(t schedule.Task, links []actor.Link) float64 {
	r := summing(st.policy)
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
