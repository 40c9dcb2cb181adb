package main

import (
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// web is a web to crawl.
type web struct {
	name, about string
	cfg         simweb.Config
}

// webs lists the webs. A crawl of the first one is also killed.
var webs = []web{
	{"fast", "64 hosts of 100 pages of 30 KB that answer at once", fast(0)},
	{"gzip", "the same, sent in gzip", fast(1)},
	{"slow", "200 hosts of 20 small pages that take 5 to 200 ms to answer; a quarter close each connection", simweb.Config{
		Seed: 2, Hosts: 200, Pages: simweb.Pages{Min: 20}, PageBytes: 4 << 10, LinksPerPage: 20,
		Connection: simweb.Connection{LatencyMin: 5 * time.Millisecond, LatencyMax: 200 * time.Millisecond, OneRequest: 0.24},
	}},
	{"odd", "12 hosts with redirects, loops, failures, cut and damaged answers, odd URLs, and rules in robots.txt", simweb.Demo()},
	{"traps", "20 hosts of 20 pages, half of them with an endless calendar that robots.txt forbids", simweb.Config{
		Seed: 3, Hosts: 20, Pages: simweb.Pages{Min: 20}, Robots: simweb.RobotsShares{Sections: 1}, Trap: simweb.Trap{Hosts: 0.5},
	}},
}

func fast(gzip float64) simweb.Config {
	return simweb.Config{
		Seed: 1, Hosts: 64, Pages: simweb.Pages{Min: 100}, PageBytes: 30 << 10, LinksPerPage: 50,
		Connection: simweb.Connection{MaxRequests: 1000, Gzip: gzip},
	}
}
