package fsck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// claim is what a revisit says of the record that holds its payload, in few bytes.
type claim struct {
	at    uint64 // hash of the record's place
	of    uint64 // hash of what the record is said to be
	seq   uint32 // of the commit with the revisit
	by    uint16 // its partition
	found bool
}

func (a claim) compare(b claim) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by), cmp.Compare(a.seq, b.seq))
}

func (c *checker) placeHash(warc string, offset int64) uint64 {
	return c.hash.Fingerprint(fmt.Sprintf("%s %d", warc, offset))
}

// captureHash is a hash of what makes two descriptions of a capture the same.
func (c *checker) captureHash(o *blobschema.Original, pg *blobschema.Page) uint64 {
	return c.hash.Fingerprint(fmt.Sprintf("%s %d %d %s %d", o.URL, o.Time.UnixMicro(), o.Length, pg.Digest, pg.BodyBytes))
}

// claim takes note of what a page record says of its original. All revisits are looked up
// together when the commits are read again.
func (c *checker) claim(h *history, name string, seq uint64, pg *blobschema.Page) {
	switch o := pg.Original; {
	case o != nil && pg.WARC == "":
		c.violate("I6", name, "%s is a revisit, and has no WARC object", pg.URL)
	case o != nil:
		c.report.Revisits++
		c.claims = append(c.claims, claim{at: c.placeHash(o.WARC, o.Offset), of: c.captureHash(o, pg), seq: uint32(seq), by: uint16(h.id)})
	case pg.Outcome == blobschema.OutcomeUnchanged:
		c.violate("I6", name, "%s is unchanged, and since what is not said", pg.URL)
	}
}

// findOriginals looks among the pages of a commit for those that revisits name: each
// a response, in a commit not later than the revisit's; or in one of another partition,
// which had the slot before.
func (c *checker) findOriginals(p *part, name string, r *blobschema.CommitReader) {
	if len(c.claims) == 0 {
		return
	}
	_, seq, _, err := naming.ParseCommit(name)
	if err != nil {
		return
	}
	pages, err := r.Pages()
	if err != nil {
		return // reported already
	}
	for i := range pages {
		pg := &pages[i]
		if pg.WARC == "" || pg.Original != nil {
			continue
		}
		own := pg.Payload()
		at := c.placeHash(own.WARC, own.Offset)
		first, _ := slices.BinarySearchFunc(c.claims, at, func(cl claim, at uint64) int { return cmp.Compare(cl.at, at) })
		for j := first; j < len(c.claims) && c.claims[j].at == at; j++ {
			cl := &c.claims[j]
			by := c.parts[cl.by]
			cl.found = true
			switch {
			case by == p && seq > uint64(cl.seq) || by != p && !c.atlas.anyMoved:
				c.violate("I6", commitAt(by, uint64(cl.seq)), "%s is said to be a revisit of %s, which is in commit %d of partition %d", c.claimant(*cl), pg.URL, seq, p.id)
			case c.captureHash(&own, pg) != cl.of:
				c.violate("I6", commitAt(by, uint64(cl.seq)), "%s is a revisit, and does not say of its original what %s of %s is", c.claimant(*cl), pg.URL, own.Time.Format(time.RFC3339Nano))
			}
		}
	}
}

// checkOriginals reports the revisits whose original is no response of a visible page.
// Where a commit cannot be read they may be there.
func (c *checker) checkOriginals() {
	for _, cl := range c.claims {
		by := c.parts[cl.by]
		if !cl.found && !by.broken {
			c.violate("I6", commitAt(by, uint64(cl.seq)), "%s is a revisit of a response that has no page record", c.claimant(cl))
		}
	}
}

func (c *checker) sortClaims() { slices.SortFunc(c.claims, claim.compare) }

// claimant finds the URL of a revisit again, for a message.
func (c *checker) claimant(cl claim) string {
	if c.kept["I6"] > c.opt.MaxViolations {
		return "a page" // it would not be kept
	}
	url := "a page"
	c.findPage(c.parts[cl.by], uint64(cl.seq), func(pg *blobschema.Page) bool {
		o := pg.Original
		if o == nil || c.placeHash(o.WARC, o.Offset) != cl.at || c.captureHash(o, pg) != cl.of {
			return false
		}
		url = pg.URL
		return true
	})
	return url
}
