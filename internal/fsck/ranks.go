package fsck

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// rankSums checks the ranks that were computed last, and what is stored of those under way.
// Each partition has its result of a job that is done, and all ranks add up to 1.
func rankSums(v *judge, fact any) {
	if _, ends := fact.(end); !ends {
		return
	}
	key := naming.RankKey(v.id)
	if _, found := v.raw(key); !found {
		return
	}
	keys := []string{key}
	for _, p := range v.parts {
		keys = append(keys, naming.RankHeadKey(v.id, p.id))
	}
	v.steadily(keys, func() {
		v.ranks = RanksReport{}
		r := &rankJob{judge: v, key: key}
		r.check()
	})
}

// RanksReport is what a check found of the ranks of a crawl.
type RanksReport struct {
	Job        uint64 `json:"job,omitempty"` // the last one that is finished
	Partitions int    `json:"partitions"`    // with a result of it
	Pages      int64  `json:"pages"`         // with a rank
	Hosts      int64  `json:"hosts"`
	Anchors    int64  `json:"anchors"`             // pages with texts of links to them
	Running    uint64 `json:"running,omitempty"`   // job that is under way
	Abandoned  uint64 `json:"abandoned,omitempty"` // job that was begun last, and has no result
}

// sumTolerance is how far the sum of all ranks may be from 1: tables keep seven digits.
const sumTolerance = 1e-6

// rankJob is the last job, with the sums of what partitions have of the one that is finished.
type rankJob struct {
	*judge
	key   string
	job   ranks.Job
	done  *ranks.Job // finished; nil if there is none
	sizes ranks.Totals
	nodes int64 // by the tables
	pages float64
	hosts float64
	lost  bool // something that the sums are of cannot be read
}

func (r *rankJob) check() {
	var found bool
	if r.job, found = record[ranks.Job](r.checker, r.key); !found {
		return
	}
	j := &r.job
	if j.Version != wire.Version || len(j.Inputs) > partition.MaxPartitions {
		r.damaged(r.key, "it is of version %d, with %d partitions", j.Version, len(j.Inputs))
		return
	}
	r.checkInputs()
	switch {
	case j.Done.IsZero():
		r.ranks.Running = j.Number
	case j.Failed != "":
		r.ranks.Abandoned = j.Number
	}
	if r.done = j.Finished(); r.done != nil {
		r.ranks.Job = r.done.Number
		r.checkText(r.done.HostRanks)
		r.checkText(r.done.PageRanks)
		if r.done.CrawledHosts != "" { // earlier versions made none
			r.checkText(r.done.CrawledHosts)
		}
	}
	if p := j.Previous; p != nil && p != r.done { // readers may be at it still
		for _, name := range []string{p.HostRanks, p.PageRanks, p.CrawledHosts} {
			r.name(name, r.key)
		}
	}
	for p := range partition.ID(max(len(r.parts), len(j.Inputs))) {
		r.checkPart(p)
	}
	r.checkSums()
}

// checkInputs checks the commits that the job is about.
func (r *rankJob) checkInputs() {
	if r.job.Map != "" {
		r.name(r.job.Map, r.key)
	}
	for i, in := range r.job.Inputs {
		if in.Partition != partition.ID(i) {
			r.violate(r.key, "its input %d is of partition %d", i, in.Partition)
			continue
		}
		if i >= len(r.parts) || in.Seq == 0 || r.parts[i].man == nil || in.Seq > r.parts[i].man.Seq {
			continue // none, or later than the head that was read
		}
		name := in.Commit(r.id)
		r.must(name == r.commitOf(in.Partition, in.Seq), r.key, "it is about %s, which is no visible commit", name)
	}
}

// rankPart is what a partition has of jobs.
type rankPart struct {
	*rankJob
	head ranks.Head
	p    partition.ID
	key  string
}

