package schedule

import "github.com/orbweaver/orbweaver/internal/weburl"

// domain is a registrable domain with keys in memory, which share its turns.
type domain struct {
	name  string
	keys  int
	turns uint64 // virtual time of the last turn, plus 1; 0 for none
}

// nextTurn returns the virtual start of the domain's next turn: one after its last turn, but not
// before the present virtual time.
func (d *domain) nextTurn(virtual uint64) uint64 {
	start := max(virtual, d.turns)
	d.turns = start + 1
	return start
}

// domains holds the domains with keys in memory, by name.
type domains map[string]*domain

// enter returns the domain of a new key.
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

// leave removes a key from its domain.
func (m domains) leave(d *domain) {
	if d.keys--; d.keys == 0 {
		delete(m, d.name)
	}
}
