package frontier

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// slot is a bucket of units. Loaded, it has all their URLs: the pending ones in items,
// the settled ones in marks, and where each is in index.
type slot struct {
	id      partition.Slot
	loaded  bool
	loading bool
	want    bool // the caller is about to look at it: not to be unloaded before
	awaited bool // its state is still elsewhere; never loaded
	asked   int  // requests under way
	urgent  int  // pending URLs of rank 0; kept when the slot is unloaded
	touched uint64

	items   []item
	spare   uint32 // list of items not in use, linked by pos: place + 1 of the first
	npend   int    // items in use
	marks   []mark
	index   index
	text    []byte // path and query of each item
	dead    int    // bytes of text that belong to no item
	lanes   []*lane
	units   []*unit
	further []*site         // sites that are not the own of their unit
	rare    map[uint32]rare // of the items that have any of it
	wishes  map[uint32]wish // of items under way
	dirty   []uint32        // items changed since the last delta, and stale places

	// When unloaded: what the last commit said, and what came since.
	known      uint32
	npending   uint32
	due        int64
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
	text     uint32 // where its path and query begin in the slot's text
	lane     uint32
	pos      uint32 // in the queue of its lane
	length   uint16 // of its text
	depth    uint16
	attempts uint8
	flags    blobschema.QueuedFlags
	bits     itemBits
}

type itemBits uint8

const (
	isDirty itemBits = 1 << iota // changed since the last delta
	isAsked                      // a request for it is under way
	isRare                       // the slot's map has more of it
)

// rare is what few items have.
type rare struct {
	notBefore int64 // Unix milliseconds
	former    blobschema.Origin
}

