package schedule

// Performance asks first where most pages are to be had per second of connection time, and
// there first-in, first-out (Cao, Jiang, Singh).
type Performance struct{ byDepth }

// Name is "performance".
func (Performance) Name() string { return "performance" }

// KeyRank is R = P / T: pages per second of the politeness key's next connection.
func (Performance) KeyRank(h *KeyView) float64 {
	pages, cost := h.Pace.Connection(h.Pending, h.Allowed)
	return float64(pages) / cost.Seconds()
}
