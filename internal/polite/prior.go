package polite

import (
	"math"
	"time"
)

// Prior names estimates of a [Pace] that are of an earlier crawl. The first measurement replaces them.
type Prior uint8

// The estimates.
const (
	PriorConn Prior = 1 << iota
	PriorResp
	PriorPerConnection
)

// Bounds on what a crawl believes of an earlier one.
const (
	priorHalfLife = 30 * 24 * time.Hour
	maxPriorTime  = 2 * time.Second
)

// Remember sets the estimates of a new host to those of an earlier crawl, which are of some age; zero stands for no estimate.
// The result lies between them and those of an unknown host, on a logarithmic scale: the share of the earlier crawl is 1 at
// first, and halves every 30 days. No time is longer than 2 s. So a host that was slow long ago comes as early as a new one.
// The first measurement replaces each estimate, so that a host that has changed is soon known as it is.
func (p *Pace) Remember(conn, resp time.Duration, perConnection float64, age time.Duration) {
	share := math.Exp2(-max(age, 0).Hours() / priorHalfLife.Hours())
	between := func(unknown, measured float64) float64 { return unknown * math.Pow(measured/unknown, share) }
	estimate := func(which Prior, unknown, measured time.Duration) time.Duration {
		if measured <= 0 {
			return 0
		}
		p.Prior |= which
		return time.Duration(between(float64(unknown), float64(min(measured, maxPriorTime)))).Round(time.Microsecond)
	}
	p.ConnTime, p.RespTime = estimate(PriorConn, newConnTime, conn), estimate(PriorResp, newRespTime, resp)
	if perConnection >= 1 { // not NaN either
		p.PerConnection = between(NewPerConnection, min(perConnection, maxPerConnection))
		p.Prior |= PriorPerConnection
	}
}
