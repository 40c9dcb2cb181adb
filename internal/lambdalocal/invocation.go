package lambdalocal

import (
	"crypto/rand"
	"fmt"
	"time"
)

// Outcome is how an invocation ended.
type Outcome string

// The outcomes. After the last three the instance is gone.
const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"        // the function reported an error
	TimedOut    Outcome = "timed out"     // killed at its time-out
	Exited      Outcome = "exited"        // the process ended by itself, was killed, or never got ready
	OutOfMemory Outcome = "out of memory" // killed for its memory
)

// Invocation is one run of a function.
type Invocation struct {
	Instance  string
	RequestID string

	Cold     bool
	Init     time.Duration // from the start of the process to its first request for work; 0 if warm
	Duration time.Duration // from the payload to the next request for work
	// Billed is Init and Duration, rounded up to a millisecond.
	Billed      time.Duration
	MaxMemoryMB int // peak of the instance so far, rounded up

	Outcome      Outcome
	ErrorType    string
	ErrorMessage string
	Response     []byte // a JSON text, if it succeeded
}

// Totals are sums over invocations.
type Totals struct {
	Invocations int64             `json:"invocations"`
	Cold        int64             `json:"cold"`
	Throttled   int64             `json:"throttled"` // not counted as invocations
	Recursive   int64             `json:"recursive"` // dropped because their chain was too long; not counted either
	Outcomes    map[Outcome]int64 `json:"outcomes"`
	Billed      time.Duration     `json:"billed_ns"`
	GBSeconds   float64           `json:"gb_seconds"` // Billed, times the memory configured
	MaxMemoryMB int               `json:"max_memory_mb"`
	MostAtOnce  int               `json:"most_at_once"`
}

func (t *Totals) add(inv Invocation, memoryMB int) {
	if t.Outcomes == nil {
		t.Outcomes = map[Outcome]int64{}
	}
	t.Invocations++
	if inv.Cold {
		t.Cold++
	}
	t.Outcomes[inv.Outcome]++
	t.Billed += inv.Billed
	t.GBSeconds += inv.Billed.Seconds() * float64(memoryMB) / 1024
	t.MaxMemoryMB = max(t.MaxMemoryMB, inv.MaxMemoryMB)
}

// roundUp returns d in whole milliseconds, rounded up as Lambda bills it.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// newID returns a random UUID, version 4 (RFC 9562, 5.4).
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
