package schedule

// Performance asks first where most pages are to be had per second of connection time, and
// there first-in, first-out (Cao, Jiang, Singh).
type Performance struct{ byDepth }

// Name is "performance".
func (Performance) Name() string { return "performance" }

// HostRank is R = P / T: pages per second of the unit's next connection.
func (Performance) HostRank(h *HostView) float64 {
	pages, cost := h.Pace.Connection(h.Pending, h.Allowed)
	return float64(pages) / cost.Seconds()
}
