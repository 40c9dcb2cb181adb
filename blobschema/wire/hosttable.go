package wire

// HostTable numbers the hosts of links in order of appearance. It remembers the last host, which
// is the next one in most cases.
type HostTable struct {
	names  []string
	number map[string]uint32
	last   uint32
}

// Add returns the number of a host. A new host gets the next number.
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

// Names returns the hosts, by number.
func (t *HostTable) Names() []string { return t.names }

// Append appends the names for [Cursor.Texts].
func (t *HostTable) Append(dst []byte) []byte {
	return AppendTexts(dst, len(t.names), func(i int) string { return t.names[i] })
}

// ReadHostColumn reads a column of hosts.
func ReadHostColumn(c *Cursor, n int, names []string, set func(i int, host string)) {
	c.Column(n, uint64(len(names)), func(i int, v uint64) {
		if v >= uint64(len(names)) {
			c.Fail("host %d of %d", v, len(names))
			return
		}
		set(i, names[v])
	})
}
