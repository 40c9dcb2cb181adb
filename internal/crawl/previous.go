package crawl

import (
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// previousCommits bounds the commits whose page records a step caches; half of them always stay. A recrawl of many URLs
// finds most of their previous answers in few commits.
const previousCommits = 6

// previous returns the previous page record of a URL, from the commit that its state names; it may be an answer or a refusal.
// It returns nil if the record cannot be read: then the URL is requested unconditionally and its answer stored in full.
func (st *state) previous(t *actor.Task, o blobschema.RecordRef, url string) *blobschema.Page {
	if p, ok := st.cache.newest.get(url); ok {
		return &p
	}
	if o.Partition == st.cfg.Partition { // its commit may be under way
		t.Await(func() bool { return st.man.Seq >= uint64(o.Seq) || st.lease.phase == closed })
	}
	t.Await(func() bool { return !st.cache.reading })
	pages, ok := st.cache.commits.get(o)
	if !ok {
		st.cache.reading = true
		pages = st.readPrevious(t, o)
		st.cache.reading = false
		st.cache.commits.put(o, pages, previousCommits)
	}
	if p, ok := pages[url]; ok {
		return &p
	}
	return nil
}

// readPrevious reads the page records of a commit: the newest of each URL.
func (st *state) readPrevious(t *actor.Task, o blobschema.RecordRef) map[string]blobschema.Page {
	pages := map[string]blobschema.Page{}
	man, err := st.manifestWith(t, o)
	if err != nil {
		return pages
	}
	name := blobschema.CommitOf(man, uint64(o.Seq))
	if name == "" {
		return pages
	}
	list, err := section(t, name, (*blobschema.CommitReader).Pages)
	if err != nil {
		return pages
	}
	for _, p := range list {
		if old, ok := pages[p.URL]; !p.Robots && (!ok || old.Generation < p.Generation) {
			pages[p.URL] = p
		}
	}
	return pages
}

// manifestWith returns a manifest that names the commit of an origin: this partition's, or that of a previous owner of the
// slot.
func (st *state) manifestWith(t *actor.Task, o blobschema.RecordRef) (*blobschema.Manifest, error) {
	if o.Partition == st.cfg.Partition {
		return &st.man, nil
	}
	if man := st.cache.others[o.Partition]; man != nil && man.Seq >= uint64(o.Seq) {
		return man, nil
	}
	heads, err := readHeads(t, st.cfg.Crawl.ID, o.Partition)
	if err != nil {
		return nil, err
	}
	if heads[0] == nil {
		return nil, fmt.Errorf("partition %d has no head", o.Partition)
	}
	man, err := blobschema.ReadManifest(t.Object, heads[0].Commit)
	if err != nil {
		return nil, err
	}
	if st.cache.others == nil {
		st.cache.others = map[partition.ID]*blobschema.Manifest{}
	}
	st.cache.others[o.Partition] = man
	return man, nil
}

// recordCache caches the page records of the commits that were read last and, where pages are revisited, of the newest answers.
type recordCache struct {
	newest recent[string, blobschema.Page] // by URL

	reading bool
	commits recent[blobschema.RecordRef, map[string]blobschema.Page]
	others  map[partition.ID]*blobschema.Manifest // of previous owners of slots
}

// maxCachedRecords is the number of cached answers. A revisit of one of them reads no commit.
const maxCachedRecords = 1 << 15

// keep caches the newest page record of a URL.
func (f *recordCache) keep(p *blobschema.Page) {
	if !p.Outcome.Answered() { // there is nothing to compare the next answer with
		f.newest.forget(p.URL)
		return
	}
	f.newest.put(p.URL, *p, maxCachedRecords)
}
