package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/internal/emulators"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		says string
	}{
		{nil, 0, ""},
		{errors.New("broken"), 1, "broken"},
		{run(t.Context(), []string{"-nonsense"}, io.Discard, io.Discard), 2, ""},
		{run(t.Context(), []string{"nonsense"}, io.Discard, io.Discard), 2, ""},
		{run(t.Context(), []string{"-h"}, io.Discard, io.Discard), 2, ""},
		{fmt.Errorf("fetching: %w", emulators.Missing("install it")), 3, "install it"},
	} {
		var stderr bytes.Buffer
		if got := status(c.err, &stderr); got != c.want || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: status %d, want %d; said %q", c.err, got, c.want, &stderr)
		}
	}
}

func TestFailures(t *testing.T) {
	const out = "=== RUN   TestAWS\n--- FAIL: TestAWS (1.0s)\n    --- PASS: TestAWS/a (0.1s)\n    --- FAIL: TestAWS/b (0.1s)\n        x.go:1: lost\nFAIL\n"
	if got, want := failures(out), "--- FAIL: TestAWS (1.0s)\n    --- FAIL: TestAWS/b (0.1s)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
