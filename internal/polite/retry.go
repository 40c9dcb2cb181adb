package polite

import (
	"cmp"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Retry bounds the attempts for a URL, after which it gets its last outcome. The zero value of
// a field is its default.
type Retry struct {
	Attempts     uint8         // after failures that may pass soon; default 3
	FewAttempts  uint8         // after failures that seldom pass: no such name, TLS, not HTTP; default 2
	HostFailures uint8         // consecutive URLs without an answer after which a host is given up; default 10
	Backoff      time.Duration // unit of a host's back-off, see [Pace.Done]; default defaultBackoff
	Wait         time.Duration // before the second attempt, and four times longer before each further one; default 30 s
}

// maxRetryWait bounds the wait between two attempts for one URL, without the back-off of the
// host.
const maxRetryWait = time.Hour

func (r Retry) withDefaults() Retry {
	r.Attempts = cmp.Or(r.Attempts, 3)
	r.FewAttempts = cmp.Or(r.FewAttempts, 2)
	r.HostFailures = cmp.Or(r.HostFailures, 10)
	if r.Wait <= 0 {
		r.Wait = 30 * time.Second
	}
	return r
}

// Next reports whether to retry a URL, and the least wait before that.
// attempt counts the attempts made: it is 1 after the
// first.
//
//	outcome                              attempts
//	not requested, aborted               again, at once; such an attempt does not count
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

// GivenUp reports whether to refuse the URLs of a host that does not answer, instead of waiting for longer and longer
// back-offs. Otherwise a dead host with many URLs would prevent the end of a crawl. silent counts the consecutive first
// requests of different URLs without an answer: retries of a few URLs that never answer do not make a host dead.
func (r Retry) GivenUp(silent int) bool { return silent >= int(r.withDefaults().HostFailures) }

// Silent reports whether an outcome means that the host gave no answer at all.
func Silent(o blobschema.Outcome) bool { return classOf(o, 0) == failed }
