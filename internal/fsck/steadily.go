package fsck

import (
	"fmt"
	"maps"
)

// maxReadings is how often what goes on changing is read.
const maxReadings = 5

// steadily checks what records name that others may be changing. What they replace they delete a
// while later, or at once; so if something is wrong, and the records are others by now, all is
// forgotten and checked again.
func (c *checker) steadily(keys []string, check func() error) error {
	stamp := func() (s string, err error) {
		for _, key := range keys {
			b, found, err := c.store.Record(c.ctx, key)
			if err != nil {
				return "", fmt.Errorf("read record %s: %w", key, err)
			}
			s += fmt.Sprintf("%t%d %s", found, len(b), b)
		}
		return s, nil
	}
	for reading := 1; ; reading++ {
		before, err := stamp()
		if err != nil {
			return err
		}
		mark := c.mark()
		if err := check(); err != nil || c.report.Found == mark.found {
			return err
		}
		after, err := stamp()
		if err != nil || after == before || reading == maxReadings {
			return err
		}
		c.forget(mark)
	}
}

// mark is how far the report is.
type mark struct {
	found, kept int
	byInvariant [2]map[string]int
	checked     map[string]int64
	index       IndexReport
	ranks       RanksReport
}

func (c *checker) mark() mark {
	return mark{c.report.Found, len(c.report.Violations), [2]map[string]int{maps.Clone(c.found), maps.Clone(c.kept)}, maps.Clone(c.checked), c.index, c.ranks}
}

// forget takes back what was reported since.
func (c *checker) forget(m mark) {
	for _, v := range c.report.Violations[m.kept:] {
		delete(c.said, v)
	}
	c.report.Found, c.report.Violations = m.found, c.report.Violations[:m.kept]
	c.found, c.kept, c.checked, c.index, c.ranks = m.byInvariant[0], m.byInvariant[1], m.checked, m.index, m.ranks
}
