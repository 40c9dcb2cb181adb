package blobschema

import (
	"encoding/json"
	"strings"
	"testing"
)

var outcomes = map[Outcome]string{
	OutcomeNone: "none", OutcomeOK: "ok", OutcomeRedirect: "redirect", OutcomeClientError: "client-error",
	OutcomeServerError: "server-error", OutcomeRobots: "robots", OutcomeRobotsGone: "robots-gone", OutcomeDNS: "dns",
	OutcomeForbidden: "forbidden", OutcomeConnect: "connect", OutcomeTLS: "tls", OutcomeTimeout: "timeout",
	OutcomeProtocol: "protocol", OutcomeCut: "cut", OutcomeSuspect: "suspect", OutcomeAborted: "aborted",
	OutcomeScope: "out-of-scope", OutcomeUnchanged: "unchanged",
}

func TestOutcome(t *testing.T) {
	for o, name := range outcomes {
		if o.String() != name {
			t.Errorf("outcome %d is called %s, want %s", uint8(o), o, name)
		}
		if got, err := ParseOutcome(name); got != o || err != nil {
			t.Errorf("ParseOutcome(%s) = %d, %v", name, uint8(got), err)
		}
	}
	for o := range Outcome(255) {
		if _, named := outcomes[o]; !named && !strings.HasPrefix(o.String(), "outcome-") {
			t.Errorf("outcome %d is called %s", uint8(o), o)
		}
	}
	for _, name := range []string{"", "OK", "outcome-5", "nothing"} {
		if o, err := ParseOutcome(name); err == nil {
			t.Errorf("ParseOutcome(%q) = %s", name, o)
		}
	}
	if got := Pending.String() + Fetched.String() + Refused.String() + Forwarded.String() + State(9).String(); got != "pendingfetchedrefusedforwardedstate-9" {
		t.Errorf("states are called %s", got)
	}
}

// TestOutcomeEncodings checks that JSON, which people read, has names, and CBOR has numbers.
func TestOutcomeEncodings(t *testing.T) {
	p := Page{URL: "u", Outcome: OutcomeClientError}
	b, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(b), `"outcome":"client-error"`) {
		t.Errorf("JSON is %s, %v", b, err)
	}
	var back Page
	if err := json.Unmarshal(b, &back); err != nil || back.Outcome != p.Outcome {
		t.Errorf("outcome comes back from JSON as %s, %v", back.Outcome, err)
	}
	if err := json.Unmarshal([]byte(`{"outcome":"nothing"}`), &back); err == nil {
		t.Error("an unknown outcome is taken from JSON")
	}
	b, err = cborEnc.Marshal(p)
	if want := "\xa3\x01au\x04\x03\x06\xf6"; err != nil || string(b) != want {
		t.Errorf("CBOR is %x, %v, want %x", b, err, want)
	}
}
