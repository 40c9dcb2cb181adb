package experiment

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs a client process of the experiment "capability" instead of the tests, if this process is one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == ClientCommand {
		if err := Client(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCapability runs the experiment for a few seconds. The checks of processor time need longer measurements.
func TestCapability(t *testing.T) {
	small(t, "capability", capability, []string{"Processor time with fast hosts"})
}