func (r *rankJob) checkPart(p partition.ID) {
	bad := r.bad
	part := rankPart{rankJob: r, p: p, key: naming.RankHeadKey(r.id, p)}
	var found bool
	if part.head, found = record[ranks.Head](r.checker, part.key); r.bad > bad {
		r.lost = true
		return
	}
	if found {
		if int(p) < len(r.parts) {
			r.parts[p].rankHead = part.head
		}
		part.checkObjects()
	}
	if r.done == nil {
		return
	}
	inputs := r.done.Inputs
	result, ok := part.head.Result(r.done.Number)
	if !found || !ok {
		r.must(int(p) >= len(inputs), part.key, "job %d is done, and of this partition there is no result", r.done.Number)
		return
	}
	r.ranks.Partitions++
	if int(p) < len(inputs) {
		r.must(result.Seq == inputs[p].Seq, part.key,
			"its result of job %d is of the commits up to %d, and the job is of those up to %d", r.done.Number, result.Seq, inputs[p].Seq)
	}
	part.addResult(&result)
}

// checkObjects checks that what the head names is there, and can be read.
func (r *rankPart) checkObjects() {
	h := &r.head
	r.must(h.Partition == r.p && h.Job <= r.job.Number, r.key,
		"it is of partition %d and job %d; the job is %d", h.Partition, h.Job, r.job.Number)
	r.must(len(h.Rounds) < 2 || len(h.Rounds) == 2 && h.Rounds[0].Number < h.Rounds[1].Number, r.key,
		"it has %d rounds, out of order or too many", len(h.Rounds))
	dropped := map[string]bool{} // they may be there, or not
	for _, d := range h.Dropped {
		r.name(d.Object, r.key)
		dropped[d.Object] = true
	}
	for i := range h.Rounds {
		round := &h.Rounds[i]
		if round.Object == "" {
			continue
		}
		r.name(round.Object, r.key)
		if !dropped[round.Object] && h.Job == r.job.Number && r.job.Done.IsZero() { // else it goes: only rounds needed it
			r.checkRound(round)
		}
	}
	for _, res := range []*ranks.Result{&h.Next, &h.Last} {
		for _, name := range res.Objects() {
			r.name(name, r.key)
		}
		for _, of := range []struct {
			name   string
			decode func([]byte) error
		}{
			{res.Graph, func(b []byte) error { _, err := ranks.DecodeGraph(b); return err }},
			{res.Layout, func(b []byte) error {
				if res.Job != r.job.Number {
					return nil // nobody knows any more how many partitions it was of
				}
				_, err := ranks.DecodeLayout(b, len(r.job.Inputs))
				return err
			}},
			{res.Anchors, func(b []byte) error { _, err := ranks.DecodeAnchors(b); return err }},
			{res.Table, func(b []byte) error { _, err := ranks.DecodeTable(b); return err }},
			{res.Rest, func(b []byte) error { _, err := ranks.DecodeTable(b); return err }},
			{res.Hosts, func(b []byte) error { _, err := ranks.DecodeHosts(b); return err }},
		} {
			// The result of the job that is done is read for the sums, except for what only steps read.
			summed := r.done != nil && res.Job == r.done.Number && of.name != res.Graph && of.name != res.Layout
			if of.name != "" && !dropped[of.name] && !summed {
				rankObject(r, of.name, res.Job, func(b []byte) (none struct{}, err error) { return none, of.decode(b) })
			}
		}
	}
}

// checkRound checks the object of a round.
func (r *rankPart) checkRound(round *ranks.Round) {
	data, ok := rankObject(r, round.Object, r.head.Job, func(b []byte) ([]byte, error) { return b, nil })
	end := int64(0)
	for n := range len(r.job.Inputs) + 1 {
		off, length, err := round.Part(n)
		if err != nil {
			r.damaged(r.key, "%v", err)
			return
		}
		end = off + length
	}
	if ok && end != int64(len(data)) {
		r.damaged(round.Object, "it has %d bytes, and by its head %d", len(data), end)
	}
}

// rankObject reads and decodes an object that the head names, made by a job of that number or before.
func rankObject[T any](r *rankPart, name string, job uint64, decode func([]byte) (T, error)) (T, bool) {
	v, data, ok := decoded(r.checker, name, r.key, decode)
	p, of, what, err := naming.ParseRankObject(name)
	if ok && (err != nil || p != r.p || of > job || naming.RankObject(r.id, p, of, what, data) != name) {
		r.damaged(name, "it is not the object that its name says, or none of partition %d and job %d", r.p, job)
	}
	return v, ok
}

