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

// policyOf returns the given policy, or else the one that the crawl's settings name.
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

// policy returns the policy of a crawl with the ranks of hosts from the named object; "": there is none yet.
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
	return schedule.NewPolicy(c.Crawl.Settings.Policy, v.(schedule.Quality))
}

// takeRanks adopts the ranks of hosts that the desired state names, if the crawl goes by ranks and was created without any.
// They apply to URLs found from now on.
func (st *state) takeRanks(t *actor.Task, name string) error {
	set := &st.cfg.Crawl.Settings
	if name == st.desired.HostRanks || set.HostRanks != "" || set.Quality != schedule.HostRank {
		return nil
	}
	policy, err := st.cfg.policy(t, name)
	switch {
	case errors.Is(err, actor.ErrNotFound): // newer ranks have replaced them; the desired state will name those
		return nil
	case err != nil:
		return err
	}
	st.policy, st.desired.HostRanks = policy, name
	return nil
}

// seedRank returns the rank of a seed. It ignores the ranks of hosts.
func seedRank(p schedule.Policy, l frontier.Link) uint32 {
	return p.URLRank(schedule.Candidate{Fingerprint: l.Fingerprint, Host: string(l.URL.Host())})
}

// rank returns a URL's place in the order within its politeness key, by the crawl's policy.
func (st *state) rank(u weburl.URL, c schedule.Candidate) uint32 {
	c.Host = string(u.Host())
	return st.policy.URLRank(c)
}

// summing returns the policy if it adds up several finds of a URL; else nil.
func summing(p schedule.Policy) schedule.Rated {
	if r, ok := p.(schedule.Rated); ok && r.Adds() {
		return r
	}
	return nil
}

// cash returns the share of a page's quality that each of its links gets. A robots.txt has the quality of a seed.
func (st *state) cash(t schedule.Task, links []actor.Link) float64 {
	r := summing(st.policy)
	if r == nil {
		return 0
	}
	n := 0
	for i := range links {
		if !links[i].NoFollow && links[i].Kind != actor.LinkRequisite {
			n++
		}
	}
	return r.Quality(t.Rank()) / float64(max(n, 1))
}
