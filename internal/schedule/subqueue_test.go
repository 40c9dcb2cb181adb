package schedule

import (
	"fmt"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func TestSubQueue(t *testing.T) {
	parse := func(s string) weburl.URL {
		u, err := weburl.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	hashed := []blobschema.QueueBy{blobschema.QueueByBKDR, blobschema.QueueByELF, blobschema.QueueBySDBM}
	const n = 2_000
	for _, by := range append(hashed, "", blobschema.QueueByHost, blobschema.QueueBySURT) {
		for _, k := range []int{-1, 0, 1, 2, 5, 64, 100} {
			used := map[uint8]int{}
			for i := range n {
				u := parse(fmt.Sprintf("https://portal.example/d%d/p%d.html", i%8, i))
				q := subQueue(by, k, u)
				if q != subQueue(by, k, parse(u.String())) {
					t.Fatalf("%s by %q of %d: two calls differ", u, by, k)
				}
				used[q]++
			}
			want := max(1, min(k, maxQueues))
			switch by {
			case "", blobschema.QueueByHost:
				want = 1
			case blobschema.QueueBySURT:
				if len(used) > min(want, 8) || want > 1 && len(used) < 2 {
					t.Errorf("by surt of %d: eight prefixes in %d queues", k, len(used))
				}
				continue
			}
			if len(used) != want {
				t.Errorf("by %q of %d: %d queues are used", by, k, len(used))
			}
			for q, c := range used {
				if int(q) >= want || c > 2*n/want {
					t.Errorf("by %q of %d: queue %d has %d of %d", by, k, q, c, n)
				}
			}
		}
	}
	// With SURT, everything below one first segment is one queue.
	first := subQueue(blobschema.QueueBySURT, 64, parse("https://portal.example/news"))
	for _, s := range []string{"/news/", "/news/a", "/news?x=1", "/news/a/b/c?x#y"} {
		if q := subQueue(blobschema.QueueBySURT, 64, parse("https://portal.example"+s)); q != first {
			t.Errorf("%s is in queue %d, not %d", s, q, first)
		}
	}
}
