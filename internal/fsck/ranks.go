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

// rankSums checks the ranks of the last finished job, and the objects of a job under way. Each
// partition has its result of a finished job, and all ranks add up to 1.
func rankSums(v *judge, fact any) {
	if _, ends := fact.(end); !ends {
		return
	}
	keys := []string{naming.RankKey(v.id)}
	for _, p := range v.parts {
		keys = append(keys, naming.RankHeadKey(v.id, p.id))
	}
	v.steadily(keys, func() {
		v.ranks = RanksReport{}
		r := &rankJob{judge: v, key: keys[0]}
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

// rankJob is the last job, with the sums of the results of the finished one.
type rankJob struct {
	*judge
	key   string
	job   ranks.Job
	done  *ranks.Job // the last finished one; nil if no job has finished
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
		if i >= len(r.parts) || in.Seq == 0 || in.Seq > r.parts[i].man.Seq {
			continue // none, or later than the head that was read
		}
		name := in.Commit(r.id)
		r.must(name == r.commitOf(in.Partition, in.Seq), r.key, "it is about %s, which is no visible commit", name)
	}
}

// rankPart is a partition and what its head of rank jobs names.
type rankPart struct {
	*rankJob
	p       partition.ID
	key     string
	dropped map[string]bool // objects that may be deleted already
}

func (r *rankJob) checkPart(p partition.ID) {
	part, bad := rankPart{r, p, naming.RankHeadKey(r.id, p), map[string]bool{}}, r.bad
	h, found := record[ranks.Head](r.checker, part.key)
	if r.bad > bad {
		r.lost = true
		return
	}
	if found && int(p) < len(r.parts) {
		r.parts[p].rankHead = h
	}
	summed := uint64(0) // job whose result is a part of the sums
	if r.done != nil {
		inputs := r.done.Inputs
		if result, ok := h.Result(r.done.Number); !ok {
			r.must(int(p) >= len(inputs), part.key, "job %d is done, and of this partition there is no result", r.done.Number)
		} else {
			r.ranks.Partitions++
			summed = result.Job
			if int(p) < len(inputs) {
				r.same(part.key, "last commit in its result", result.Seq, inputs[p].Seq)
			}
		}
	}
	if found {
		part.checkObjects(&h, summed)
	}
}

// checkObjects checks that what a head names is there, and can be read. It adds up the result of
// the job that is part of the sums, 0 for none.
func (r *rankPart) checkObjects(h *ranks.Head, summed uint64) {
	r.must(h.Partition == r.p && h.Job <= r.job.Number, r.key, "it is of partition %d and job %d; the job is %d", h.Partition, h.Job, r.job.Number)
	ordered := len(h.Rounds) < 2 || len(h.Rounds) == 2 && h.Rounds[0].Number < h.Rounds[1].Number
	r.must(ordered, r.key, "it has %d rounds, out of order or too many", len(h.Rounds))
	for _, d := range h.Dropped {
		r.name(d.Object, r.key)
		r.dropped[d.Object] = true
	}
	for i := range h.Rounds {
		round := &h.Rounds[i]
		if round.Object == "" {
			continue
		}
		r.name(round.Object, r.key)
		if h.Job == r.job.Number && r.job.Done.IsZero() { // else it goes: only rounds needed it
			r.checkRound(round, h.Job)
		}
	}
	for _, result := range []ranks.Result{h.Next, h.Last} {
		for _, name := range result.Objects() {
			r.name(name, r.key)
		}
		r.checkResult(&result, summed)
		if result.Job == summed {
			summed = 0 // only once
		}
	}
}

// checkResult reads the objects of a result, and adds them up if it is of the job that is part of the sums.
func (r *rankPart) checkResult(of *ranks.Result, summed uint64) {
	readRank(r, of.Graph, of.Job, ranks.DecodeGraph)
	readRank(r, of.Layout, of.Job, func(b []byte) (*ranks.Layout, error) {
		if of.Job != r.job.Number {
			return nil, nil // nobody knows any more how many partitions it was of
		}
		return ranks.DecodeLayout(b, len(r.job.Inputs))
	})
	anchors, okAnchors := readRank(r, of.Anchors, of.Job, ranks.DecodeAnchors)
	table, okTable := readRank(r, of.Table, of.Job, ranks.DecodeTable)
	rest, okRest := readRank(r, of.Rest, of.Job, ranks.DecodeTable)
	hosts, okHosts := readRank(r, of.Hosts, of.Job, ranks.DecodeHosts)
	if summed == 0 || of.Job != summed {
		return
	}
	for _, name := range []string{of.Anchors, of.Table, of.Rest, of.Hosts} {
		r.must(name != "" && !r.dropped[name], r.key, "its result of job %d has no tables, or they are dropped", of.Job)
	}
	if !(okAnchors && okTable && okRest && okHosts) {
		r.lost = true
		return
	}
	for _, a := range anchors {
		key, _ := r.keyOf(a.Host)
		r.show(&located{object: of.Anchors, what: "texts of links to", name: a.Host, key: key, slot: a.Slot})
	}
	for _, t := range []*ranks.Table{table, rest} {
		if r.nodes == 0 {
			r.nodes = t.Nodes()
		}
		r.must(t.Nodes() == r.nodes, r.key, "a table of job %d is of %d pages, another table of %d", of.Job, t.Nodes(), r.nodes)
		for i := range t.Len() {
			_, n := t.At(i)
			r.pages += n
		}
		r.sizes.Pages += int64(t.Len())
	}
	for _, n := range hosts.Ranks {
		r.hosts += n
	}
	r.must(slices.IsSorted(hosts.Names), of.Hosts, "its hosts are not in order")
	r.sizes.Crawled += int64(table.Len())
	r.sizes.Hosts += int64(len(hosts.Names))
	r.sizes.Anchors += int64(len(anchors))
}

// readRank reads an object that a head names, made by a job of that number or before.
func readRank[T any](r *rankPart, name string, job uint64, decode func([]byte) (T, error)) (v T, ok bool) {
	if name == "" || r.dropped[name] {
		return v, false
	}
	v, data, ok := decoded(r.checker, name, r.key, decode)
	p, of, what, err := naming.ParseRankObject(name)
	if ok && (err != nil || p != r.p || of > job || naming.RankObject(r.id, p, of, what, data) != name) {
		r.damaged(name, "it is not the object that its name says, or none of partition %d and job %d", r.p, job)
	}
	return v, ok
}

// checkRound checks the object of a round.
func (r *rankPart) checkRound(round *ranks.Round, job uint64) {
	size, ok := readRank(r, round.Object, job, func(b []byte) (int64, error) { return int64(len(b)), nil })
	end := int64(0)
	for n := range len(r.job.Inputs) + 1 {
		off, length, err := round.Part(n)
		if err != nil {
			r.damaged(r.key, "%v", err)
			return
		}
		end = off + length
	}
	if ok && end != size {
		r.damaged(round.Object, "it has %d bytes, and by its head %d", size, end)
	}
}

// checkSums checks that all ranks are there.
func (r *rankJob) checkSums() {
	if r.done == nil || r.lost {
		return
	}
	is, t := &r.sizes, &r.done.Totals
	r.Checked += is.Pages + is.Hosts
	r.ranks.Pages, r.ranks.Hosts, r.ranks.Anchors = is.Pages, is.Hosts, is.Anchors
	r.same(r.key, "numbers of pages, crawled pages, hosts and pages with texts of links",
		[]int64{t.Pages, t.Crawled, t.Hosts, t.Anchors}, []int64{is.Pages, is.Crawled, is.Hosts, is.Anchors})
	r.must(r.nodes == t.Pages || t.Pages == 0, r.key, "it says that its tables are of %d pages, and they are of %d", t.Pages, r.nodes)
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
