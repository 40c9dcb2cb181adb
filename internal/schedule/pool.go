package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Group holds the politeness keys of one slot. They are in memory together.
type Group struct {
	Slot partition.Slot
	// Frozen forbids requests to the keys of the group. Call [Schedule.Freeze] to set it.
	Frozen bool
	// Filling is set while a pool of the group is being filled. Its keys are queued when
	// [Schedule.Filled] is called.
	Filling bool
	keys    []*Key
	further []*site // sites other than the own site of their key
	touched uint64  // number of the delta that holds the last change of a key or site
	urgent  int     // urgent URLs of all pools
}

// Pool holds the pending URLs of one part of a slot. Its zero value with a Group is empty.
//
// It consists of a few large arrays without pointers. Each URL takes an entry of forty bytes and its text.
type Pool struct {
	group     *Group
	items     []item
	spare     uint32 // free list of items, linked by pos: index of the first plus 1
	npend     int    // number of items in use
	text      []byte // path and query of each item
	dead      int    // bytes of text that belong to no item
	lanes     []*lane
	rare      map[uint32]rare     // of the items with isRare
	followUps map[uint32]followUp // of items under way
	dirty     []uint32            // items changed since the last delta, and stale places

	full     bool   // see Stop
	inFlight int    // requests under way
	urgent   int    // urgent URLs; kept when the pool is emptied
	revisits int    // URLs that wait for a revisit
	touched  uint64 // number of the delta that holds the last change
}

// item is one pending URL. It has no pointers, because there are millions of items.
type item struct {
	fp       uint64
	seq      uint32 // order of arrival
	rank     uint32
	gen      uint32
	text     uint32 // offset of its path and query in the text of the pool
	lane     uint32
	pos      uint32 // place in the queue of its lane, or among the delayed items of its key
	length   uint16 // of its text
	depth    uint16
	attempts uint8
	flags    uint8 // without FlagRequisite
	bits     itemBits
	topic    uint8 // of its lane
}

type itemBits uint8

const (
	isDirty     itemBits = 1 << iota // changed since the last delta
	isInFlight                       // a request for it is under way
	isRare                           // the pool's map rare has an entry for it
	isRequisite                      // FlagRequisite
)

func (x *item) allFlags() blobschema.QueuedFlags {
	if x.requisite() {
		return blobschema.QueuedFlags(x.flags) | blobschema.FlagRequisite
	}
	return blobschema.QueuedFlags(x.flags)
}

func (x *item) setFlags(f blobschema.QueuedFlags) {
	x.flags, x.bits = uint8(f), x.bits&^isRequisite
	if f.Requisite() {
		x.bits |= isRequisite
	}
}

func (x *item) requisite() bool { return x.bits&isRequisite != 0 }

// urgent is [blobschema.Queued.Urgent].
func (x *item) urgent() bool { return x.rank == 0 || x.requisite() && x.gen == 0 }

// rare holds the fields that few items need.
type rare struct {
	notBefore int64 // Unix milliseconds
	previous  blobschema.RecordRef
	change    blobschema.Change
	visited   int64 // last visit in Unix milliseconds, 0 for unknown; not stored
	hint      hint  // not stored
	inLine    bool  // putOff gave it a place; not stored
}

// followUp is the next generation of an item whose request is under way.
type followUp struct {
	gen   uint32
	rank  uint32
	depth uint16
	flags blobschema.QueuedFlags
	topic uint8
	// firm is set if the generation must come even if the request under way fails, because
	// its number was given from outside or a commit holds it.
	firm bool
}

// maxText bounds the text of a pool, so that offsets fit and memory is bounded.
const maxText = 3 << 30

// NewPool returns an empty pool of a group.
func NewPool(g *Group) Pool { return Pool{group: g} }

// Split prepares an emptied pool for half of the URLs of another one: it counts as changed when that one changed.
func (p *Pool) Split(of *Pool) { p.touched = of.touched }

// Len returns the number of URLs.
func (p *Pool) Len() int { return p.npend }

// Urgent returns the number of URLs that are requested or requisites. It survives [Schedule.Empty].
func (p *Pool) Urgent() int { return p.urgent }

// InFlight returns the number of requests under way.
func (p *Pool) InFlight() int { return p.inFlight }

// Full reports whether Stop was called.
func (p *Pool) Full() bool { return p.full }

// Touched returns the number of the delta that holds the last change of the pool.
func (p *Pool) Touched() uint64 { return p.touched }

// Fingerprint returns the fingerprint of an item.
func (p *Pool) Fingerprint(i uint32) uint64 { return p.items[i].fp }

// Fingerprints yields the fingerprint of each URL, and whether it is urgent.
func (p *Pool) Fingerprints(yield func(fp uint64, urgent bool) bool) {
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 && !yield(it.fp, it.urgent()) {
			return
		}
	}
}

// Grow makes room for a number of URLs and bytes of text.
func (p *Pool) Grow(pending, text int) {
	p.items = slices.Grow(p.items, pending)
	p.text = slices.Grow(p.text, text)
}

// newItem stores an item and its text.
func (p *Pool) newItem(it item, uri string) uint32 {
	it.text, it.length = uint32(len(p.text)), uint16(len(uri))
	p.text = append(p.text, uri...)
	p.npend++
	if p.spare == 0 {
		p.items = append(p.items, it)
		return uint32(len(p.items) - 1)
	}
	i := p.spare - 1
	p.spare = p.items[i].pos
	p.items[i] = it
	return i
}

