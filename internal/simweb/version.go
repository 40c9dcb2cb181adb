package simweb

import (
	"sync"
	"sync/atomic"
)

// versions says how often pages were changed. All copies of a web share it.
type versions struct {
	mu  sync.RWMutex
	of  map[uint64]int // by pageKey; guarded by mu
	any atomic.Bool    // of is not empty
}

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
	key := w.source(h, p)
	v := w.versions
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of[key] = min(v.of[key]+1, maxVersion)
	v.any.Store(true)
	return v.of[key]
}

// version returns how often page p of host h was changed. An answer asks once and hands it
// on, so that it is all of one version.
func (w *Web) version(h, p int) int {
	v := w.versions
	if !v.any.Load() {
		return 0
	}
	key := w.source(h, p)
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.of[key]
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
