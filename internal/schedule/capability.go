package schedule

// Capability asks first where most quality is to be had per second of connection time
// (Cao, Jiang, Singh), and there for the best URLs.
type Capability struct{ byQuality }

// Name is "capability".
func (Capability) Name() string { return "capability" }

// KeyRank is C: the sum of the qualities of the best P URLs, divided by T, where P is how many
// of them the politeness key's next connection will bring and T the time that it will take.
func (p Capability) KeyRank(h *KeyView) float64 {
	return h.capability(func(w Waiting) float64 { return p.Quality(w.Rank) })
}
