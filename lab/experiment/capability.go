package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
)

// The figures of the paper (Cao, Jiang, Singh).
const (
	paperPersistent = 2.0 // speed of persistent connections, relative to HTTP/1.0
	paperPipelined  = 1.2 // speed of pipelining, relative to persistent connections: p in its formula
)

// Properties of the measurements.
const (
	farTrip        = 20 * time.Millisecond // round trip time
	farBytes       = 2_000                 // size of a page of a far host
	nearBytes      = 10_000                // size of a page of a fast host
	nearHosts      = 8
	simulatedPages = 200_000
	simulatedTime  = 10 * time.Second
)

// Bounds of the checks. Those of sockets leave room, because other processes may use the same processors.
const (
	exactly      = 0.95 // simulated speed relative to the model
	farEnough    = 32   // most connections for which the trip is the bound, not this machine
	fewStreams   = 8    // the same with four streams each
	persistently = 1.7  // HTTP/1.1 relative to HTTP/1.0
	linearly     = 0.8  // speed of n connections relative to n times one
	alike        = 0.85 // HTTP/2 with a stream relative to HTTP/1.1
	streaming    = 0.75 // speed of m streams relative to m times one
	kept         = 0.7  // speed of m HTTP/1.1 connections to one host relative to m times one
	plateau      = 0.8  // speed of the most connections relative to farEnough
)

// The wires to compare, in the order of the paper. HTTP/2 takes the place of pipelining.
var wires = []wire{
	{name: "HTTP/1.0", closes: true, streams: 1},
	{name: "HTTP/1.1", streams: 1},
	{name: "HTTP/2", http2: true, streams: 1},
	{name: "HTTP/2, 4 streams", http2: true, streams: 4},
}

// capabilityScale is the size of the measurements.
type capabilityScale struct {
	seed        uint64
	pages       int // of the simulated web
	connections []int
	streams     []int
	rounds      int
	each        time.Duration // length of a measurement over sockets
}

func capabilityScaleOf(o Options) capabilityScale {
	s := capabilityScale{
		seed: o.Seed, pages: simulatedPages, connections: []int{1, 2, 4, 8, 16, 32, 64, 128}, streams: []int{1, 2, 4, 8, 16, 32},
		rounds: 3, each: 700 * time.Millisecond,
	}
	if o.Quick {
		s.pages, s.connections, s.streams, s.rounds, s.each = 20_000, []int{1, 4}, []int{1, 4}, 1, 200*time.Millisecond
	}
	if o.Pages != 0 {
		s.pages = o.Pages
	}
	return s
}

// Figures of a round. Those of processor time are in microseconds per page.
func rate(f *clientFigures) float64      { return float64(f.Pages) / f.Took.Seconds() }
func reuse(f *clientFigures) float64     { return float64(f.Reused) / float64(f.Pages) }
func busy(f *clientFigures) float64      { return (f.User + f.System).Seconds() / f.Wall.Seconds() }
func user(f *clientFigures) float64      { return f.User.Seconds() * 1e6 / float64(f.Pages) }
func system(f *clientFigures) float64    { return f.System.Seconds() * 1e6 / float64(f.Pages) }
func processor(f *clientFigures) float64 { return user(f) + system(f) }

// capability measures the fetcher by HTTP version and number of connections, and its processor time.
func capability(o Options) (*Report, error) {
	s, log := capabilityScaleOf(o), o.logger()
	var sections []Section
	for _, do := range []func(capabilityScale) (Section, error){simulatedSection, farSection, streamsSection, nearSection} {
		sec, err := do(s)
		if err != nil {
			return nil, err
		}
		log("%s: measured", sec.Title)
		sections = append(sections, sec)
	}
	return &Report{
		Name: "capability", Title: "Connections, HTTP versions and processor time", Seed: s.seed, Pages: s.pages, Quick: o.Quick,
		Intro: fmt.Sprintf(capabilityIntro, s.each, s.rounds, farTrip), Sections: sections,
	}, nil
}

