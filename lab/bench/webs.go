package main

import (
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// webW1 is the web of the throughput measurements: 64 hosts of 500 pages of about 30 KB,
// without latency and faults.
func webW1() simweb.Config {
	return simweb.Config{Seed: 1, Hosts: 64, Pages: simweb.Pages{Min: 500}, PageBytes: 30 << 10, LinksPerPage: 45}
}

// webW1G is webW1 with compression: the URLs and pages are the same, and all hosts send gzip.
func webW1G() simweb.Config {
	c := webW1()
	c.Connection.Gzip = 1
	return c
}

// webW1T is webW1 over TLS 1.3. The server ends no connection, so that a client needs one per host.
func webW1T() simweb.Config {
	c := webW1()
	c.TLS, c.Connection.MaxRequests = true, 1000
	return c
}

// webW1R is webW1 with requisites on each page, of which most are pages too.
func webW1R() simweb.Config {
	c := webW1()
	c.Requisites = 10
	return c
}

// webMillion is a web of a million small pages.
func webMillion() simweb.Config {
	return simweb.Config{Seed: 1, Hosts: 1000, Pages: simweb.Pages{Min: 1000}, PageBytes: 1 << 10, LinksPerPage: 10}
}

// webW2 is the web of the scheduling experiment (Cao et al.): 500 hosts of 60 pages with
// latencies uniformly between 5 and 200 ms. 24% of the hosts allow one request per
// connection. The pages are small, so that waiting dominates: over one connection the
// slowest host keeps a client busy for 12 s, whatever the processor.
func webW2() simweb.Config {
	return simweb.Config{
		Seed: 1, Hosts: 500,
		Pages: simweb.Pages{Min: 60}, PageBytes: 4 << 10, LinksPerPage: 20,
		Connection: simweb.Connection{LatencyMin: 5 * time.Millisecond, LatencyMax: 200 * time.Millisecond, OneRequest: 0.24},
	}
}

// precompress requests every page once if the web compresses pages. The web keeps the
// compressed bodies, so a measurement does not include their compression. It takes about a
// second and 8 MiB per 1,000 pages of 30 KB, on one processor.
func precompress(web *simweb.Web) {
	if web.Config().Connection.Gzip == 0 {
		return
	}
	var wg sync.WaitGroup
	for h := range web.Hosts() { // the runtime shares the processors among them
		wg.Go(func() {
			for p := range web.Host(h).Pages {
				web.Answer(simweb.Request{URL: web.URL(h, p), AcceptGzip: true})
			}
		})
	}
	wg.Wait()
}
