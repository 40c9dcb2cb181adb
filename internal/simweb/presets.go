package simweb

import "time"

// Demo returns a dozen hosts that together show every behaviour that does not need long
// timeouts. A crawl at a pace of 50 ms takes some seconds.
func Demo() Config {
	return Config{
		Seed: 33, Hosts: 12,
		Pages: Pages{Min: 20, Max: 60}, PageBytes: 8 << 10, LinksPerPage: 20,
		Connection: Connection{LatencyMax: 20 * time.Millisecond, OneRequest: 0.24, Gzip: 0.5, Chunked: 0.25},
		Robots: RobotsShares{AllowAll: 0.16, Sections: 0.25, Forbidden: 0.08, Error: 0.08, Redirect: 0.08,
			Huge: 0.08, Soft404: 0.08, Delay: 50 * time.Millisecond},
		Down: DownShares{Refused: 0.08},
		Kinds: PageShares{Redirect: 0.06, Loop: 0.02, Gone: 0.04, Broken: 0.01, Flaky: 0.03, Slow: 0.01, Cut: 0.01,
			Reset: 0.01, Garbage: 0.01, Surplus: 0.01, Media: 0.04, Duplicate: 0.04, NoFollow: 0.02, NoIndex: 0.02, Base: 0.03, Refresh: 0.02,
			Hidden: 0.03},
		Links:    LinkShares{NoFollow: 0.03, Frame: 0.02, Odd: 0.1},
		Trap:     Trap{Hosts: 0.16, Days: 20},
		FlakyMax: 1,
	}
}

// Small returns a web for the simulation: 5 to 20 named hosts of 5 to 30 pages of about 1 KB, with many faults.
func Small(seed uint64) Config {
	r := draw(seed, 0, 0, streamPreset)
	return Config{
		Seed: seed, Hosts: 5 + r.below(16), Names: true, HostsPerSite: 1 + r.below(4),
		Pages: Pages{Min: 5, Max: 30}, PageBytes: 1 << 10, LinksPerPage: 8,
		Connection: Connection{LatencyMin: time.Millisecond, LatencyMax: 2 * time.Second, OneRequest: 0.24,
			MaxRequests: 10, Gzip: 0.2, Chunked: 0.2},
		Robots: RobotsShares{AllowAll: 0.2, Sections: 0.2, Forbidden: 0.05, Error: 0.1, Redirect: 0.1, Soft404: 0.05,
			Delay: 2 * time.Second},
		Down: DownShares{DNS: 0.05, Refused: 0.05, Silent: 0.05},
		Kinds: PageShares{Redirect: 0.06, Loop: 0.02, Gone: 0.04, Broken: 0.03, Flaky: 0.08, Slow: 0.03, Cut: 0.02,
			Reset: 0.02, Silent: 0.01, Garbage: 0.01, Surplus: 0.01, Media: 0.03, Duplicate: 0.03, NoFollow: 0.02,
			NoIndex: 0.02, Base: 0.02, Refresh: 0.02, Hidden: 0.03},
		Links:    LinkShares{NoFollow: 0.03, Frame: 0.02, Odd: 0.1},
		Trap:     Trap{Hosts: 0.1, Days: 10},
		SlowBody: 5 * time.Second,
	}
}
