package fsck

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

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

// nameRanks takes note of the tables that the crawl itself and the wish name.
func (c *checker) nameRanks() {
	for name, by := range map[string]string{
		c.crawl.Settings.HostRanks: naming.CrawlKey(c.id), c.hostRanks: naming.WishKey(c.id),
	} {
		if name != "" && c.name(name, by) && !c.listed[name] {
			c.violate("I6", name, "the object does not exist; %s names it", by)
		}
	}
}

// checkRanks checks the ranks that were computed last, and what is there of those under way.
func (c *checker) checkRanks() error {
	c.nameRanks()
	if _, found, err := c.store.Record(c.ctx, naming.RankKey(c.id)); err != nil || !found {
		return err
	}
	keys := []string{naming.RankKey(c.id)}
	for _, p := range c.parts {
		keys = append(keys, naming.RankHeadKey(c.id, p.id))
	}
	return c.steadily(keys, func() error {
		r := ranksChecker{c: c, key: keys[0]}
		if err := r.check(); !errors.Is(err, errUnusable) {
			return err
		}
		return nil
	})
}

// ranksChecker checks ranks, and adds up what partitions have of the job that is finished.
type ranksChecker struct {
	c     *checker
	key   string
	job   ranks.Job
	done  *ranks.Job // finished; nil if there is none
	sizes ranks.Totals
	nodes int64 // that tables tell of
	pages float64
	hosts float64
	whole bool // all that the sums are of can be read
}

func (r *ranksChecker) check() error {
	c := r.c
	var err error
	if r.job, _, err = record[ranks.Job](c, r.key); err != nil {
		return err
	}
	j := &r.job
	if j.Version != wire.Version || len(j.Inputs) > partition.MaxPartitions {
		c.violate("I6", r.key, "it is of version %d, with %d partitions", j.Version, len(j.Inputs))
		return errUnusable
	}
	r.checkInputs()
	switch {
	case j.Done.IsZero():
		c.ranks.Running = j.Number
	case j.Failed != "":
		c.ranks.Abandoned = j.Number
	}
	if r.done = j.Finished(); r.done != nil {
		c.ranks.Job = r.done.Number
		names := []string{r.done.HostRanks, r.done.PageRanks}
		if r.done.CrawledHosts != "" { // earlier versions made none
			names = append(names, r.done.CrawledHosts)
		}
		for _, name := range names {
			if err := r.checkText(name); err != nil {
				return err
			}
		}
	}
	if p := j.Previous; p != nil && p != r.done { // readers may be at it still
		c.name(p.HostRanks, r.key)
		c.name(p.PageRanks, r.key)
		c.name(p.CrawledHosts, r.key)
	}
	r.whole = true
	for p := range partition.ID(max(len(c.parts), len(j.Inputs))) {
		if err := r.checkHead(p); err != nil {
			return err
		}
	}
	r.checkSums()
	return nil
}

// checkInputs checks the commits that the job is about.
func (r *ranksChecker) checkInputs() {
	c := r.c
	if r.job.Map != "" {
		c.name(r.job.Map, r.key)
	}
	for i, in := range r.job.Inputs {
		if in.Partition != partition.ID(i) {
			c.violate("ranks", r.key, "its input %d is of partition %d", i, in.Partition)
			continue
		}
		if i >= len(c.parts) || in.Seq == 0 || c.parts[i].man == nil || in.Seq > c.parts[i].man.Seq {
			continue // none, or later than the head that was read
		}
		if name := in.Commit(c.id); name != commitAt(c.parts[i], in.Seq) {
			c.violate("ranks", r.key, "it is about %s, which is no visible commit", name)
		}
	}
}

// checkHead checks what a partition has of the jobs.
func (r *ranksChecker) checkHead(p partition.ID) error {
	c, key := r.c, naming.RankHeadKey(r.c.id, p)
	h, found, err := record[ranks.Head](c, key)
	if errors.Is(err, errUnusable) {
		r.whole = false
		return nil
	}
	if err != nil {
		return err
	}
	part := rankPart{ranksChecker: r, head: &h, p: p, key: key}
	if found {
		if int(p) < len(c.parts) {
			c.parts[p].ranked = rankedTo{h.Job, h.Final}
		}
		if err := part.checkObjects(); err != nil {
			return err
		}
	}
	if r.done == nil {
		return nil
	}
	result, ok := h.Result(r.done.Number)
	if !found || !ok {
		if int(p) < len(r.done.Inputs) {
			c.violate("ranks", key, "job %d is done, and of this partition there is no result", r.done.Number)
		}
		return nil
	}
	c.ranks.Partitions++
	if int(p) < len(r.done.Inputs) && result.Seq != r.done.Inputs[p].Seq {
		c.violate("ranks", key, "its result of job %d is of the commits up to %d, and the job is of those up to %d", r.done.Number, result.Seq, r.done.Inputs[p].Seq)
	}
	return part.checkResult(&result)
}

// rankPart is a partition's share of ranks.
type rankPart struct {
	*ranksChecker
	head *ranks.Head
	p    partition.ID
	key  string
}

