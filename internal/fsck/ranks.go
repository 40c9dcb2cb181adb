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
	key := naming.RankKey(v.id)
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
		if i >= len(r.parts) || in.Seq == 0 || r.parts[i].man == nil || in.Seq > r.parts[i].man.Seq {
			continue // none, or later than the head that was read
		}
		name := in.Commit(r.id)
		r.must(name == r.commitOf(in.Partition, in.Seq), r.key, "it is about %s, which is no visible commit", name)
	}
}

// rankPart is a partition with its head of rank jobs.
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
	if found && int(p) < len(r.parts) {
		r.parts[p].rankHead = part.head
	}
	var summed ranks.Result // of the job that is done
	if r.done != nil {
		inputs, ok := r.done.Inputs, false
		if summed, ok = part.head.Result(r.done.Number); !ok {
			r.must(int(p) >= len(inputs), part.key, "job %d is done, and of this partition there is no result", r.done.Number)
		} else if r.ranks.Partitions++; int(p) < len(inputs) {
			r.must(summed.Seq == inputs[p].Seq, part.key,
				"its result of job %d is of the commits up to %d, and the job is of the commits up to %d", r.done.Number, summed.Seq, inputs[p].Seq)
		}
	}
	if found {
		part.checkObjects(summed)
	}
}

// checkObjects checks that what the head names is there, and can be read. Of the result of
// the job that is done it adds up the ranks.
func (r *rankPart) checkObjects(summed ranks.Result) {
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
	for _, res := range []ranks.Result{h.Next, h.Last} {
		for _, name := range res.Objects() {
			r.name(name, r.key)
		}
		sum := res == summed && summed.Job > 0
		if sum {
			summed = ranks.Result{}
		}
		for _, of := range []struct {
			name string
			sum  bool // it is part of the sums
			read func(b []byte, sum bool) error
		}{
			{res.Graph, false, reader(ranks.DecodeGraph, nil)},
			{res.Layout, false, reader(func(b []byte) (*ranks.Layout, error) {
				if res.Job != r.job.Number {
					return nil, nil // nobody knows any more how many partitions it was of
				}
				return ranks.DecodeLayout(b, len(r.job.Inputs))
			}, nil)},
			{res.Anchors, sum, reader(ranks.DecodeAnchors, func(list []ranks.AnchorTarget) { r.addAnchors(res.Anchors, list) })},
			{res.Table, sum, reader(ranks.DecodeTable, func(t *ranks.Table) { r.addTable(res.Table, t, &r.sizes.Crawled) })},
			{res.Rest, sum, reader(ranks.DecodeTable, func(t *ranks.Table) { r.addTable(res.Rest, t, new(int64)) })},
			{res.Hosts, sum, reader(ranks.DecodeHosts, func(h *ranks.Hosts) { r.addHosts(res.Hosts, h) })},
		} {
			r.must(of.name != "" || !of.sum, r.key, "its result of job %d has no tables", res.Job)
			read := of.name != "" && (of.sum || !dropped[of.name]) &&
				r.readObject(of.name, res.Job, func(b []byte) error { return of.read(b, of.sum) })
			r.lost = r.lost || of.sum && !read
		}
	}
}

// reader returns a function that decodes an object, and adds it to the sums if it is part of them.
func reader[T any](decode func([]byte) (T, error), add func(T)) func([]byte, bool) error {
	return func(b []byte, sum bool) error {
		v, err := decode(b)
		if err == nil && sum {
			add(v)
		}
		return err
	}
}

// checkRound checks the object of a round.
func (r *rankPart) checkRound(round *ranks.Round) {
	size := int64(0)
	ok := r.readObject(round.Object, r.head.Job, func(b []byte) error { size = int64(len(b)); return nil })
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

// readObject reads an object that the head names, made by a job of that number or before.
func (r *rankPart) readObject(name string, job uint64, read func([]byte) error) bool {
	_, data, ok := decoded(r.checker, name, r.key, func(b []byte) (none struct{}, err error) { return none, read(b) })
	p, of, what, err := naming.ParseRankObject(name)
	if ok && (err != nil || p != r.p || of > job || naming.RankObject(r.id, p, of, what, data) != name) {
		r.damaged(name, "it is not the object that its name says, or none of partition %d and job %d", r.p, job)
	}
	return ok
}

func (r *rankPart) addAnchors(name string, anchors []ranks.AnchorTarget) {
	r.sizes.Anchors += int64(len(anchors))
	for i := range anchors {
		key, _ := r.keyOf(anchors[i].Host)
		r.show(&located{object: name, what: "texts of links to", name: anchors[i].Host, key: key, slot: anchors[i].Slot})
	}
}

func (r *rankPart) addHosts(name string, hosts *ranks.Hosts) {
	for _, n := range hosts.Ranks {
		r.hosts += n
	}
	r.sizes.Hosts += int64(len(hosts.Names))
	r.Checked += int64(len(hosts.Names))
	r.must(slices.IsSorted(hosts.Names), name, "its hosts are not in order")
}

// addTable adds a table of ranks; DecodeTable has checked each.
func (r *rankPart) addTable(name string, t *ranks.Table, also *int64) {
	if r.nodes == 0 {
		r.nodes = t.Nodes()
	}
	r.must(t.Nodes() == r.nodes, name, "it is of %d pages, another table of %d", t.Nodes(), r.nodes)
	for i := range t.Len() {
		_, n := t.At(i)
		r.pages += n
	}
	n := int64(t.Len())
	r.Checked, r.sizes.Pages, *also = r.Checked+n, r.sizes.Pages+n, *also+n
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
