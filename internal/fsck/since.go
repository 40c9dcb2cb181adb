package fsck

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// State is what one check leaves to the next: up to which commits all was well. A later
// check reads all commits again, for only they tell whether something was lost since; but
// WARC objects, which are nearly all the bytes, it takes over from the earlier one as far
// as the commits that name them are the same, byte by byte. Objects do not change, so
// what it cannot see is a disk that has forgotten: therefore one in 32 of those taken over
// is read again, other ones each time.
type State struct {
	Version int    `json:"version"`
	Crawl   string `json:"crawl"`
	Frozen  string `json:"frozen"` // hash of what of the crawl never changes
	Checks  int    `json:"checks"`
	// Time is that of the check, as far as it was told.
	Time       time.Time              `json:"time,omitzero"`
	Partitions map[partition.ID]Whole `json:"partitions"`
	// Orphans says since when objects are known to be named by nothing.
	Orphans map[string]time.Time `json:"orphans,omitempty"`
}

// Whole is how far a partition was found whole.
type Whole struct {
	Seq     uint64 `json:"seq"`     // of the last commit
	Lineage string `json:"lineage"` // hash of all commits up to it, names and content
	Stored  int64  `json:"stored"`  // bytes of the WARC objects that they name
}

const (
	stateVersion = 1
	maxState     = 64 << 20 // bytes
	maxOrphans   = 100_000  // that a state names
)

// ErrState says that a state cannot be used: it is damaged, or about another crawl.
var ErrState = errors.New("unfit state of checks")

// DecodeState decodes what [State.Encode] wrote.
func DecodeState(b []byte) (*State, error) {
	var s State
	if len(b) > maxState {
		return nil, fmt.Errorf("%w: %d bytes are above the bound of %d", ErrState, len(b), maxState)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if s.Version != stateVersion || s.Crawl == "" || s.Checks < 0 {
		return nil, fmt.Errorf("%w: version %d, of crawl %q", ErrState, s.Version, s.Crawl)
	}
	return &s, nil
}

// Encode encodes a state as JSON.
func (s *State) Encode() ([]byte, error) { return json.MarshalIndent(s, "", "  ") }

// frozenHash is a hash of what of a crawl never changes.
func frozenHash(c *blobschema.Crawl) string {
	b, err := json.Marshal([]any{c.ID, c.Created, c.HashKey, c.Slots, c.Partitions})
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// openState takes up what an earlier check has left.
func (c *checker) openState() error {
	s := c.opt.State
	if s == nil {
		return nil
	}
	c.next = &State{
		Version: stateVersion, Crawl: c.id, Frozen: frozenHash(&c.crawl), Checks: s.Checks + 1, Time: c.opt.Time, Partitions: map[partition.ID]Whole{},
	}
	if s.Version == 0 { // there was none
		return nil
	}
	if s.Crawl != c.id || s.Frozen != c.next.Frozen {
		return fmt.Errorf("%w: it is about crawl %q, begun at another time or another one than %q", ErrState, s.Crawl, c.id)
	}
	for _, p := range c.parts {
		if was := s.Partitions[p.id]; p.head.Seq < was.Seq {
			c.violate("I4", naming.HeadKey(c.id, p.id), "its last commit is %d, and was %d at the check before", p.head.Seq, was.Seq)
		}
	}
	return nil
}

// lineage follows the commits of a partition.
type lineage struct {
	was  Whole // at the check before
	hash [sha256.Size]byte
	seq  uint64
	read int64 // bytes of WARC objects that the commits after was.Seq name
}

// follow takes a commit into the lineage of a partition, and compares it with the one
// of the check before.
func (c *checker) follow(h *history, name string, data []byte) {
	if c.next == nil {
		return
	}
	l := &h.lineage
	content := sha256.Sum256(data)
	l.hash = sha256.Sum256(append(append(l.hash[:], name...), content[:]...))
	if l.seq++; l.seq == l.was.Seq && hex.EncodeToString(l.hash[:]) != l.was.Lineage {
		c.violate("I6", name, "the commits up to it are not those of the check before: one of them has changed, and WARC objects were not read because of that check")
	}
}

// takenOver reports whether the WARC objects of the next commit were read by the check before.
func (h *history) takenOver() bool { return h.was.Seq > 0 && h.seq <= h.was.Seq }

// settleState makes the state that this check leaves: none, but the former, of a crawl with
// violations, and for WARC objects that were not all read.
func (c *checker) settleState() {
	if c.next == nil {
		return
	}
	if c.opt.WARCs != allWARCs || !c.report.Clean() {
		was := c.opt.State.Partitions
		c.next.Partitions = was
	}
	for name := range c.orphans {
		if len(c.next.Orphans) == maxOrphans {
			break
		}
		since, known := c.opt.State.Orphans[name]
		if !known {
			since = c.opt.Time
		}
		if c.next.Orphans == nil {
			c.next.Orphans = map[string]time.Time{}
		}
		c.next.Orphans[name] = since
	}
	c.report.State = c.next
}
