package view

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

// TestDiff compares records of two crawls, in memory and in files.
func TestDiff(t *testing.T) {
	ok := func(url, digest string) blobschema.Page {
		return blobschema.Page{URL: url, Outcome: blobschema.OutcomeOK, Status: 200, Digest: digest, BodyBytes: int64(len(digest))}
	}
	not := func(url string, o blobschema.Outcome, status uint16) blobschema.Page {
		return blobschema.Page{URL: url, Outcome: o, Status: status}
	}
	redirect := func(url, to string) blobschema.Page {
		return blobschema.Page{URL: url, Outcome: blobschema.OutcomeRedirect, Status: 301, Redirect: to}
	}
	again := func(p blobschema.Page, generation uint32) blobschema.Page {
		p.Generation, p.Time = generation, time.Unix(int64(generation), 0)
		return p
	}
	before := []blobschema.Page{
		again(ok("http://a/again", "2"), 1), again(ok("http://a/again", "1"), 0),
		ok("http://a/changed", "1"), ok("http://a/changing", "9"), ok("http://a/empty", ""), ok("http://a/fails", "5"), ok("http://a/gone", "1"),
		ok("http://a/left", "6"), ok("http://a/moved", "7"), ok("http://a/moves", "8"), redirect("http://a/points", "http://a/1"),
		not("http://a/refused", blobschema.OutcomeRobots, 0), ok("http://a/same", "1"), ok("http://a/twin1", "3"), ok("http://a/twin2", "3"),
		not("http://a/void", blobschema.OutcomeClientError, 404), not("http://a/was", blobschema.OutcomeClientError, 404),
	}
	after := []blobschema.Page{
		ok("http://a/again", "2"), ok("http://a/changed", "2"), again(ok("http://a/changing", "9"), 1), again(ok("http://a/changing", "8"), 2),
		ok("http://a/empty2", ""), not("http://a/fails", blobschema.OutcomeTimeout, 0), not("http://a/gone", blobschema.OutcomeClientError, 410),
		redirect("http://a/moves", "http://a/new"), ok("http://a/new", "4"), ok("http://a/now", "7"), redirect("http://a/points", "http://a/2"),
		not("http://a/refused", blobschema.OutcomeRobots, 0), ok("http://a/same", "1"), ok("http://a/twin0", "3"), ok("http://a/was", "0"),
	}
	want := []string{
		"changed http://a/changed", "changed http://a/changing", "gone http://a/empty", "new http://a/empty2", "status http://a/fails", "gone http://a/gone",
		"gone http://a/left", "moved http://a/moved http://a/now", "moved http://a/moves http://a/new", "new http://a/new",
		"moved http://a/points http://a/2", "moved http://a/twin1 http://a/twin0", "gone http://a/twin2", "new http://a/was",
	}
	for _, memory := range []int{1 << 20, 100} {
		t.Run(fmt.Sprint(memory), func(t *testing.T) {
			tmp := t.TempDir()
			d := newDiff(nil, tmp, memory)
			for side, pages := range [][]blobschema.Page{before, after} {
				for i := range pages {
					if err := d.add(side, &pages[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := d.compare(); err != nil {
				t.Fatal(err)
			}
			if err := d.match(); err != nil {
				t.Fatal(err)
			}
			var got []string
			counts := map[Change]int64{}
			if err := d.Each(func(diff *Difference) error {
				text := string(diff.Change) + " " + diff.URL
				if diff.To != "" {
					text += " " + diff.To
				}
				got = append(got, text)
				counts[diff.Change]++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(counts, d.Counts); diff != "" || d.Same != 3 || d.Other != 1 {
				t.Errorf("%d are the same, %d others; counts (-listed +counted):\n%s", d.Same, d.Other, diff)
			}
			for _, s := range []*sorter{d.records, d.places, d.found} {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("files are left: %v, %v", left, err)
			}
		})
	}
}