// simulatedSection crawls on a virtual clock with each number of connections.
func simulatedSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Connections, simulated", Breaks: "a step has half as many requests under way as it may (`mayFetch` in `internal/crawl/fetch.go`); each host waits 300 ms between requests (`Key` in `internal/schedule/schedule.go`).", Text: fmt.Sprintf(simulatedText, simulatedTime, farTrip)}
	perHost := s.pages / slices.Max(s.connections)
	speeds := [2][]float64{make([]float64, len(s.connections)), make([]float64, len(s.connections))}
	var jobs []func() error
	for i, n := range slices.Backward(s.connections) {
		web, err := simweb.New(simweb.Config{
			Seed: s.seed, Hosts: n, Names: true, Pages: simweb.Pages{Min: perHost}, PageBytes: 256, LinksPerPage: 8,
		})
		if err != nil {
			return sec, err
		}
		for w, perConnection := range []int{1, 0} {
			jobs = append(jobs, func() error {
				m, err := measure.Measure(measure.Lab{
					Seed: s.seed, Web: web, Partitions: 1, Slots: 256, Connections: n, Duration: simulatedTime,
					Server: func(string) measure.Server {
						return measure.Server{Connect: farTrip, Response: farTrip, PerConnection: perConnection}
					},
				})
				speeds[w][i] = float64(m.Pages) / m.Virtual.Seconds()
				return err
			})
		}
	}
	if err := parallel(jobs); err != nil {
		return sec, err
	}
	tab := Table{Name: "simulated", Caption: "Pages a second, simulated", Columns: []string{"connections", "HTTP/1.0", "HTTP/1.1", "times HTTP/1.0", "paper", "times one connection"}}
	doubled, linear := []float64{}, []float64{}
	for i, n := range s.connections {
		ratio, up := speeds[1][i]/speeds[0][i], speeds[1][i]/speeds[1][0]
		doubled, linear = append(doubled, ratio), append(linear, up/float64(n))
		tab.Rows = append(tab.Rows, []any{n, speeds[0][i], speeds[1][i], ratio, paperPersistent, up})
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		atLeast(fmt.Sprintf("HTTP/1.1 relative to HTTP/1.0 (paper: %g)", paperPersistent), exactly*paperPersistent, doubled),
		atLeast("HTTP/1.1 with n connections relative to n times one", exactly, linear),
	}
	return sec, nil
}

// atLeast returns the check that all values reach a bound.
func atLeast(what string, bound float64, values []float64) Check {
	lo, hi := slices.Min(values), slices.Max(values)
	here := short(lo)
	if hi > lo {
		here += " to " + short(hi)
	}
	return Check{What: fmt.Sprintf("%s: at least %g; here %s", what, bound, here), OK: lo >= bound}
}

// farSection measures each wire with each number of connections, one to each of as many hosts.
func farSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Connections, over sockets", Breaks: "the pool gives out no connection (`take` in `internal/fetch/pool.go`); one lock holds for all exchanges (`exchange` in `internal/fetch/exchange.go`).", Text: farText}
	var trials []*socketTrial
	for _, n := range s.connections {
		for _, w := range wires {
			trials = append(trials, &socketTrial{wire: w, trip: farTrip, bytes: farBytes, hosts: n, time: s.each})
		}
	}
	if err := runRounds(s.rounds, trials); err != nil {
		return sec, err
	}
	tab := Table{Name: "far", Caption: "Pages a second, medians", Columns: []string{"connections"}}
	plot := Plot{Name: "far", Title: "Pages a second by connections", X: "connections", Y: "pages a second", LogX: true, LogY: true}
	for w := range wires {
		tab.Columns = append(tab.Columns, wires[w].name)
		plot.Series = append(plot.Series, Series{Name: wires[w].name, Color: w})
	}
	tab.Columns = append(tab.Columns, "1.1 times 1.0", "paper", "streams times 1.1", "paper, pipelining", "1.1: times one connection", "1.1: processors", "streams: processors")
	var doubled, linear, same, streams, most []float64
	for i, n := range s.connections {
		row, of, last := []any{n}, trials[i*len(wires):], trials[len(trials)-len(wires):]
		for w := range wires {
			v, line := of[w].median(rate), &plot.Series[w]
			row, line.X, line.Y = append(row, v), append(line.X, float64(n)), append(line.Y, v)
		}
		ratio, up, many := of[1].over(of[0], rate), of[1].over(trials[1], rate), of[3].over(of[1], rate)
		tab.Rows = append(tab.Rows, append(row, ratio, paperPersistent, many, paperPipelined, up, of[1].median(busy), of[3].median(busy)))
		if n <= farEnough {
			doubled, linear, same = append(doubled, ratio), append(linear, up/float64(n)), append(same, of[2].over(of[1], rate))
			most = []float64{last[1].over(of[1], rate)}
		}
		if n <= fewStreams {
			streams = append(streams, many)
		}
	}
	sec.Tables, sec.Plots = []Table{tab}, []Plot{plot}
	sec.Checks = []Check{
		atLeast(fmt.Sprintf("HTTP/1.1 relative to HTTP/1.0, up to %d connections (paper: %g)", farEnough, paperPersistent), persistently, doubled),
		atLeast(fmt.Sprintf("HTTP/1.1 with n connections relative to n times one, up to %d", farEnough), linearly, linear),
		atLeast(fmt.Sprintf("HTTP/1.1 with the most connections relative to %d", farEnough), plateau, most),
		atLeast(fmt.Sprintf("HTTP/2 with one stream relative to HTTP/1.1, up to %d connections", farEnough), alike, same),
		atLeast(fmt.Sprintf("HTTP/2 with 4 streams relative to HTTP/1.1, up to %d connections (paper, pipelining: %g)", fewStreams, paperPipelined), 4*streaming, streams),
	}
	return sec, nil
}

