package engine

import (
	"testing"

	"github.com/orbweaver/orbweaver/internal/rank"
)

// TestOneWarmGraph: where there is memory for one partition's graph, that of another is let go before the
// next step begins.
func TestOneWarmGraph(t *testing.T) {
	var r ranks
	one, two := &rank.Warm{}, &rank.Warm{}
	r.give(1, one, 1)
	if r.take(1, 1) != one || r.take(1, 1) != nil {
		t.Error("what is kept is taken once")
	}
	r.give(1, one, 1)
	if r.take(2, 1) != nil || len(r.warm) != 0 {
		t.Errorf("%d graphs stay beside that of a step", len(r.warm))
	}
	r.give(1, one, 2)
	r.give(2, two, 2)
	if r.take(2, 2) != two || r.take(1, 2) != one {
		t.Error("with memory for two, two are kept")
	}
}
