package wire

import "encoding/binary"

// HostTable numbers the hosts of links in order of appearance. Neighbours are of one host
// more often than not.
type HostTable struct {
	names  []string
	number map[string]uint32
	last   uint32
}

// NewHostTable returns a table of these names, in this order.
func NewHostTable(names []string) HostTable { return HostTable{names: names} }

func (t *HostTable) Add(host string) uint32 {
	if len(t.names) > 0 && t.names[t.last] == host {
		return t.last
	}
	n, ok := t.number[host]
	if !ok {
		if t.number == nil {
			t.number = map[string]uint32{}
		}
		n = uint32(len(t.names))
		t.names, t.number[host] = append(t.names, host), n
	}
	t.last = n
	return n
}

func (t *HostTable) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.names)))
	dst = AppendValues(dst, len(t.names), func(i int) uint64 { return uint64(len(t.names[i])) })
	for _, name := range t.names {
		dst = append(dst, name...)
	}
	return dst
}

// hostNames reads a HostTable's names, as parts of one string.
func ReadHostNames(c *Cursor) []string {
	names := make([]string, c.Count(1))
	lengths := make([]int, len(names))
	total := 0
	c.Values(len(names), MaxHost, func(i int, v uint64) { lengths[i] = int(v); total += int(v) })
	text := string(c.Take(uint64(total)))
	if c.Err != nil {
		return nil
	}
	for i, n := range lengths {
		names[i], text = text[:n], text[n:]
	}
	return names
}

// hostColumn reads a column of hosts.
func ReadHostColumn(c *Cursor, n int, names []string, set func(i int, host string)) {
	c.Column(n, uint64(len(names)), func(i int, v uint64) {
		if v >= uint64(len(names)) {
			c.Fail("host %d of %d", v, len(names))
			return
		}
		set(i, names[v])
	})
}
