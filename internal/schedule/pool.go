package schedule

import (
	"cmp"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Group holds the politeness keys of one slot. They are in memory together.
type Group struct {
	Slot partition.Slot
	// Frozen forbids requests to the keys of the group. Call [Schedule.Freeze] to set it.
	Frozen bool
	// Filling says that a pool of the group is being filled: its keys get their turns when
	// [Schedule.Filled] is called.
	Filling bool
	keys    []*Key
	further []*site // sites that are not the own of their key
	touched uint64  // the delta that the last change of a key or site came before
	urgent  int     // URLs of rank 0 of all pools
}

// Pool holds the pending URLs of one part of a slot. Its zero value with a Group is empty.
//
// It is a few large arrays without pointers: an entry of forty bytes and its text for each URL.
type Pool struct {
	group     *Group
	items     []item
	spare     uint32 // list of items not in use, linked by pos: place + 1 of the first
	npend     int    // items in use
	text      []byte // path and query of each item
	dead      int    // bytes of text that belong to no item
	lanes     []*lane
	rare      map[uint32]rare     // of the items that have any of it
	followUps map[uint32]followUp // of items under way
	dirty     []uint32            // items changed since the last delta, and stale places

	full     bool   // see Stop
	inFlight int    // requests under way
	urgent   int    // URLs of rank 0; kept when the pool is emptied
	revisits int    // URLs that wait for a revisit
	touched  uint64 // the delta that the last change came before
}

// item is one pending URL. It has no pointers: there are millions.
type item struct {
	fp       uint64
	seq      uint32 // order of arrival
	rank     uint32
	gen      uint32
	text     uint32 // where its path and query begin in the pool's text
	lane     uint32
	pos      uint32 // in the queue of its lane, or among the delayed ones of its key
	length   uint16 // of its text
	depth    uint16
	attempts uint8
	flags    blobschema.QueuedFlags
	bits     itemBits
	topic    uint8 // of its lane
}

type itemBits uint8

const (
	isDirty    itemBits = 1 << iota // changed since the last delta
	isInFlight                      // a request for it is under way
	isRare                          // the pool's map has more of it
)

// rare is what few items have.
type rare struct {
	notBefore int64 // Unix milliseconds
	previous  blobschema.RecordRef
	change    blobschema.Change
	visited   int64 // last visit in Unix milliseconds; 0 for unknown: it is not stored
	hint      hint  // not stored
	inLine    bool  // see putOff; not stored
}

// followUp is the next generation of an item whose request is under way.
type followUp struct {
	gen   uint32
	rank  uint32
	depth uint16
	flags blobschema.QueuedFlags
	topic uint8
	// firm: this generation is to come even if the request brings nothing, because
	// somebody gave its number or a commit has it.
	firm bool
}

// maxText bounds the text of a pool, so that offsets fit and memory is bounded.
const maxText = 3 << 30

// NewPool returns an empty pool of a group.
func NewPool(g *Group) Pool { return Pool{group: g} }

// Split gives an emptied pool the history of another one, half of whose URLs it is for.
func (p *Pool) Split(of *Pool) { p.touched = of.touched }

// Len returns the number of URLs.
func (p *Pool) Len() int { return p.npend }

// Urgent returns the number of URLs of rank 0. An emptied pool keeps it.
func (p *Pool) Urgent() int { return p.urgent }

// InFlight returns the number of requests under way.
func (p *Pool) InFlight() int { return p.inFlight }

// Full reports whether Stop was called.
func (p *Pool) Full() bool { return p.full }

// Touched returns the number of the delta that the last change of the pool is in.
func (p *Pool) Touched() uint64 { return p.touched }

// Fingerprint returns that of an item.
func (p *Pool) Fingerprint(i uint32) uint64 { return p.items[i].fp }

// Fingerprints yields that of each URL, and whether its rank is 0.
func (p *Pool) Fingerprints(yield func(fp uint64, urgent bool) bool) {
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 && !yield(it.fp, it.rank == 0) {
			return
		}
	}
}

// Grow makes room for URLs that are about to come, so that arrays need not move.
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

// Drop frees the memory of an item that ended. Its place in the dirty list is stale, which its
// bits tell.
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
		if it.length > 0 { // the empty text is no item's: a path begins with a slash
			at := uint32(len(text))
			text = append(text, p.text[it.text:it.text+uint32(it.length)]...)
			it.text = at
		}
	}
	p.text, p.dead = text, 0
}

func (p *Pool) uri(it *item) []byte { return p.text[it.text : it.text+uint32(it.length)] }

// url makes an item's URL again.
func (p *Pool) url(it *item) weburl.URL {
	l := p.lanes[it.lane]
	uri := p.uri(it)
	b := make([]byte, 0, len("https://")+len(l.origin.site.name)+len(uri))
	b = append(append(append(b, l.origin.prefix()...), l.origin.site.name...), uri...)
	u, ok := weburl.Canonical(string(b))
	if !ok {
		panic("schedule: the text of a URL is damaged") // it was a URL's: unreachable
	}
	return u
}

// setRare changes what few items have.
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

// setNotBefore says when an item may be requested; the zero time is at once.
func (p *Pool) setNotBefore(i uint32, ms int64) { p.setRare(i, func(r *rare) { r.notBefore = ms }) }

// Generation returns that of an item.
func (p *Pool) Generation(i uint32) uint32 { return p.items[i].gen }

// SetPrevious says where the previous answer of an item is, unless a later one is known.
func (p *Pool) SetPrevious(i uint32, o blobschema.RecordRef) {
	p.setRare(i, func(r *rare) {
		if o.Compare(r.previous) > 0 {
			r.previous = o
		}
	})
}

// queued returns an item as it is stored: with the generation wished for, if its request is under
// way, because the outcome of that request is in no commit yet.
func (p *Pool) queued(i uint32) blobschema.Queued {
	it := &p.items[i]
	r, l := p.rareOf(i), p.lanes[it.lane]
	q := blobschema.Queued{
		Slot: p.group.Slot, Key: l.origin.site.key.name, Rank: it.rank, URL: p.url(it).String(), Generation: it.gen,
		Depth: it.depth, Attempts: it.attempts, Flags: it.flags, NotBefore: r.notBefore, Previous: r.previous,
		Topic: l.topic, Change: r.change,
	}
	if it.bits&isInFlight == 0 {
		return q
	}
	if w, ok := p.followUps[i]; ok {
		w.firm = true // from now on a commit has it
		p.followUps[i] = w
		q.Generation, q.Rank, q.Depth, q.Flags, q.Attempts, q.NotBefore, q.Topic = w.gen, w.rank, w.depth, w.flags, 0, 0, w.topic
	}
	return q
}

// FirstDue returns when the first of the URLs may be requested, in Unix milliseconds; 1 for at
// once, 0 for never. With urgentOnly it considers the URLs that [Schedule.Next] returns then; of
// new URLs, only retries count.
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
				if i == 0 { // the first is the first due
					break
				}
			}
		}
	}
	return due
}

// spot is where an item is.
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

// moved tells the item where it is: it is in no lane's queue.
func (d delayed) moved(at int) { d.it().pos = uint32(at) }
