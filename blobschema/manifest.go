package blobschema

import (
	"iter"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// CommitNames yields the names of all visible commit objects of a partition,
// oldest first, m's own last.
func CommitNames(m *Manifest) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range CommitsAfter(m, 0) {
			if !yield(name) {
				return
			}
		}
	}
}

// CommitOf returns the name of the visible commit of a number; "" if there is none.
func CommitOf(m *Manifest, seq uint64) string {
	if seq == m.Seq && seq > 0 {
		return naming.Commit(m.Crawl, m.Partition, seq, m.Fence)
	}
	for _, r := range m.Commits {
		if r.From <= seq && seq <= r.To && seq > 0 {
			return naming.Commit(m.Crawl, m.Partition, seq, r.Fence)
		}
	}
	return ""
}

// CommitsAfter yields the numbers and names of the visible commits of a partition that come after one
// of them, oldest first, m's own last. It takes no time for those before.
func CommitsAfter(m *Manifest, after uint64) iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		for _, r := range m.Commits {
			for seq := max(r.From, after+1); seq <= r.To && seq < m.Seq; seq++ {
				if !yield(seq, naming.Commit(m.Crawl, m.Partition, seq, r.Fence)) {
					return
				}
			}
		}
		if m.Seq > after {
			yield(m.Seq, naming.Commit(m.Crawl, m.Partition, m.Seq, m.Fence))
		}
	}
}
