package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestRun checks that the same seeds give the same crawls.
func TestRun(t *testing.T) {
	var traces []string
	for range 2 {
		var out strings.Builder
		var r report
		if err := run(t.Context(), []string{"-seeds", "2", "-json"}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Seeds != 2 || r.Pages == 0 || len(r.Faults) == 0 {
			t.Errorf("report %+v, error %v", r, err)
		}
		traces = append(traces, r.Trace)
	}
	if traces[0] != traces[1] {
		t.Errorf("traces %v of the same seeds", traces)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-seed", "2", "-trace"}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "tick 0/1 start") ||
		!strings.Contains(out.String(), "; 0 failed") {
		t.Errorf("trace %.200q, error %v", &out, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"-seeds", "9"}, io.Discard, io.Discard); !errors.Is(err, errStopped) {
		t.Errorf("error %v", err)
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, c := range []struct{ args, want string }{{"-seeds 0", "must be 1 or more"}, {"here", `unexpected argument "here"`}} {
		if err := run(t.Context(), strings.Fields(c.args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.args, err, c.want)
		}
	}
}
