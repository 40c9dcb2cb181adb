package schedule

import "github.com/orbweaver/orbweaver/internal/weburl"

// domain is a registrable domain with keys in memory. Those share its turns.
type domain struct {
	name  string
	keys  int
	turns uint64 // virtual time of the turn given last, plus 1; 0 for none
}

// nextTurn is the virtual start of the domain's next turn: one after its last one, but
// no earlier than now.
func (d *domain) nextTurn(virtual uint64) uint64 {
	start := max(virtual, d.turns)
	d.turns = start + 1
	return start
}

// domains are those with keys in memory, by name.
type domains map[string]*domain

// enter returns the domain of a key that is about to be made.
func (m domains) enter(key string) *domain {
	name := weburl.Host(key).RegistrableDomain()
	d := m[name]
	if d == nil {
		d = &domain{name: name}
		m[name] = d
	}
	d.keys++
	return d
}

// leave is called when a key leaves memory.
func (m domains) leave(d *domain) {
	if d.keys--; d.keys == 0 {
		delete(m, d.name)
	}
}
