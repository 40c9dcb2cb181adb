package experiment

import "testing"

// TestTopics runs the experiment for an hour of virtual time.
func TestTopics(t *testing.T) {
	small(t, "topics", topics, nil)
}