// wish is the next generation of an item whose request is under way.
type wish struct {
	gen   uint32
	rank  uint32
	depth uint16
	flags blobschema.QueuedFlags
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

func newMark(e *blobschema.Seen) mark {
	return mark{fp: e.Fingerprint, gen: e.Generation, seq: e.Origin.Seq, part: uint16(e.Origin.Partition), state: e.State}
}

func (m *mark) origin() blobschema.Origin {
	return blobschema.Origin{Partition: partition.ID(m.part), Seq: m.seq}
}

// maxText bounds the text of a slot, so that offsets fit and memory has an end.
const maxText = 3 << 30

// resident is how many entries a loaded slot holds.
func (s *slot) resident() int { return s.npend + len(s.marks) }

// kind is where a fingerprint is found.
type kind uint8

const (
	absent kind = iota
	inItems
	inMarks
)

// index maps fingerprints to places in items and marks: open addressing with linear
// probing, by the high half of the fingerprint. Fingerprints are keyed hashes, so nobody
// can make them collide. Entries are never removed, for a known URL stays known.
type index struct {
	cells []uint32 // place<<1 | settled, plus 1; 0 is empty
	tags  []uint8  // the low byte of the fingerprint, which saves looking at most others
	n     int
}

func (x *index) home(fp uint64) int { return int((fp >> 32) * uint64(len(x.cells)) >> 32) }

// cell finds the cell of a fingerprint, or the empty one where it belongs.
func (s *slot) cell(fp uint64) int {
	x, tag := &s.index, uint8(fp)
	for i := x.home(fp); ; {
		c := x.cells[i]
		if c == 0 || x.tags[i] == tag && s.fingerprint(c) == fp {
			return i
		}
		if i++; i == len(x.cells) {
			i = 0
		}
	}
}

func (s *slot) fingerprint(cell uint32) uint64 {
	if v := cell - 1; v&1 == 0 {
		return s.items[v>>1].fp
	} else {
		return s.marks[v>>1].fp
	}
}

// find says where a URL is.
func (s *slot) find(fp uint64) (place uint32, k kind) {
	if s.index.n == 0 {
		return 0, absent
	}
	switch c := s.index.cells[s.cell(fp)]; {
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
func (s *slot) place(fp uint64, at uint32, k kind) {
	s.reserve(s.index.n + 1)
	c := s.cell(fp)
	if s.index.cells[c] == 0 {
		s.index.n++
	}
	s.index.tags[c], s.index.cells[c] = uint8(fp), at<<1+1
	if k == inMarks {
		s.index.cells[c]++
	}
}

// reserve makes room for n URLs in the index: at most four fifths of it are in use.
func (s *slot) reserve(n int) {
	old := s.index.cells
	if n*5 <= len(old)*4 {
		return
	}
	size := max(n*5/4+2, len(old)*3/2, 8)
	s.index.cells, s.index.tags = make([]uint32, size), make([]uint8, size)
	for _, c := range old {
		if c != 0 {
			fp := s.fingerprint(c)
			at := s.cell(fp)
			s.index.cells[at], s.index.tags[at] = c, uint8(fp)
		}
	}
}

// grow makes room for URLs that are about to come, so that arrays need not move.
func (s *slot) grow(pending, settled, text int) {
	s.items = slices.Grow(s.items, pending)
	s.marks = slices.Grow(s.marks, settled)
	s.text = slices.Grow(s.text, text)
	s.reserve(s.index.n + pending + settled)
}

// newItem stores an item, all but its text, and its place in a queue.
func (s *slot) newItem(it item, uri string) uint32 {
	it.text, it.length = uint32(len(s.text)), uint16(len(uri))
	s.text = append(s.text, uri...)
	s.npend++
	var i uint32
	if s.spare > 0 {
		i = s.spare - 1
		s.spare = s.items[i].pos
		s.items[i] = it
	} else {
		i = uint32(len(s.items))
		s.items = append(s.items, it)
	}
	s.place(it.fp, i, inItems)
	return i
}

// dropItem gives an item's memory back. What it leaves in dirty is stale, which its bits
// tell.
func (s *slot) dropItem(i uint32) {
	it := &s.items[i]
	if it.bits&isRare != 0 {
		delete(s.rare, i)
	}
	s.dead += int(it.length)
	*it = item{pos: s.spare}
	s.spare = i + 1
	s.npend--
	if s.dead > 1<<14 && s.dead > len(s.text)/2 {
		s.compact()
	}
}

// compact moves the texts of the items together.
func (s *slot) compact() {
	text := make([]byte, 0, (len(s.text)-s.dead)*5/4)
	for i := range s.items {
		it := &s.items[i]
		if it.length > 0 { // the empty text is no item's: a path begins with a slash
			at := uint32(len(text))
			text = append(text, s.text[it.text:it.text+uint32(it.length)]...)
			it.text = at
		}
	}
	s.text, s.dead = text, 0
}

// addMark stores a settled URL, which may be that of an item that is dropped next.
func (s *slot) addMark(m mark) {
	s.marks = append(s.marks, m)
	s.place(m.fp, uint32(len(s.marks)-1), inMarks)
}

// dropMark removes the mark of a URL that was put into items just now.
func (s *slot) dropMark(i uint32) {
	last := uint32(len(s.marks) - 1)
	if i != last {
		moved := s.marks[last]
		c := s.cell(moved.fp)
		s.marks[i] = moved
		s.index.cells[c] = i<<1 + 2
	}
	s.marks = s.marks[:last]
}

func (s *slot) uri(it *item) []byte { return s.text[it.text : it.text+uint32(it.length)] }

// url makes an item's URL again.
func (s *slot) url(it *item) weburl.URL {
	l := s.lanes[it.lane]
	uri := s.uri(it)
	b := make([]byte, 0, 2048)
	b = append(append(append(b, l.prefix()...), l.site.name...), uri...)
	u, ok := weburl.Canonical(string(b))
	if !ok {
		panic("frontier: the text of a URL is damaged") // it was a URL's: unreachable
	}
	return u
}

// setRare changes what few items have.
func (s *slot) setRare(i uint32, change func(r *rare)) {
	r := s.rare[i]
	change(&r)
	it := &s.items[i]
	if r == (rare{}) {
		delete(s.rare, i)
		it.bits &^= isRare
		return
	}
	if s.rare == nil {
		s.rare = map[uint32]rare{}
	}
	s.rare[i] = r
	it.bits |= isRare
}

func (s *slot) rareOf(i uint32) (r rare) {
	if s.items[i].bits&isRare != 0 {
		r = s.rare[i]
	}
	return r
}

// queued is an item as it is stored: the one that is wished for, if its request is under
// way, for what comes of that is in no commit yet.
func (s *slot) queued(i uint32) blobschema.Queued {
	it := &s.items[i]
	r := s.rareOf(i)
	q := blobschema.Queued{
		Slot: s.id, Host: s.lanes[it.lane].site.unit.key, Rank: it.rank, URL: s.url(it).String(), Generation: it.gen,
		Depth: it.depth, Attempts: it.attempts, Flags: it.flags, NotBefore: r.notBefore, Former: r.former,
	}
	if it.bits&isAsked == 0 {
		return q
	}
	if w, ok := s.wishes[i]; ok {
		w.firm = true // from now on a commit has it
		s.wishes[i] = w
		q.Generation, q.Rank, q.Depth, q.Flags, q.Attempts, q.NotBefore = w.gen, w.rank, w.depth, w.flags, 0, 0
	}
	return q
}
