package simweb

import "sync/atomic"

// maxVersion bounds how often a page changes, so that a version fits into the key of a compressed body.
const maxVersion = 1<<16 - 1

func pageKey(h, p int) uint64 { return uint64(h)<<32 | uint64(uint32(p)) }

// Touch changes the page at a canonical URL, now and for all that share the web, servers
// included: its body, its validators and those of its links that reachability does not
// need. It returns the page's new version: 1 after the first change. A page and its
// duplicates change together. What has no body of its own, such as a redirect, has
// versions too, and answers as before. It is 0 for URLs that the web does not have. A page
// changes 65,535 times at most.
func (w *Web) Touch(url string) int {
	h, p, ok := w.find(url)
	if !ok {
		return 0
	}
	changes, _ := w.versions.LoadOrStore(w.source(h, p), new(atomic.Int32))
	return min(int(changes.(*atomic.Int32).Add(1)), maxVersion)
}

// version returns how often page p of host h was changed. An answer reads it once and hands it
// on, so that the whole answer is of one version.
func (w *Web) version(h, p int) int {
	changes, ok := w.versions.Load(w.source(h, p))
	if !ok {
		return 0
	}
	return min(int(changes.(*atomic.Int32).Load()), maxVersion)
}

// source is the key of the page whose bytes a page has.
func (w *Web) source(h, p int) uint64 {
	if k, _ := w.kind(h, p); k == duplicate {
		p = w.original(h, p)
	}
	return pageKey(h, p)
}

// seed returns the seed of everything that changes with a page's version.
func (w *Web) seed(version int) uint64 {
	return w.cfg.Seed + uint64(version)*0xbf58476d1ce4e5b9
}