// streamsSection compares the streams of one HTTP/2 connection with as many HTTP/1.1 connections to the same host.
func streamsSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Several requests to one host", Breaks: "the pool gives out no connection (`take` in `internal/fetch/pool.go`); one lock holds for all exchanges (`exchange` in `internal/fetch/exchange.go`).", Text: streamsText}
	tab := Table{Name: "streams", Caption: "Pages a second from one host, medians", Columns: []string{
		"requests under way", "HTTP/1.1 connections", "over reused ones", "HTTP/2 streams", "over the same connection", "HTTP/2 times HTTP/1.1", "HTTP/1.1 times one", "HTTP/2 times one",
	}}
	var trials []*socketTrial
	for _, m := range s.streams {
		for _, w := range []wire{{name: "HTTP/1.1", streams: m}, {name: "HTTP/2", http2: true, streams: m}} {
			trials = append(trials, &socketTrial{wire: w, trip: farTrip, bytes: farBytes, hosts: 1, time: s.each})
		}
	}
	if err := runRounds(s.rounds, trials); err != nil {
		return sec, err
	}
	var same, links, streams, one []float64
	for i, m := range s.streams {
		old, now := trials[2*i], trials[2*i+1]
		ratio, byLink, byStream := now.over(old, rate), old.over(trials[0], rate), now.over(trials[1], rate)
		tab.Rows = append(tab.Rows, []any{m, old.median(rate), old.median(reuse), now.median(rate), now.median(reuse), ratio, byLink, byStream})
		same, links, streams = append(same, ratio), append(links, byLink/float64(m)), append(streams, byStream/float64(m))
		one = append(one, now.median(reuse))
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		atLeast("share of the HTTP/2 answers over the first connection", 0.99, one),
		atLeast("m HTTP/2 streams relative to m times one", streaming, streams),
		atLeast("m streams of one HTTP/2 connection relative to m HTTP/1.1 connections", alike, same),
		atLeast("m HTTP/1.1 connections relative to m times one", kept, links),
	}
	return sec, nil
}

