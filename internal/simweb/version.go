package simweb

import "sync/atomic"

// maxVersion bounds how often a page changes, so that a version fits into the key of a compressed body.
const maxVersion = 1<<16 - 1

func pageKey(h, p int) uint64 { return uint64(h)<<32 | uint64(uint32(p)) }

// Touch changes the page at a canonical URL, at once and for all users of the web, servers included. It changes
// the body, the validators and the links that reachability does not need. It returns the page's new version: 1
// after the first change. A page and its duplicates change together. A page without a body of its own, such as
// a redirect, has versions too, but its answers stay the same. Touch returns 0 for a URL that the web does not
// have. A page changes at most 65,535 times.
func (w *Web) Touch(url string) int {
	h, p, ok := w.find(url)
	if !ok {
		return 0
	}
	changes, _ := w.versions.LoadOrStore(w.source(h, p), new(atomic.Int32))
	return min(int(changes.(*atomic.Int32).Add(1)), maxVersion)
}

// version returns the number of changes of page p of host h. An answer reads it once, so that the whole answer
// is of one version.
func (w *Web) version(h, p int) int {
	changes, ok := w.versions.Load(w.source(h, p))
	if !ok {
		return 0
	}
	return min(int(changes.(*atomic.Int32).Load()), maxVersion)
}

// source returns the key of the page whose bytes a page has: its original, or itself.
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
