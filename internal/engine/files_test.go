package engine

import "testing"

func TestMaxIdle(t *testing.T) {
	for _, tt := range []struct{ files, connections, want int }{
		{1024, 64, 800}, // in a function
		{1024, 256, 608},
		{256, 256, 128},
		{1 << 20, 256, mostIdle},
	} {
		if got := maxIdle(tt.files, tt.connections); got != tt.want {
			t.Errorf("%d files and %d requests at once: %d idle connections, want %d", tt.files, tt.connections, got, tt.want)
		}
	}
}
