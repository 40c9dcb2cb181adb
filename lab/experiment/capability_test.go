package experiment

import (
	"fmt"
	"os"
	"testing"
	"time"
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

// TestCapability runs the experiment for a few seconds. The checks of speed over sockets need an idle machine.
func TestCapability(t *testing.T) {
	small(t, "capability", capability, []string{"Connections, over sockets", "Several requests to one host", "Processor time with fast hosts"})
}

// TestSocketTrial checks that each way uses connections as it says, and that no page arrives earlier than its trips allow.
func TestSocketTrial(t *testing.T) {
	for i, want := range []struct{ reused, trips int }{{0, 2}, {1, 1}, {1, 1}, {1, 1}} {
		trial := socketTrial{wire: wires[i], trip: 20 * time.Millisecond, bytes: 500, hosts: 3, time: 100 * time.Millisecond}
		f, err := trial.run()
		if err != nil {
			t.Fatal(err)
		}
		most := trial.hosts * trial.streams * int(f.Took/trial.trip) / want.trips
		if f.Pages == 0 || f.Pages > most || f.Reused != want.reused*f.Pages || f.User+f.System <= 0 || f.Wall < f.Took {
			t.Errorf("%s: %+v, want at most %d pages", trial.name, f, most)
		}
	}
}
