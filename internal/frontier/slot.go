package frontier

import (
	"math/bits"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// slot is a bucket of units. Its URLs are in parts.
type slot struct {
	// root is all of a slot that was never split. It is no pointer, and its index and what of
	// it is looked at first come first, so that few lines of memory are needed to find a URL.
	root part
	// dir has a pointer for each value of the first bits of a fingerprint: the part whose URLs
	// have them. A part is named by all that its depth leaves open.
	dir     []*part
	id      partition.Slot
	awaited bool   // its state is still elsewhere; never loaded
	touched uint64 // the delta that the last change of a unit or site was before
	loaded  int    // parts that are: the units are in memory as long as any is
	filling bool   // one of them is being filled: units are settled when that is done
	units   []*unit
	further []*site // sites that are not the own of their unit
}

func newSlot(id partition.Slot) *slot {
	s := &slot{id: id}
	s.root.slot = s
	s.dir = []*part{&s.root}
	return s
}

// depth is the global depth: of how many bits dir is indexed by.
func (s *slot) depth() int { return bits.Len(uint(len(s.dir))) - 1 }

// of returns the part that a fingerprint belongs to.
func (s *slot) of(fp uint64) *part {
	if !s.root.split {
		return &s.root
	}
	return s.dir[fp>>(64-s.depth())]
}

// parts goes over the parts, by prefix.
func (s *slot) parts(yield func(*part) bool) {
	for i := 0; i < len(s.dir); i += 1 << (s.depth() - int(s.dir[i].is.Depth)) {
		if !yield(s.dir[i]) {
			return
		}
	}
}

// loading reports whether any part is.
func (s *slot) loading() bool {
	for p := range s.parts {
		if p.loading {
			return true
		}
	}
	return false
}

// put makes a part that all its fingerprints belong to from now on; dir grows if it must.
func (s *slot) put(is blobschema.Part) *part {
	if is.Depth == 0 {
		return &s.root
	}
	p := &part{slot: s, is: is}
	s.root.split = true
	for s.depth() < int(is.Depth) {
		dir := make([]*part, 0, 2*len(s.dir))
		for _, q := range s.dir {
			dir = append(dir, q, q)
		}
		s.dir = dir
	}
	width := 1 << (s.depth() - int(is.Depth))
	for i := range width {
		s.dir[int(is.Prefix)*width+i] = p
	}
	return p
}

// part is a piece of a slot. Loaded, it has all its URLs: the pending ones in items, the
// settled ones in marks, and where each is in index.
type part struct {
	index   index
	loaded  bool
	loading bool
	want    bool      // the caller is about to look at it: not to be unloaded before
	full    bool      // nothing more is asked for, so that it can be unloaded and halved
	split   bool      // others are in its place
	waits   time.Time // since when there was no room for it, zero for none
	late    bool      // it has waited for so long that it is loaded whatever there is room for
	replan  float64   // not 0: looks are to be planned anew when it is loaded, and were with this threshold
	slot    *slot
	is      blobschema.Part

	items []item
	marks []mark

	asked   int // requests under way
	urgent  int // pending URLs of rank 0; kept when the part is unloaded
	looks   int // pending URLs that wait for a look
	touched uint64

	spare  uint32 // list of items not in use, linked by pos: place + 1 of the first
	npend  int    // items in use
	text   []byte // path and query of each item
	dead   int    // bytes of text that belong to no item
	lanes  []*lane
	rare   map[uint32]rare // of the items that have any of it
	wishes map[uint32]wish // of items under way
	dirty  []uint32        // items changed since the last delta, and stale places

	// When unloaded: what the last commit said, and what came since.
	known      uint32
	npending   uint32
	due        int64 // see firstDue
	urgentDue  int64 // with urgentOnly; 0: not known
	unexamined uint32
	fresh      []blobschema.Queued // in no delta yet
	taken      []blobschema.Queued // in a delta whose commit is under way
}

// item is one pending URL. It has no pointers: there are millions.
type item struct {
	fp       uint64
	seq      uint32 // order of arrival
	rank     uint32
	gen      uint32
	text     uint32 // where its path and query begin in the part's text
	lane     uint32
	pos      uint32 // in the queue of its lane
	length   uint16 // of its text
	depth    uint16
	attempts uint8
	flags    blobschema.QueuedFlags
	bits     itemBits
	topic    uint8 // of its lane
}

type itemBits uint8

const (
	isDirty itemBits = 1 << iota // changed since the last delta
	isAsked                      // a request for it is under way
	isRare                       // the part's map has more of it
)

// rare is what few items have.
type rare struct {
	notBefore int64 // Unix milliseconds
	former    blobschema.Origin
	change    blobschema.Change
	looked    int64 // when it was looked at last, Unix milliseconds; 0 for unknown: it is not stored
	hint      hint  // not stored
	inLine    bool  // see putOff; not stored
}

// wish is the next generation of an item whose request is under way.
type wish struct {
	gen   uint32
	rank  uint32
	depth uint16
	flags blobschema.QueuedFlags
	topic uint8
	// firm: this generation is to come even if the request brings nothing, because
	// somebody gave its number or a commit has it.
	firm bool
}

// mark is one settled URL.
type mark struct {
	fp    uint64
	gen   uint32
	seq   uint32 // of its origin
	part  uint16
	state blobschema.State
}

func newMark(e *blobschema.Settled) mark {
	return mark{fp: e.Fingerprint, gen: e.Generation, seq: e.Origin.Seq, part: uint16(e.Origin.Partition), state: e.State}
}

func (m *mark) origin() blobschema.Origin {
	return blobschema.Origin{Partition: partition.ID(m.part), Seq: m.seq}
}

// maxText bounds the text of a part, so that offsets fit and memory has an end.
const maxText = 3 << 30

// resident is how many entries a loaded part holds.
func (p *part) resident() int { return p.npend + len(p.marks) }

// kind is where a fingerprint is found.
type kind uint8

const (
	absent kind = iota
	inItems
	inMarks
)

// index maps fingerprints to places in items and marks: open addressing with linear
// probing, by the middle of the fingerprint. Fingerprints are keyed hashes, so nobody
// can make them collide. Entries are never removed, for a known URL stays known.
type index struct {
	cells []uint32 // place<<1 | settled, plus 1; 0 is empty
	tags  []uint8  // the low byte of the fingerprint, which saves looking at most others
	n     int
}

// home goes by bits that neither a part nor a tag is made of.
func (x *index) home(fp uint64) int { return int(uint64(uint32(fp>>8)) * uint64(len(x.cells)) >> 32) }

// cell finds the cell of a fingerprint, or the empty one where it belongs.
func (p *part) cell(fp uint64) int {
	x, tag := &p.index, uint8(fp)
	for i := x.home(fp); ; {
		c := x.cells[i]
		if c == 0 || x.tags[i] == tag && p.fingerprint(c) == fp {
			return i
		}
		if i++; i == len(x.cells) {
			i = 0
		}
	}
}

func (p *part) fingerprint(cell uint32) uint64 {
	if v := cell - 1; v&1 == 0 {
		return p.items[v>>1].fp
	} else {
		return p.marks[v>>1].fp
	}
}

// find says where a URL is.
func (p *part) find(fp uint64) (place uint32, k kind) {
	if p.index.n == 0 {
		return 0, absent
	}
	switch c := p.index.cells[p.cell(fp)]; {
	case c == 0:
		return 0, absent
	case (c-1)&1 == 0:
		return (c - 1) >> 1, inItems
	default:
		return (c - 1) >> 1, inMarks
	}
}

// place notes where a URL is. Its item or mark must be there already, or its cell not
// be empty.
func (p *part) place(fp uint64, at uint32, k kind) {
	p.reserve(p.index.n + 1)
	c := p.cell(fp)
	if p.index.cells[c] == 0 {
		p.index.n++
	}
	p.index.tags[c], p.index.cells[c] = uint8(fp), at<<1+1
	if k == inMarks {
		p.index.cells[c]++
	}
}

// reserve makes room for n URLs in the index: at most four fifths of it are in use.
func (p *part) reserve(n int) {
	old := p.index.cells
	if n*5 <= len(old)*4 {
		return
	}
	size := max(n*5/4+2, len(old)*3/2, 8)
	p.index.cells, p.index.tags = make([]uint32, size), make([]uint8, size)
	for _, c := range old {
		if c != 0 {
			fp := p.fingerprint(c)
			at := p.cell(fp)
			p.index.cells[at], p.index.tags[at] = c, uint8(fp)
		}
	}
}

// grow makes room for URLs that are about to come, so that arrays need not move.
func (p *part) grow(pending, settled, text int) {
	p.items = slices.Grow(p.items, pending)
	p.marks = slices.Grow(p.marks, settled)
	p.text = slices.Grow(p.text, text)
	p.reserve(p.index.n + pending + settled)
}

// newItem stores an item, all but its text, and its place in a queue.
func (p *part) newItem(it item, uri string) uint32 {
	it.text, it.length = uint32(len(p.text)), uint16(len(uri))
	p.text = append(p.text, uri...)
	p.npend++
	var i uint32
	if p.spare > 0 {
		i = p.spare - 1
		p.spare = p.items[i].pos
		p.items[i] = it
	} else {
		i = uint32(len(p.items))
		p.items = append(p.items, it)
	}
	p.place(it.fp, i, inItems)
	return i
}

// dropItem gives an item's memory back. What it leaves in dirty is stale, which its bits
// tell.
func (p *part) dropItem(i uint32) {
	it := &p.items[i]
	if it.bits&isRare != 0 {
		delete(p.rare, i)
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
func (p *part) compact() {
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

// addMark stores a settled URL, which may be that of an item that is dropped next.
func (p *part) addMark(m mark) {
	p.marks = append(p.marks, m)
	p.place(m.fp, uint32(len(p.marks)-1), inMarks)
}

// dropMark removes the mark of a URL that was put into items just now.
func (p *part) dropMark(i uint32) {
	last := uint32(len(p.marks) - 1)
	if i != last {
		moved := p.marks[last]
		c := p.cell(moved.fp)
		p.marks[i] = moved
		p.index.cells[c] = i<<1 + 2
	}
	p.marks = p.marks[:last]
}

func (p *part) uri(it *item) []byte { return p.text[it.text : it.text+uint32(it.length)] }

// url makes an item's URL again.
func (p *part) url(it *item) weburl.URL {
	l := p.lanes[it.lane]
	uri := p.uri(it)
	b := make([]byte, 0, len("https://")+len(l.door.site.name)+len(uri))
	b = append(append(append(b, l.door.prefix()...), l.door.site.name...), uri...)
	u, ok := weburl.Canonical(string(b))
	if !ok {
		panic("frontier: the text of a URL is damaged") // it was a URL's: unreachable
	}
	return u
}

// setRare changes what few items have.
func (p *part) setRare(i uint32, change func(r *rare)) {
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

func (p *part) rareOf(i uint32) (r rare) {
	if p.items[i].bits&isRare != 0 {
		r = p.rare[i]
	}
	return r
}

// queued is an item as it is stored: the one that is wished for, if its request is under
// way, for what comes of that is in no commit yet.
func (p *part) queued(i uint32) blobschema.Queued {
	it := &p.items[i]
	r, l := p.rareOf(i), p.lanes[it.lane]
	q := blobschema.Queued{
		Slot: p.slot.id, Host: l.door.site.unit.key, Rank: it.rank, URL: p.url(it).String(), Generation: it.gen,
		Depth: it.depth, Attempts: it.attempts, Flags: it.flags, NotBefore: r.notBefore, Former: r.former,
		Topic: l.topic, Change: r.change,
	}
	if it.bits&isAsked == 0 {
		return q
	}
	if w, ok := p.wishes[i]; ok {
		w.firm = true // from now on a commit has it
		p.wishes[i] = w
		q.Generation, q.Rank, q.Depth, q.Flags, q.Attempts, q.NotBefore, q.Topic = w.gen, w.rank, w.depth, w.flags, 0, 0, w.topic
	}
	return q
}