// checkObjects checks that what the head names is there, and can be read.
func (r *rankPart) checkObjects() error {
	c, h := r.c, r.head
	if h.Partition != r.p || h.Job > r.job.Number {
		c.violate("ranks", r.key, "it is of partition %d and job %d; the job is %d", h.Partition, h.Job, r.job.Number)
	}
	if len(h.Rounds) > 2 || len(h.Rounds) == 2 && h.Rounds[0].Number >= h.Rounds[1].Number {
		c.violate("ranks", r.key, "it has %d rounds, out of order or too many", len(h.Rounds))
	}
	dropped := map[string]bool{} // they may be there, or not
	for _, d := range h.Dropped {
		c.name(d.Object, r.key)
		dropped[d.Object] = true
	}
	for i := range h.Rounds {
		round := &h.Rounds[i]
		if round.Object == "" {
			continue
		}
		c.name(round.Object, r.key)
		if dropped[round.Object] || h.Job != r.job.Number || !r.job.Done.IsZero() {
			continue // what only rounds needed goes when they are over
		}
		if err := r.checkRound(round); err != nil {
			return err
		}
	}
	for _, res := range []*ranks.Result{&h.Next, &h.Last} {
		for _, name := range res.Objects() {
			c.name(name, r.key)
		}
		if err := r.checkMade(res, dropped); err != nil {
			return err
		}
	}
	return nil
}

// checkRound checks the object of a round.
func (r *rankPart) checkRound(round *ranks.Round) error {
	data, err := r.object(round.Object, r.head.Job)
	if data == nil {
		return err
	}
	end := int64(0)
	for n := range len(r.job.Inputs) + 1 {
		off, length, err := round.Part(n)
		if err != nil {
			r.c.violate("I6", r.key, "%v", err)
			return nil
		}
		end = off + length
	}
	if end != int64(len(data)) {
		r.c.violate("I6", round.Object, "it has %d bytes, and by its head %d", len(data), end)
	}
	return nil
}

// checkMade decodes what only steps read: the tables of ranks and the texts of links of the job that
// is done come later.
func (r *rankPart) checkMade(res *ranks.Result, dropped map[string]bool) error {
	for _, of := range []struct {
		name   string
		decode func([]byte) error
	}{
		{res.Graph, func(b []byte) error { _, err := ranks.DecodeGraph(b); return err }},
		{res.Layout, func(b []byte) error {
			if res.Job != r.job.Number {
				return nil // of how many partitions it was nobody knows any more
			}
			_, err := ranks.DecodeLayout(b, len(r.job.Inputs))
			return err
		}},
		{res.Anchors, func(b []byte) error { _, err := ranks.DecodeAnchors(b); return err }},
		{res.Table, func(b []byte) error { _, err := ranks.DecodeTable(b); return err }},
		{res.Rest, func(b []byte) error { _, err := ranks.DecodeTable(b); return err }},
		{res.Hosts, func(b []byte) error { _, err := ranks.DecodeHosts(b); return err }},
	} {
		if of.name == "" || dropped[of.name] || r.done != nil && res.Job == r.done.Number && of.name != res.Graph && of.name != res.Layout {
			continue
		}
		data, err := r.object(of.name, res.Job)
		if err != nil {
			return err
		}
		if data == nil {
			continue
		}
		if err := of.decode(data); err != nil {
			r.c.violate("I6", of.name, "%v", err)
		}
	}
	return nil
}

// object reads an object that the head names, made by a job of that number or before.
func (r *rankPart) object(name string, job uint64) ([]byte, error) {
	data, err := r.c.object(name, r.key)
	if data == nil {
		return nil, err
	}
	p, of, what, err := naming.ParseRankObject(name)
	if err != nil || p != r.p || of > job || naming.RankObject(r.c.id, p, of, what, data) != name {
		r.c.violate("I6", name, "it is not the object that its name says, or none of partition %d and job %d", r.p, job)
	}
	return data, nil
}

// readResult reads an object of the job that is done. It returns nil, and the violation is reported,
// if that cannot be done.
func readResult[T any](r *rankPart, name string, job uint64, decode func([]byte) (T, error)) (v *T, err error) {
	if name == "" {
		r.whole = false
		r.c.violate("ranks", r.key, "its result of job %d has no tables", job)
		return nil, nil
	}
	data, err := r.object(name, job)
	if data == nil {
		r.whole = false
		return nil, err
	}
	got, err := decode(data)
	if err != nil {
		r.whole = false
		r.c.violate("I6", name, "%v", err)
		return nil, nil
	}
	return &got, nil
}

