package polite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

func TestRetryNext(t *testing.T) {
	for _, c := range []struct {
		outcome blobschema.Outcome
		status  []uint16
		want    string // the waits after the first attempt, the second, …
	}{
		{blobschema.OutcomeNone, []uint16{0}, "0s 0s 0s 0s"},
		{blobschema.OutcomeAborted, []uint16{0, 200}, "0s 0s 0s 0s"},
		{answer, []uint16{200, 429}, ""},
		{blobschema.OutcomeRedirect, []uint16{301}, ""},
		{clientErr, []uint16{400, 401, 403, 404, 410, 451, 304}, ""},
		{clientErr, []uint16{408, 425, 429}, "30s 2m0s"},
		{serverErr, []uint16{500, 502, 503, 504, 507, 520, 599}, "30s 2m0s"},
		{serverErr, []uint16{501, 505, 506, 508, 510, 511}, ""},
		{blobschema.OutcomeRobots, []uint16{0}, ""},
		{blobschema.OutcomeRobotsGone, []uint16{0, 503}, ""},
		{blobschema.OutcomeDNS, []uint16{0}, "30s"},
		{blobschema.OutcomeForbidden, []uint16{0}, ""},
		{connect, []uint16{0}, "30s 2m0s"},
		{blobschema.OutcomeTLS, []uint16{0}, "30s"},
		{blobschema.OutcomeTimeout, []uint16{0, 200}, "30s 2m0s"},
		{blobschema.OutcomeProtocol, []uint16{0}, "30s"},
		{blobschema.OutcomeCut, []uint16{0, 200}, "30s 2m0s"},
		{blobschema.OutcomeSuspect, []uint16{0}, ""},
		{255, []uint16{0, 503}, ""},
	} {
		for _, status := range c.status {
			if got := waits(Retry{}, c.outcome, status, 4); got != c.want {
				t.Errorf("%d %d: got %q, want %q", c.outcome, status, got, c.want)
			}
		}
	}
}

func waits(r Retry, o blobschema.Outcome, status uint16, most uint8) string {
	var s []string
	for attempt := uint8(1); attempt <= most; attempt++ {
		again, after := r.Next(o, status, attempt)
		if !again {
			break
		}
		s = append(s, after.String())
	}
	return strings.Join(s, " ")
}

func TestRetryConfigured(t *testing.T) {
	r := Retry{Attempts: 5, FewAttempts: 1, HostFailures: 2, Wait: 5 * time.Minute}
	if got, want := waits(r, connect, 0, 10), "5m0s 20m0s 1h0m0s 1h0m0s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if again, _ := r.Next(blobschema.OutcomeDNS, 0, 1); again {
		t.Error("a second attempt at a name")
	}
	r = Retry{Attempts: 255, Wait: 1 << 62}
	for attempt := range 255 {
		if again, after := r.Next(connect, 0, uint8(attempt)); !again || after != maxRetryWait {
			t.Errorf("attempt %d: %v %v", attempt, again, after)
		}
	}
	if again, _ := r.Next(connect, 0, 255); again {
		t.Error("attempts without end")
	}
}

func TestGivenUp(t *testing.T) {
	for _, c := range []struct {
		limit uint8
		after int
	}{{0, 10}, {3, 3}} {
		r := Retry{HostFailures: c.limit}
		if r.GivenUp(c.after-1) || !r.GivenUp(c.after) {
			t.Errorf("limit %d: not given up after exactly %d URLs", c.limit, c.after)
		}
	}
	if !Silent(connect) || Silent(blobschema.OutcomeCut) || Silent(answer) {
		t.Error("a host is silent when nothing at all came from it, and only then")
	}
}

func ExampleRetry_Next() {
	again, after := Retry{}.Next(blobschema.OutcomeTimeout, 0, 1)
	fmt.Println(again, after)
	// Output: true 30s
}