// nearSection measures the processor time of the fetcher when hosts answer at once.
func nearSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Processor time with fast hosts", Breaks: "the pool gives out no connection (`take` in `internal/fetch/pool.go`); a read polls for 150 ms first (`Read` in `internal/fetch/dial.go`).", Text: fmt.Sprintf(nearText, nearHosts, grouped(nearBytes))}
	tab := Table{Name: "near", Caption: "Processor time, medians", Columns: []string{
		"wire", "round trip, s", "pages/s", "user, µs/page", "system, µs/page", "user, share", "system, share", "network, share", "processor times HTTP/1.1",
	}}
	var trials []*socketTrial
	for _, w := range wires {
		trials = append(trials, &socketTrial{wire: w, bytes: nearBytes, hosts: nearHosts, processors: 1, time: 2 * s.each})
	}
	far := *trials[1]
	far.trip = farTrip
	trials = append(trials, &far)
	if err := runRounds(s.rounds, trials); err != nil {
		return sec, err
	}
	old, persistent, multiplexed := trials[0], trials[1], trials[2]
	for _, t := range trials {
		u, y, b := t.median(user), t.median(system), t.median(busy)
		tab.Rows = append(tab.Rows, []any{
			t.name, t.trip.Seconds(), t.median(rate), u, y, b * u / (u + y), b * y / (u + y), max(0, 1-b), t.over(persistent, processor),
		})
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		atLeast("system time per page of HTTP/1.0 relative to HTTP/1.1", 1.3, []float64{old.over(persistent, system)}),
		atLeast("processor time per page of HTTP/1.0 relative to HTTP/1.1", 1.1, []float64{old.over(persistent, processor)}),
		atLeast("processor share with fast hosts relative to far ones", 2, []float64{persistent.over(&far, busy)}),
		atLeast("pages per second of processor time, HTTP/2 relative to HTTP/1.1", 0.5, []float64{persistent.over(multiplexed, processor)}),
	}
	return sec, nil
}

const capabilityIntro = `**Question.** Cao, Jiang and Singh ("crawl capability") measure a crawler with HTTP/1.0, with persistent connections (HTTP/1.1) and with pipelining, over 1 to 128
connections, and divide its time among user, system and network. Persistent connections double the speed of HTTP/1.0, and pipelining adds a little: a factor of 1.2 in
their formula. Does that hold here? [Policies](policies.md) repeats their other figures.

**How.** A process of its own runs the crawler's fetcher (package fetch), which connects, requests, reads, extracts links and makes WARC records. It does not run
the rest of a crawler. Its parent serves the pages over loopback sockets. Each figure is the median of %[2]d rounds of %[1]v; ratios are of the same
round, because other programs may use the same processors. Figures over sockets differ a little each time.

- **HTTP/1.0**: the server closes each connection after one answer. The fetcher always sends HTTP/1.1 requests.
- **HTTP/1.1**: the fetcher's own client, without TLS, one request at a time.
- **HTTP/2**: over TLS, with one request at a time. The fetcher has no pipelining, which clients no longer use.
- **HTTP/2, 4 streams**: four requests at once over each connection. This takes the place of pipelining.

Loopback has no delay, so a far host has a round trip time of %[3]v: the server starts with a new connection one trip late and sends each answer
one trip late. A TLS handshake takes another trip. A page takes one trip over an open connection and two over a new one. So the model itself gives a ratio of 2; the measurement
shows whether the fetcher reaches it. We have only the ratios that the paper states, and no values of its curves.`

const simulatedText = `The crawler's own step and frontier run on a virtual clock for %[1]v, with one host for each connection. A response takes %[2]v and a new
connection %[2]v more. There is no processor time, so only the scheduling could limit the speed. These figures are the same on any machine. HTTP/2 has no row, because with one
stream its model is that of HTTP/1.1.`

const farText = `One connection to each of n hosts, as in the paper. A page has 2 kB. "Processors" is the processor time of the fetcher's process, with its start, relative to
wall time. Where it is high, the machine is the bound rather than the trip, and the curves flatten: fetcher and server share the machine, and TLS makes HTTP/2 reach the bound
first. The checks on growth end before that.

Four streams give nearly four times the pages while the trip is the bound, which is far more than pipelining in the paper. A crawl does not get this by default: it sends a host one request at a time, and
only a host rule with more connections allows several.`

const streamsText = `One far host that allows m requests at once. HTTP/2 carries all of them over one connection. HTTP/1.1 needs m connections, and falls
short of m times one: the fetcher keeps at most one idle connection of an origin, so if two requests end at nearly the same time, it closes one of the two connections and opens another
for the next request.`

const nearText = `%d hosts without a delay, pages of %s bytes, one connection to each; the fetcher may use one processor. User and system time are those of its whole
process, with its start, as the system counts them. *Network* is the rest of wall time: the process waits for the server, or for the processor
if other programs use it. The paper's crawler fetched from real servers over a network. Loopback has none, so only the last row, with a round trip, contains
waits that resemble the paper's. User time includes link extraction and compression of records. We have no values of the paper's figure.`
