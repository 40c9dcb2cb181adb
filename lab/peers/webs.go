package main

import (
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// web is a web to crawl.
type web struct {
	name, about string
	cfg         simweb.Config
	kill        bool // each program is killed after half of the pages, and started again
	race        bool // the claims of speed hold here
	note        string
}

// webs lists the webs.
var webs = []web{
	{name: "fast", about: "64 hosts of 100 pages of 30 KB that answer at once", cfg: fast(0), race: true},
	{name: "gzip", about: "the same, sent in gzip", cfg: fast(1), race: true},
	{
		name: "slow", about: "500 hosts of 10 small pages that take 5 to 200 ms to answer; a quarter close each connection", race: true,
		cfg: simweb.Config{
			Seed: 2, Hosts: 500, Pages: simweb.Pages{Min: 10}, PageBytes: 4 << 10, LinksPerPage: 20,
			Connection: simweb.Connection{LatencyMin: 5 * time.Millisecond, LatencyMax: 200 * time.Millisecond, OneRequest: 0.24},
		},
	},
	{
		name: "odd", about: "12 hosts with redirects, loops, failures, cut and damaged answers, odd URLs, and rules in robots.txt", cfg: simweb.Demo(),
		note: "A robots.txt that cannot be fetched forbids everything (RFC 9309, section 2.3.1.4), so requests to its host count as against robots.txt. " +
			"This crawler tries failing hosts again, after pauses, which takes most of its time.",
	},
	{
		name: "traps", about: "20 hosts of 20 pages, half of them with an endless calendar that robots.txt forbids",
		cfg: simweb.Config{
			Seed: 3, Hosts: 20, Pages: simweb.Pages{Min: 20}, Robots: simweb.RobotsShares{Sections: 1}, Trap: simweb.Trap{Hosts: 0.5},
		},
	},
	{
		name: "killed", about: "the web *fast*; each program is killed by SIGKILL after half of the pages, and started again", cfg: fast(0), kill: true,
		note: "This crawler commits after 30 seconds or 4,000 pages of a partition, whichever comes first. A crawl of three seconds is killed before most partitions have committed. " +
			"A kill after hours loses at most that much work too. Heritrix resumes from its last checkpoint; after seconds it has none.",
	},
}

func fast(gzip float64) simweb.Config {
	return simweb.Config{
		Seed: 1, Hosts: 64, Pages: simweb.Pages{Min: 100}, PageBytes: 30 << 10, LinksPerPage: 50,
		Connection: simweb.Connection{MaxRequests: 1000, Gzip: gzip},
	}
}