// summed is rankObject for an object of the job that is done, which the sums need.
func summed[T any](r *rankPart, name string, job uint64, decode func([]byte) (T, error)) (v T, ok bool) {
	if r.must(name != "", r.key, "its result of job %d has no tables", job); name != "" {
		v, ok = rankObject(r, name, job, decode)
	}
	r.lost = r.lost || !ok
	return v, ok
}

// addResult adds the result of a partition to the sums.
func (r *rankPart) addResult(res *ranks.Result) {
	for _, name := range []string{res.Table, res.Rest} {
		if t, ok := summed(r, name, res.Job, ranks.DecodeTable); ok {
			r.addTable(name, t, name == res.Table)
		}
	}
	if hosts, ok := summed(r, res.Hosts, res.Job, ranks.DecodeHosts); ok {
		for _, n := range hosts.Ranks {
			r.hosts += n
		}
		r.sizes.Hosts += int64(len(hosts.Names))
		r.Checked += int64(len(hosts.Names))
		r.must(slices.IsSorted(hosts.Names), res.Hosts, "its hosts are not in order")
	}
	anchors, _ := summed(r, res.Anchors, res.Job, ranks.DecodeAnchors)
	r.sizes.Anchors += int64(len(anchors))
	for i := range anchors {
		host := anchors[i].Host
		r.show(&located{object: res.Anchors, what: "texts of links to", name: host, unit: r.unitOf(host), slot: anchors[i].Slot})
	}
}

// addTable adds a table of ranks; DecodeTable has checked each.
func (r *rankPart) addTable(name string, t *ranks.Table, crawled bool) {
	if r.nodes == 0 {
		r.nodes = t.Nodes()
	}
	r.must(t.Nodes() == r.nodes, name, "it is of %d pages, another table of %d", t.Nodes(), r.nodes)
	for i := range t.Len() {
		_, n := t.At(i)
		r.rankJob.pages += n
	}
	r.Checked += int64(t.Len())
	if r.sizes.Pages += int64(t.Len()); crawled {
		r.sizes.Crawled += int64(t.Len())
	}
}

// checkSums checks that all ranks are there.
func (r *rankJob) checkSums() {
	if r.done == nil || r.lost {
		return
	}
	is, t := &r.sizes, &r.done.Totals
	r.ranks.Pages, r.ranks.Hosts, r.ranks.Anchors = is.Pages, is.Hosts, is.Anchors
	same := is.Pages == t.Pages && is.Crawled == t.Crawled && is.Hosts == t.Hosts && is.Anchors == t.Anchors
	same = same && (r.nodes == t.Pages || t.Pages == 0)
	r.must(same, r.key, "tables of job %d have %d pages, %d of them crawled, of %d; %d hosts and texts for %d pages; it says %+v",
		r.done.Number, is.Pages, is.Crawled, r.nodes, is.Hosts, is.Anchors, *t)
	r.must(is.Pages == 0 || math.Abs(r.pages-1) <= sumTolerance, r.key, "the ranks of pages add up to %.9g, not 1", r.pages)
	r.must(is.Hosts == 0 || math.Abs(r.hosts-1) <= sumTolerance, r.key, "the ranks of hosts add up to %.9g, not 1", r.hosts)
}

// checkText checks a table for people and programs: lines of a name, a tab and a number, best first.
func (r *rankJob) checkText(name string) {
	if name == "" {
		r.violate(r.key, "job %d is done, and has no table of hosts or pages", r.done.Number)
		return
	}
	r.name(name, r.key)
	data, ok := r.object(name, r.key)
	if !ok {
		return
	}
	if is := naming.Ranks(r.id, data); is != name {
		r.damaged(name, "by its content its name should be %s", is)
	}
	before := math.Inf(1)
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		of, number, ok := bytes.Cut(line, []byte("\t"))
		rank, err := strconv.ParseFloat(string(number), 64)
		if !ok || err != nil || len(of) == 0 || !(rank > 0 && rank <= before) {
			r.violate(name, "line %d is no name and rank, or out of order: %.100q", n, line)
			return
		}
		data, before = rest, rank
	}
}
