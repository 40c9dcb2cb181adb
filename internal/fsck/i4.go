package fsck

import (
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// i4 checks that a partition has one writer: each commit is where and what its name says,
// fences never go back, commits follow one another without a gap, and no other commit
// names their WARC objects.
func i4(v *judge, fact any) {
	switch f := fact.(type) {
	case *part:
		v.headAgrees(f)
	case *runName:
		v.madeIt(f)
	case *commit:
		v.follows(f)
		v.ownWARCs(f)
	case *page:
		v.must(f.WARC == "" || slices.Contains(f.in.m.WARCs, f.WARC), f.in.name, "%s is in %s, which is no object of this commit", f.text, f.WARC)
	}
}

// headAgrees compares a head with its commit, and the ranges of that with all commits.
func (v *judge) headAgrees(p *part) {
	key, h, m := naming.HeadKey(v.id, p.id), &p.head, p.man
	v.must(h.Partition == p.id, key, "it is the head of partition %d", h.Partition)
	v.must(h.Commit != "" || h.Seq == 0, key, "it names no commit, but says it is the %d-th", h.Seq)
	if m.Seq == 0 {
		return
	}
	name := naming.Commit(v.id, p.id, m.Seq, m.Fence)
	v.must(name == h.Commit && h.Seq == m.Seq, key, "it names %s, the %d-th, whose manifest says it is %s", h.Commit, h.Seq, name)
	v.must(m.Fence <= h.Fence, key, "its fence is %d, that of its commit %d", h.Fence, m.Fence)
	next, fence := uint64(1), uint64(0)
	for _, r := range append(slices.Clone(m.Commits), blobschema.CommitRange{Fence: m.Fence, From: m.Seq, To: m.Seq}) {
		v.must(r.From == next, h.Commit, "its commits go from %d to %d: some are left out", next-1, r.From)
		v.must(r.Fence >= fence, h.Commit, "commit %d has fence %d, the commit before it %d", r.From, r.Fence, fence)
		next, fence = r.To+1, r.Fence
	}
}

// follows compares a manifest with its name and with the commit before.
func (v *judge) follows(f *commit) {
	m := f.m
	v.must(m.Crawl == v.id && m.Partition == f.id && naming.Commit(m.Crawl, m.Partition, m.Seq, m.Fence) == f.name,
		f.name, "its manifest is of crawl %s, partition %d, commit %d, fence %d", m.Crawl, m.Partition, m.Seq, m.Fence)
	if m.Seq != f.prev.Seq+1 {
		return
	}
	var before []blobschema.CommitRange
	if p := f.prev; p.Seq > 0 {
		before = slices.Clone(p.Commits)
		if n := len(before); n > 0 && before[n-1].Fence == p.Fence && before[n-1].To+1 == p.Seq {
			before[n-1].To = p.Seq
		} else {
			before = append(before, blobschema.CommitRange{Fence: p.Fence, From: p.Seq, To: p.Seq})
		}
	}
	v.must(slices.Equal(m.Commits, before), f.name, "the commits before it are %v, and it says %v", before, m.Commits)
}

// ownWARCs checks that a commit names its own WARC objects.
func (v *judge) ownWARCs(f *commit) {
	for _, w := range f.m.WARCs {
		p, fence, _, err := naming.ParseWARC(w)
		v.must(err == nil && p == f.id && fence == f.m.Fence && strings.HasPrefix(w, naming.WARCPrefix(v.id)),
			f.name, "it names %s, which is not of its partition and fence", w)
		v.must(v.name(w, f.name), f.name, "it names %s, as %s does", w, v.named[w])
	}
}

// madeIt checks that a run is part of a visible commit, or a merged run that is older than the
// manifest. It is of the partition itself, or of one that slots came from.
func (v *judge) madeIt(f *runName) {
	of, seq, fence, ok := v.maker(f)
	object, where := f.ref.Object, f.head.Commit
	inCommit := ok && object == naming.Commit(v.id, of.id, seq, fence)
	switch {
	case inCommit && (seq > of.man.Seq || object != v.commitOf(of.id, seq)):
		v.violate(where, "it names a run in %s, which is no visible commit of it", object)
	case !ok || seq > of.man.Seq || fence > of.man.Fence:
		v.violate(where, "it names %s of tier %d, which is not a run of it", object, f.ref.Tier)
	case !inCommit && f.again && len(f.man.Moved) == 0: // a slot that came back may bring it again
		v.violate(where, "it names the run %s, which is named already", object)
	}
	if !inCommit {
		v.name(object, where)
	}
}

// maker returns the partition and commit that made a run. ok is false if the manifest may not
// name such a run.
func (c *checker) maker(f *runName) (of *part, seq, fence uint64, ok bool) {
	var tier uint8
	p, seq, fence, err := naming.ParseCommit(f.ref.Object)
	if err != nil {
		p, seq, fence, tier, err = naming.ParseRun(f.ref.Object)
	}
	foreign := p != f.id && len(f.man.Moved) == 0 || !strings.HasPrefix(f.ref.Object, c.id+"/")
	if err != nil || foreign || tier != f.ref.Tier || int(p) >= len(c.parts) {
		return f.part, 0, 0, false
	}
	return c.parts[p], seq, fence, true
}
