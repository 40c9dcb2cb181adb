package polite

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Retry bounds how often a URL is asked for before it is refused with its last outcome. A
// field that is zero has its default.
type Retry struct {
	Attempts     uint8         // of a URL whose failure may pass soon; default 3
	FewAttempts  uint8         // of one whose failure seldom passes: no such name, TLS, not HTTP; default 2
	HostFailures uint8         // URLs in a row without an answer before a host is given up; default 10
	Backoff      time.Duration // unit of a host's back-off, see [Pace.Done]; default defaultBackoff
	Wait         time.Duration // before the second attempt, four times longer before each further one; default 30 s
}

// maxRetryWait bounds the wait between two attempts at one URL. The host's own back-off
// comes on top.
const maxRetryWait = time.Hour

func (r Retry) withDefaults() Retry {
	set := func(v *uint8, d uint8) {
		if *v == 0 {
			*v = d
		}
	}
	set(&r.Attempts, 3)
	set(&r.FewAttempts, 2)
	set(&r.HostFailures, 10)
	if r.Wait <= 0 {
		r.Wait = 30 * time.Second
	}
	return r
}

// Next says whether a URL is to be asked for again, and how long after at the earliest.
// attempt counts the attempts made, the one that ended so included: it is 1 after the
// first.
//
//	outcome                              attempts
//	not asked, aborted                   again, at once; such an attempt does not count
//	connect, timeout, cut                Attempts
//	4xx: 408, 425, 429                   Attempts
//	5xx: all but those below             Attempts
//	DNS, TLS, protocol                   FewAttempts
//	OK, unchanged, redirect, other 4xx   final
//	5xx: 501, 505, 506, 508, 510, 511    final: what is not implemented stays so
//	robots, robots gone                  final; robots.txt has had attempts of its own
//	forbidden, suspect, unknown numbers  final
func (r Retry) Next(outcome blobschema.Outcome, status uint16, attempt uint8) (again bool, after time.Duration) {
	r = r.withDefaults()
	var limit uint8
	switch outcome {
	case blobschema.OutcomeNone, blobschema.OutcomeAborted:
		return true, 0
	case blobschema.OutcomeConnect, blobschema.OutcomeTimeout, blobschema.OutcomeCut:
		limit = r.Attempts
	case blobschema.OutcomeDNS, blobschema.OutcomeTLS, blobschema.OutcomeProtocol:
		limit = r.FewAttempts
	case blobschema.OutcomeClientError:
		switch status {
		case 408, 425, 429:
			limit = r.Attempts
		}
	case blobschema.OutcomeServerError:
		switch status {
		case 501, 505, 506, 508, 510, 511:
		default:
			limit = r.Attempts
		}
	}
	if attempt >= limit {
		return false, 0
	}
	after = min(r.Wait, maxRetryWait)
	for ; attempt > 1 && after < maxRetryWait; attempt-- {
		after *= 4
	}
	return true, min(after, maxRetryWait)
}

// GivenUp says whether a host has been silent so often that what waits for it is to be
// refused rather than to wait for longer and longer back-offs: without it a dead host with
// many URLs would keep a crawl from ever ending. silent counts different URLs, asked for
// the first time, in a row: a few that never answer, tried again and again, do not make a
// dead host.
func (r Retry) GivenUp(silent int) bool { return silent >= int(r.withDefaults().HostFailures) }

// Silent reports whether an outcome means that the host gave no answer at all.
func Silent(o blobschema.Outcome) bool { return classOf(o, 0) == failed }