// Drop frees an item that ended. Its entry in the dirty list becomes stale: its bits tell so.
func (p *Pool) Drop(i uint32) {
	it := &p.items[i]
	if it.bits&isRare != 0 {
		delete(p.rare, i)
	}
	if it.bits&isInFlight != 0 {
		delete(p.followUps, i)
	}
	p.dead += int(it.length)
	*it = item{pos: p.spare}
	p.spare = i + 1
	p.npend--
	if p.dead > 1<<14 && p.dead > len(p.text)/2 {
		p.compact()
	}
}

// compact moves the texts of the items together.
func (p *Pool) compact() {
	text := make([]byte, 0, (len(p.text)-p.dead)*5/4)
	for i := range p.items {
		it := &p.items[i]
		if it.length > 0 { // an item in use has a text, which begins with a slash
			at := uint32(len(text))
			text = append(text, p.text[it.text:it.text+uint32(it.length)]...)
			it.text = at
		}
	}
	p.text, p.dead = text, 0
}

func (p *Pool) uri(it *item) []byte { return p.text[it.text : it.text+uint32(it.length)] }

// url rebuilds the URL of an item.
func (p *Pool) url(it *item) weburl.URL {
	l := p.lanes[it.lane]
	uri := p.uri(it)
	var b strings.Builder
	b.Grow(len("https://") + len(l.origin.site.name) + len(uri))
	b.WriteString(l.origin.prefix())
	b.WriteString(l.origin.site.name)
	b.Write(uri)
	u, ok := weburl.Canonical(b.String())
	if !ok {
		panic("schedule: the text of a URL is damaged") // unreachable: Insert cut the text from a canonical URL
	}
	return u
}

// setRare changes the rare fields of an item.
func (p *Pool) setRare(i uint32, change func(r *rare)) {
	r := p.rare[i]
	change(&r)
	it := &p.items[i]
	if r == (rare{}) {
		delete(p.rare, i)
		it.bits &^= isRare
		return
	}
	if p.rare == nil {
		p.rare = map[uint32]rare{}
	}
	p.rare[i] = r
	it.bits |= isRare
}

func (p *Pool) rareOf(i uint32) (r rare) {
	if p.items[i].bits&isRare != 0 {
		r = p.rare[i]
	}
	return r
}

// setNotBefore sets the earliest time of an item's request in Unix milliseconds; 0 is at once.
func (p *Pool) setNotBefore(i uint32, ms int64) { p.setRare(i, func(r *rare) { r.notBefore = ms }) }

// Generation returns the generation of an item.
func (p *Pool) Generation(i uint32) uint32 { return p.items[i].gen }

// SetPrevious sets the reference to the previous answer of an item, unless a later one is known.
func (p *Pool) SetPrevious(i uint32, o blobschema.RecordRef) {
	p.setRare(i, func(r *rare) {
		if o.Compare(r.previous) > 0 {
			r.previous = o
		}
	})
}

// queued returns an item as it is stored. While a request is under way, that is its next generation
// if it has one, because no commit holds the outcome of the request yet.
func (p *Pool) queued(i uint32) blobschema.Queued {
	it := &p.items[i]
	r, l := p.rareOf(i), p.lanes[it.lane]
	q := blobschema.Queued{
		Slot: p.group.Slot, Key: l.origin.site.key.name, Rank: it.rank, URL: p.url(it).String(), Generation: it.gen,
		Depth: it.depth, Attempts: it.attempts, Flags: it.allFlags(), NotBefore: r.notBefore, Previous: r.previous,
		Topic: l.topic, Change: r.change,
	}
	if it.bits&isInFlight == 0 {
		return q
	}
	if w, ok := p.followUps[i]; ok {
		w.firm = true // from now on a commit holds it
		p.followUps[i] = w
		q.Generation, q.Rank, q.Depth, q.Flags, q.Attempts, q.NotBefore, q.Topic = w.gen, w.rank, w.depth, w.flags, 0, 0, w.topic
	}
	return q
}

// FirstDue returns when the first of the URLs may be requested, in Unix milliseconds: 1 for at
// once, 0 for never. With urgentOnly it considers only URLs that [Schedule.Next] returns with
// urgentOnly, and delayed ones.
func (p *Pool) FirstDue(urgentOnly bool) int64 {
	due := int64(0)
	sooner := func(ms int64) {
		if ms = max(1, ms); due == 0 || ms < due {
			due = ms
		}
	}
	for _, l := range p.lanes {
		switch k := l.origin.site.key; {
		case urgentOnly && len(l.queue) > 0 && l.urgency() == found:
		case l.inFlight || k.state == busy && len(l.queue) > 0:
			sooner(1)
		case len(l.queue) > 0:
			at := k.pausedUntil()
			if l.where == blocked && l.origin.Retry.After(at) {
				at = l.origin.Retry
			}
			sooner(at.UnixMilli())
		}
	}
	for _, k := range p.group.keys {
		for i, d := range k.later {
			if d.pool == p {
				sooner(max(d.at, k.pausedUntil().UnixMilli()))
				if i == 0 { // no other one is due earlier
					break
				}
			}
		}
	}
	return due
}

// spot names an item of a pool.
type spot struct {
	pool *Pool
	item uint32
}

func (w spot) it() *item { return &w.pool.items[w.item] }

func sortSpots(list []spot) {
	slices.SortFunc(list, func(a, b spot) int {
		x, y := a.it(), b.it()
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.seq, y.seq))
	})
}

// delayed is an item that waits for a time: its next attempt, or a revisit.
type delayed struct {
	at  int64 // Unix milliseconds
	seq uint32
	spot
}

func (d delayed) before(o delayed) bool {
	if d.at != o.at {
		return d.at < o.at
	}
	return d.seq < o.seq
}

// moved records the place in the item, which is in no lane's queue meanwhile.
func (d delayed) moved(at int) { d.it().pos = uint32(at) }
