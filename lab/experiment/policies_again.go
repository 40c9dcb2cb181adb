package experiment

import (
	"fmt"

	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/lab/measure"
)

// againTrial is a crawl that knows the times of hosts from an earlier crawl with the same policy.
type againTrial struct {
	policyTrial
	before *campus // with the servers of the earlier crawl; nil: nothing is known
	knows  string
}

// newAgainTrials returns the trials of a campus. Between two crawls of "other servers", the times of all servers changed.
func newAgainTrials(c *campus, seed uint64, o campusOptions) (all []*againTrial) {
	other := *c
	other.servers = nil
	other.drawServers(seed+1, o)
	for _, policy := range []string{"performance", "capability"} {
		source := map[string]string{"capability": "depth"}[policy]
		for _, k := range []againTrial{{knows: "nothing"}, {before: c, knows: "the same servers"}, {before: &other, knows: "other servers"}} {
			k.policyTrial = policyTrial{campus: c, policy: policy, source: source}
			all = append(all, &k)
		}
	}
	return all
}

// prepare runs the earlier crawl.
func (t *againTrial) prepare(seed uint64, connections int) error {
	if t.before == nil {
		return nil
	}
	first := &policyTrial{campus: t.before, policy: t.policy, source: t.source}
	lab, err := first.lab(seed, connections)
	if err != nil {
		return err
	}
	store := virtual.NewStore()
	lab.Store, t.earlier = &store, &store
	m, err := measure.Measure(lab)
	if err == nil && !m.Finished {
		err = fmt.Errorf("%v: the earlier crawl did not finish", t)
	}
	return err
}

func againSection(s *policySet, all []*againTrial, best *policyTrial) Section {
	tab := Table{Name: "again", Caption: "Share of the pages by time", Columns: append(append([]string{"policy", "knows"}, timeHeads()...), areaHeads...)}
	for _, t := range all {
		tab.Rows = append(tab.Rows, append([]any{t.policy, t.knows}, s.row(&t.policyTrial, best, t.pages)...))
	}
	tenth := func(i int) float64 { return all[i].share(all[i].pages, s.at(0.1)) }
	return Section{
		Title: "What an earlier crawl's knowledge of hosts gains",
		Text: fmt.Sprintf(`A crawl knows nothing of a server before its first answer, so both policies first try all servers, fast or slow. A new crawl can begin with the times that the
last crawl measured (setting hosts-from). Here the campus is crawled twice with the same policy, and the table shows the second crawl. That changes the pages in the first tenth of the time by %+.0f%% with performance
and by %+.0f%% with capability by depth. The worst case is "other servers": the times of all servers were drawn again between the two crawls, so what the crawl believes is wrong. Then the pages in the first tenth change by %+.0f%% and %+.0f%%.
The loss stays small because the first measurement of each server replaces what the crawl believed.`,
			100*(tenth(1)/tenth(0)-1), 100*(tenth(4)/tenth(3)-1), 100*(tenth(2)/tenth(0)-1), 100*(tenth(5)/tenth(3)-1)),
		Tables: []Table{tab},
		Breaks: "the step ignores known hosts (`internal/crawl/known.go`); the rank of a host by *performance* ignores the time (`internal/schedule/policy.go`).",
		Checks: []Check{{What: "knowledge of the same servers gives both policies more pages in the first tenth", OK: tenth(1) > tenth(0) && tenth(4) > tenth(3)}},
	}
}
