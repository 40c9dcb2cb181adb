package blobschema

import (
	"fmt"
	"strconv"
)

// outcomeNames are stored in JSON and used as metric labels. Neither a name nor a
// number is ever reused.
var outcomeNames = [...]string{
	OutcomeNone:        "none",
	OutcomeOK:          "ok",
	OutcomeRedirect:    "redirect",
	OutcomeClientError: "client-error",
	OutcomeServerError: "server-error",
	OutcomeRobots:      "robots",
	OutcomeRobotsGone:  "robots-gone",
	OutcomeDNS:         "dns",
	OutcomeForbidden:   "forbidden",
	OutcomeConnect:     "connect",
	OutcomeTLS:         "tls",
	OutcomeTimeout:     "timeout",
	OutcomeProtocol:    "protocol",
	OutcomeCut:         "cut",
	OutcomeSuspect:     "suspect",
	OutcomeAborted:     "aborted",
	OutcomeScope:       "out-of-scope",
	OutcomeUnchanged:   "unchanged",
}

// String returns the outcome's name, such as "client-error", or its number if it
// has no name.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) && outcomeNames[o] != "" {
		return outcomeNames[o]
	}
	return "outcome-" + strconv.Itoa(int(o))
}

// ParseOutcome returns the outcome with a name.
func ParseOutcome(name string) (Outcome, error) {
	for o, n := range outcomeNames {
		if n == name && n != "" {
			return Outcome(o), nil
		}
	}
	return OutcomeNone, fmt.Errorf("parse outcome: no outcome is called %q", name)
}

// MarshalText returns the name, for JSON; CBOR stores the number.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText sets the outcome with a name.
func (o *Outcome) UnmarshalText(text []byte) error {
	parsed, err := ParseOutcome(string(text))
	if err != nil {
		return err
	}
	*o = parsed
	return nil
}
