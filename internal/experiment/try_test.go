package experiment

import (
	"os"
	"strconv"
	"testing"
)

func TestTry(t *testing.T) {
	pages, _ := strconv.Atoi(os.Getenv("PAGES"))
	r, err := webgather(Options{Seed: 1, Quick: os.Getenv("FULL") == "", Pages: pages, Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write("/tmp/pl/exp"); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failed() {
		t.Log("FAILED", f)
	}
}
