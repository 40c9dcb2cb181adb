package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestChoosesAnAnswer checks that get shows the latest answer, and mentions a later record without one.
func TestChoosesAnAnswer(t *testing.T) {
	u, err := weburl.Parse("http://x.example/")
	if err != nil {
		t.Fatal(err)
	}
	old := blobschema.Page{URL: u.String(), Outcome: blobschema.OutcomeOK, WARC: "w"}
	gone := blobschema.Page{URL: u.String(), Generation: 1, Outcome: blobschema.OutcomeTimeout}
	for _, tt := range []struct {
		name    string
		f       getFlags
		history []blobschema.Page
		want    *blobschema.Page
		note    string
	}{
		{"nothing", getFlags{generation: -1}, nil, nil, ""},
		{"one", getFlags{generation: -1}, []blobschema.Page{old}, &old, ""},
		{"no answer at all", getFlags{generation: -1}, []blobschema.Page{gone}, &gone, ""},
		{"no answer the last time", getFlags{generation: -1}, []blobschema.Page{gone, old}, &old, "got none: timeout"},
		{"the record", getFlags{generation: -1, reading: reading{json: true}}, []blobschema.Page{gone, old}, &gone, ""},
		{"generation 0", getFlags{}, []blobschema.Page{gone, old}, &old, ""},
		{"generation 1", getFlags{generation: 1}, []blobschema.Page{gone, old}, &gone, ""},
		{"generation 2", getFlags{generation: 2}, []blobschema.Page{gone, old}, nil, ""},
	} {
		pg, note, err := tt.f.choose(u, tt.history)
		if (err == nil) != (tt.want != nil) || err == nil && !cmp.Equal(pg, *tt.want) || !strings.Contains(note, tt.note) || (note == "") != (tt.note == "") {
			t.Errorf("%s: %+v, %q, %v", tt.name, pg, note, err)
		}
	}
}

func TestHostTable(t *testing.T) {
	host := func(name string, score float64, requests uint64, response time.Duration) view.HostEstimate {
		return view.HostEstimate{Host: name, HostRecord: crawl.HostRecord{HostObservation: blobschema.HostObservation{Score: score, Requests: requests, Resp: response}}}
	}
	for _, tt := range []struct {
		f    hostsFlags
		want string // first letters of the hosts
		last string
	}{
		{hostsFlags{limit: 50}, "cab", "3 hosts, as of 2026-11-21 09:07:19 UTC"},
		{hostsFlags{}, "cab", "3 hosts, as of"},
		{hostsFlags{limit: 2}, "ca", "2 of 3 hosts, as of"},
		{hostsFlags{host: "b."}, "b", `1 host with "b." in the name, as of`},
		{hostsFlags{host: "none"}, "", `0 hosts with "none" in the name`},
	} {
		e := &view.Estimates{AsOf: time.Date(2026, 11, 21, 9, 7, 19, 0, time.UTC), Hosts: []view.HostEstimate{
			host("a.example", 1.5, 12_345, time.Minute), host("b.example", 0, 20_000, 1500*time.Millisecond), host("c.example", 1e-9, 0, 0),
		}}
		e.Hosts[2].Score = 2
		out := text("hosts", tt.f.choose(e))
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		got := ""
		for _, l := range lines[:len(lines)-1] {
			if f := strings.Fields(l); strings.HasSuffix(f[len(f)-1], ".example") {
				got += f[len(f)-1][:1]
			}
		}
		if got != tt.want || !strings.HasPrefix(lines[len(lines)-1], tt.last) {
			t.Errorf("%+v: %q, want %q:\n%s", tt.f, got, tt.want, out)
		}
	}
	for want, e := range map[string]view.Estimates{"no figures": {}, "has continued since\n": {AsOf: time.Now(), Behind: true}} {
		if out := text("hosts", (&hostsFlags{}).choose(&e)); !strings.Contains(out, want) {
			t.Error(out)
		}
	}
}