// checkResult reads a partition's share of the job that is done, and adds it to the sums.
func (r *rankPart) checkResult(res *ranks.Result) error {
	for _, name := range []string{res.Table, res.Rest} {
		t, err := readResult(r, name, res.Job, ranks.DecodeTable)
		if err != nil {
			return err
		}
		if t != nil {
			r.addTable(name, *t, name == res.Table)
		}
	}
	hosts, err := readResult(r, res.Hosts, res.Job, ranks.DecodeHosts)
	if err != nil {
		return err
	}
	if hosts != nil {
		for _, v := range (*hosts).Ranks {
			r.hosts += v
		}
		r.sizes.Hosts += int64(len((*hosts).Names))
		r.c.checked["ranks"] += int64(len((*hosts).Names))
		if !slices.IsSorted((*hosts).Names) {
			r.c.violate("ranks", res.Hosts, "its hosts are not in order")
		}
	}
	anchors, err := readResult(r, res.Anchors, res.Job, ranks.DecodeAnchors)
	if err != nil || anchors == nil {
		return err
	}
	r.sizes.Anchors += int64(len(*anchors))
	for i := range *anchors {
		a := &(*anchors)[i]
		r.c.checked["I2"]++
		unit, _ := r.c.unit(weburl.Host(a.Host))
		if slot := r.c.hash.Slot(unit); slot != a.Slot {
			r.c.violate("I2", res.Anchors, "texts of links to %s have slot %d, and belong to %d", a.Host, a.Slot, slot)
		}
	}
	return nil
}

// addTable adds a table of ranks; DecodeRankTable has checked each.
func (r *rankPart) addTable(name string, t *ranks.Table, crawled bool) {
	switch {
	case r.nodes == 0:
		r.nodes = t.Nodes()
	case t.Nodes() != r.nodes:
		r.c.violate("ranks", name, "it is of %d pages, another table of %d", t.Nodes(), r.nodes)
	}
	for i := range t.Len() {
		_, v := t.At(i)
		r.pages += v
	}
	r.c.checked["ranks"] += int64(t.Len())
	if r.sizes.Pages += int64(t.Len()); crawled {
		r.sizes.Crawled += int64(t.Len())
	}
}

// checkSums checks that all ranks are there.
func (r *ranksChecker) checkSums() {
	c := r.c
	if r.done == nil || !r.whole {
		return
	}
	c.ranks.Pages, c.ranks.Hosts, c.ranks.Anchors = r.sizes.Pages, r.sizes.Hosts, r.sizes.Anchors
	t := &r.done.Totals
	if r.sizes.Pages != t.Pages || r.sizes.Crawled != t.Crawled || r.sizes.Hosts != t.Hosts || r.sizes.Anchors != t.Anchors || r.nodes != t.Pages && t.Pages > 0 {
		c.violate("ranks", r.key, "tables of job %d have %d pages, %d of them crawled, of %d; %d hosts and texts for %d pages; it says %+v",
			r.done.Number, r.sizes.Pages, r.sizes.Crawled, r.nodes, r.sizes.Hosts, r.sizes.Anchors, *t)
	}
	for _, level := range []struct {
		what string
		n    int64
		sum  float64
	}{{"pages", r.sizes.Pages, r.pages}, {"hosts", r.sizes.Hosts, r.hosts}} {
		if level.n > 0 && !(math.Abs(level.sum-1) <= sumTolerance) {
			c.violate("ranks", r.key, "the ranks of %s add up to %.9g, not 1", level.what, level.sum)
		}
	}
}

// checkText checks a table for people and programs: lines of a name, a tab and a number, best first.
func (r *ranksChecker) checkText(name string) error {
	c := r.c
	if name == "" {
		c.violate("ranks", r.key, "job %d is done, and has no table of hosts or pages", r.done.Number)
		return nil
	}
	c.name(name, r.key)
	data, err := c.object(name, r.key)
	if data == nil {
		return err
	}
	if is := naming.Ranks(c.id, data); is != name {
		c.violate("I6", name, "by its content its name should be %s", is)
	}
	before := math.Inf(1)
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		of, number, ok := bytes.Cut(line, []byte("\t"))
		v, err := strconv.ParseFloat(string(number), 64)
		if !ok || err != nil || len(of) == 0 || !(v > 0 && v <= before) {
			c.violate("ranks", name, "line %d is no name and rank, or out of order: %.100q", n, line)
			return nil
		}
		data, before = rest, v
	}
	return nil
}

// rankedTo is how far a partition is with rank jobs.
type rankedTo struct {
	job   uint64
	final bool
}

// orphanedRank says why an object of a rank job that nothing names may be deleted: no step can come to
// name it any more.
func (c *checker) orphanedRank(p partition.ID, job uint64) string {
	if int(p) >= len(c.parts) {
		return ""
	}
	switch at := c.parts[p].ranked; {
	case job < at.job:
		return fmt.Sprintf("an object of rank job %d, and the partition is at job %d", job, at.job)
	case job == at.job && at.final:
		return fmt.Sprintf("an object of rank job %d, which is done, that nothing names", job)
	}
	return ""
}

// orphanedIndex is the same of objects of the index.
func (c *checker) orphanedIndex(p partition.ID, number uint64) string {
	if int(p) >= len(c.parts) || number > c.parts[p].index {
		return ""
	}
	return fmt.Sprintf("an object made for manifest %d, and the index is at %d", number, c.parts[p].index)
}
