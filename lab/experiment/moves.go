package experiment

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
	"github.com/orbweaver/orbweaver/partition"
)

// liveTrial is a crawl with more and more partitions, then fewer and fewer.
type liveTrial struct {
	measure.Measured
	truth   int           // number of pages in the web
	changes []*liveChange // in order
	byEpoch map[int]*liveChange
}

// liveChange is one change of the number of partitions.
type liveChange struct {
	from, to, slots int
	pauses          []time.Duration
}

// liveEvery is the time between two changes of the number of partitions.
const liveEvery = time.Minute

func (t *liveTrial) run(s scale) error {
	web, err := newWeb(s.seed+1, s.livePages)
	if err != nil {
		return err
	}
	t.truth, t.byEpoch = web.Pages(), map[int]*liveChange{}
	growing, done := true, false
	t.Measured, err = measure.Measure(measure.Lab{
		Seed: s.seed, Web: web, Partitions: 1, Most: s.most + 1, Slots: s.slots, Connections: 2, PlanEvery: liveEvery,
		Plan: func(m *partition.Map) (*partition.Map, error) {
			n := len(m.Partitions())
			if n > s.most {
				growing = false
			}
			if !growing && n == 1 {
				done = true
			}
			if done {
				return nil, nil
			}
			c := &liveChange{from: n, to: n + 1}
			if !growing {
				c.to = n - 1
			}
			moves, err := m.Plan(m.Active(c.to))
			if err != nil {
				return nil, err
			}
			c.slots = len(moves)
			next, err := m.Apply(moves)
			if err == nil {
				t.byEpoch[int(next.Epoch())] = c
				t.changes = append(t.changes, c)
			}
			return next, err
		},
	})
	if err != nil {
		return fmt.Errorf("a crawl from 1 partition to %d and back: %w", s.most+1, err)
	}
	for _, p := range t.Pauses {
		if c := t.byEpoch[int(p.Epoch)]; c != nil {
			c.pauses = append(c.pauses, p.Length)
		}
	}
	return nil
}

// moveSection reports on changes of the number of partitions.
func moveSection(s scale, web *simweb.Web, live *liveTrial) (Section, error) {
	sec := Section{Title: "Partitions that come and go", Text: fmt.Sprintf(moveText, grouped(s.slots), grouped(web.Hosts()))}
	if err := compareWays(s, web, &sec); err != nil {
		return sec, err
	}
	sec.live(s, live)
	return sec, nil
}

const moveText = `Partitions are added one by one, and then removed one by one. The table shows which hosts change their owner, for the map and for three
other assignments: the hash modulo the number of partitions, jump hash (Lamping, Veach, 2014), and a table of all hosts in every partition.
The first two are functions of the host and the number of partitions alone. They hand over no state, so a new owner fetches again what it
did not own before. (Jump hash could hand over state too, but it would have to examine each host, and only the last partition could leave.)
The table moves as few hosts as the map, but has an entry per host; the map has %s entries for any number of hosts (here %s).
With a hand-over of state nothing is fetched again. For the map this is measured in a crawl whose partitions change while it runs.`

// compareWays adds the moves of each way to assign hosts.
func compareWays(s scale, web *simweb.Web, sec *Section) error {
	key := binary.BigEndian.AppendUint64(make([]byte, 8), s.seed)
	hash, err := partition.NewHash([16]byte(key), s.slots)
	if err != nil {
		return err
	}
	var hosts []string
	var hashes []uint64
	pages := 0
	for h := range web.Hosts() {
		f := web.Host(h)
		hosts, hashes = append(hosts, f.Authority), append(hashes, hash.Fingerprint(f.Authority))
		pages += f.Pages
	}
	ways := assigners(hash, hosts)
	tab := Table{Name: "moves", Caption: "Hosts that change their owner, in percent of all hosts, and pages fetched again, in percent of the pages fetched so far",
		Columns: []string{"from", "to", "least possible"}}
	for _, w := range ways {
		tab.Columns = append(tab.Columns, w.name)
	}
	for _, w := range ways {
		tab.Columns = append(tab.Columns, w.name+": again")
	}
	lines := make([]map[int]float64, len(ways))
	owners := make([][]int, len(ways))
	for i, w := range ways {
		lines[i] = map[int]float64{}
		owners[i] = w.assign(hashes, 1, nil)
	}
	for _, c := range changes(s.most) {
		row := []any{c[0], c[1], 100 / float64(max(c[0], c[1]))}
		var again []any
		for i, w := range ways {
			next := w.assign(hashes, c[1], owners[i])
			moved, twice := 0, 0
			for h := range hosts {
				if next[h] != owners[i][h] {
					moved++
					if !w.handsOver {
						twice += web.Host(h).Pages
					}
				}
			}
			owners[i] = next
			row, again = append(row, 100*float64(moved)/float64(len(hosts))), append(again, 100*float64(twice)/float64(pages))
			if c[1] > c[0] {
				lines[i][c[1]] = 100 * float64(moved) / float64(len(hosts))
			}
		}
		tab.Rows = append(tab.Rows, append(row, again...))
	}
	plot := Plot{Name: "moves", Title: "Hosts that change their owner when a partition is added", X: "partitions afterwards", Y: "per cent of all hosts"}
	for i, w := range ways {
		plot.Series = append(plot.Series, pairs(w.name, i, i > 1, lines[i]))
	}
	sec.Tables, sec.Plots = append(sec.Tables, tab), append(sec.Plots, plot)
	return nil
}

// changes returns the changes from 1 partition to most+1 and back.
func changes(most int) (out [][2]int) {
	for n := 1; n <= most; n++ {
		out = append(out, [2]int{n, n + 1})
	}
	for n := most + 1; n > 1; n-- {
		out = append(out, [2]int{n, n - 1})
	}
	return out
}

// live adds the measurements of a crawl.
func (sec *Section) live(s scale, t *liveTrial) {
	tab := Table{
		Name: "pauses",
		Caption: fmt.Sprintf(`The same during a crawl of %s pages, with a change every %v: slots that moved, and the pause of a slot in seconds, from the last request
that its owner may send until the first that its new owner may send`, grouped(t.truth), liveEvery),
		Columns: []string{"from", "to", "slots moved", "of", "median", "99%", "longest"},
	}
	least := true
	for _, c := range t.changes {
		slices.Sort(c.pauses)
		at := func(part float64) any {
			if len(c.pauses) == 0 {
				return nil
			}
			return c.pauses[min(len(c.pauses)-1, int(part*float64(len(c.pauses))))].Seconds()
		}
		tab.Rows = append(tab.Rows, []any{c.from, c.to, c.slots, s.slots, at(0.5), at(0.99), at(1)})
		least = least && (c.to < c.from || c.slots == s.slots/c.to) && len(c.pauses) == c.slots
	}
	sec.Tables = append(sec.Tables, tab)
	sec.Breaks = "`partition.Map.Plan` gives slot *s* to partition *s* modulo their number."
	sec.Checks = append(sec.Checks,
		Check{fmt.Sprintf("there are %d changes, each moves as few slots as can be, and all of them arrive", 2*s.most), least && len(t.changes) == 2*s.most},
		Check{fmt.Sprintf("none of %s pages is lost", grouped(t.truth)), t.Finished && t.Pages-t.Twice == t.truth},
		Check{"none is fetched twice", t.Twice == 0})
}
