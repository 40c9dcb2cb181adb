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

// Bounds of the checks. Other processes may use the same processors, so they leave room.
const (
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

// rounds holds the figures of a measurement, by round.
type rounds []clientFigures

func (r rounds) median(of func(*clientFigures) float64) float64 {
	var values []float64
	for i := range r {
		values = append(values, of(&r[i]))
	}
	return middle(values)
}

// middle returns the median of an odd number of values.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

func (f *clientFigures) rate() float64   { return float64(f.Pages) / f.Took.Seconds() }
func (f *clientFigures) busy() float64   { return (f.User + f.System).Seconds() / f.Wall.Seconds() }
func (f *clientFigures) user() float64   { return f.User.Seconds() * 1e6 / float64(f.Pages) }
func (f *clientFigures) system() float64 { return f.System.Seconds() * 1e6 / float64(f.Pages) }
func (f *clientFigures) reuse() float64  { return float64(f.Reused) / float64(f.Pages) }

// over returns the median ratio of two measurements in the same round, so that the load of the machine affects both.
func (r rounds) over(base rounds, of func(*clientFigures) float64) float64 {
	var ratios []float64
	for i := range r {
		ratios = append(ratios, of(&r[i])/of(&base[i]))
	}
	return middle(ratios)
}

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
	sec := Section{Title: "Connections, simulated", Text: fmt.Sprintf(simulatedText, simulatedTime, farTrip)}
	perHost := s.pages / (2 * slices.Max(s.connections))
	speeds := [2][]float64{make([]float64, len(s.connections)), make([]float64, len(s.connections))}
	var jobs []func() error
	for i, n := range slices.Backward(s.connections) {
		web, err := simweb.New(simweb.Config{
			Seed: s.seed, Hosts: 2 * n, Names: true, Pages: simweb.Pages{Min: perHost}, PageBytes: 256, LinksPerPage: 8,
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
		// Fails if a step leaves a host while its connection is open, and returns after the server has closed it.
		atLeast(fmt.Sprintf("HTTP/1.1 relative to HTTP/1.0 (paper: %g)", paperPersistent), persistently, doubled),
		// Fails if a step has fewer requests under way than StepConfig.Connections.
		atLeast("HTTP/1.1 with n connections relative to n times one", linearly, linear),
	}
	return sec, nil
}

// atLeast returns the check that all values reach a bound.
func atLeast(what string, bound float64, values []float64) Check {
	lo, hi := slices.Min(values), slices.Max(values)
	return Check{What: fmt.Sprintf("%s: at least %g; here %s to %s", what, bound, short(lo), short(hi)), OK: lo >= bound}
}

// farSection measures each wire with each number of connections, one to each of as many hosts.
func farSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Connections, over sockets", Text: farText}
	got := make([][]rounds, len(s.connections))
	for i := range got {
		got[i] = make([]rounds, len(wires))
	}
	for range s.rounds {
		for i, n := range s.connections {
			for w := range wires {
				f, err := wires[w].fetch(far{farTrip, farBytes}, n, 0, s.each)
				if err != nil {
					return sec, err
				}
				got[i][w] = append(got[i][w], f)
			}
		}
	}
	tab := Table{Name: "far", Caption: "Pages a second, medians", Columns: []string{"connections"}}
	plot := Plot{Name: "far", Title: "Pages a second by connections", X: "connections", Y: "pages a second", LogX: true, LogY: true}
	for w := range wires {
		tab.Columns = append(tab.Columns, wires[w].name)
		series := Series{Name: wires[w].name, Color: w}
		for i, n := range s.connections {
			series.X, series.Y = append(series.X, float64(n)), append(series.Y, got[i][w].median((*clientFigures).rate))
		}
		plot.Series = append(plot.Series, series)
	}
	tab.Columns = append(tab.Columns, "1.1 times 1.0", "paper", "streams times 1.1", "paper, pipelining", "1.1: times one connection", "1.1: processors", "streams: processors")
	var doubled, linear, same, streams, most []float64
	for i, n := range s.connections {
		row := []any{n}
		for w := range wires {
			row = append(row, plot.Series[w].Y[i])
		}
		rate, one := (*clientFigures).rate, got[i][1]
		ratio, up, many := one.over(got[i][0], rate), one.over(got[0][1], rate), got[i][3].over(one, rate)
		tab.Rows = append(tab.Rows, append(row, ratio, paperPersistent, many, paperPipelined, up, one.median((*clientFigures).busy), got[i][3].median((*clientFigures).busy)))
		if n <= farEnough {
			doubled, linear, same = append(doubled, ratio), append(linear, up/float64(n)), append(same, got[i][2].over(one, rate))
			most = []float64{got[len(got)-1][1].over(one, rate)}
		}
		if n <= fewStreams {
			streams = append(streams, many)
		}
	}
	sec.Tables, sec.Plots = []Table{tab}, []Plot{plot}
	sec.Checks = []Check{
		// Fails if fetch.pool does not keep connections, or keeps fewer than there are hosts.
		atLeast(fmt.Sprintf("HTTP/1.1 relative to HTTP/1.0, up to %d connections (paper: %g)", farEnough, paperPersistent), persistently, doubled),
		// These two fail if fetch.Client lets requests wait for each other, for example with a lock around an exchange.
		atLeast(fmt.Sprintf("HTTP/1.1 with n connections relative to n times one, up to %d", farEnough), linearly, linear),
		atLeast(fmt.Sprintf("HTTP/1.1 with the most connections relative to %d", farEnough), plateau, most),
		// Fails if fetch.pool keeps no HTTP/2 connections: each request then pays for two more trips.
		atLeast(fmt.Sprintf("HTTP/2 with one stream relative to HTTP/1.1, up to %d connections", farEnough), alike, same),
		// Fails if a request waits until its HTTP/2 connection is idle.
		atLeast(fmt.Sprintf("HTTP/2 with 4 streams relative to HTTP/1.1, up to %d connections (paper, pipelining: %g)", fewStreams, paperPipelined), 4*streaming, streams),
	}
	return sec, nil
}

// streamsSection compares the streams of one HTTP/2 connection with as many HTTP/1.1 connections to the same host.
func streamsSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Several requests to one host", Text: streamsText}
	tab := Table{Name: "streams", Caption: "Pages a second from one host, medians", Columns: []string{
		"requests under way", "HTTP/1.1 connections", "over reused ones", "HTTP/2 streams", "over the same connection", "HTTP/2 times HTTP/1.1", "HTTP/1.1 times one", "HTTP/2 times one",
	}}
	got := make([][2]rounds, len(s.streams))
	for range s.rounds {
		for i, m := range s.streams {
			for k, w := range []wire{{name: "HTTP/1.1", streams: m}, {name: "HTTP/2", http2: true, streams: m}} {
				f, err := w.fetch(far{farTrip, farBytes}, 1, 0, s.each)
				if err != nil {
					return sec, err
				}
				got[i][k] = append(got[i][k], f)
			}
		}
	}
	rate, reuse := (*clientFigures).rate, (*clientFigures).reuse
	var same, links, streams, one []float64
	for i, m := range s.streams {
		both, ratio := got[i], got[i][1].over(got[i][0], rate)
		byLink, byStream := both[0].over(got[0][0], rate), both[1].over(got[0][1], rate)
		tab.Rows = append(tab.Rows, []any{m, both[0].median(rate), both[0].median(reuse), both[1].median(rate), both[1].median(reuse), ratio, byLink, byStream})
		same, links, streams = append(same, ratio), append(links, byLink/float64(m)), append(streams, byStream/float64(m))
		one = append(one, both[1].median(reuse))
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		// Fails if fetch.pool gives each request an HTTP/2 connection of its own.
		atLeast("share of the HTTP/2 answers over the first connection", 0.99, one),
		// These two fail if a request waits until the HTTP/2 connection is idle.
		atLeast("m HTTP/2 streams relative to m times one", streaming, streams),
		atLeast("m streams of one HTTP/2 connection relative to m HTTP/1.1 connections", alike, same),
		// Fails if fetch.pool keeps no HTTP/1.1 connection of a host that has several.
		atLeast("m HTTP/1.1 connections relative to m times one", kept, links),
	}
	return sec, nil
}

// nearSection measures the processor time of the fetcher when hosts answer at once.
func nearSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Processor time with fast hosts", Text: fmt.Sprintf(nearText, nearHosts, grouped(nearBytes))}
	tab := Table{Name: "near", Caption: "Processor time, medians", Columns: []string{
		"wire", "hosts", "pages/s", "user, µs/page", "system, µs/page", "user, share", "system, share", "network, share", "processor times HTTP/1.1",
	}}
	got := make([]rounds, len(wires)+1) // the last one is of hosts that do not answer at once
	for range s.rounds {
		for i := range got {
			w, to := wires[min(i, len(wires)-1)], far{0, nearBytes}
			if i == len(wires) {
				w, to.trip = wires[1], farTrip
			}
			f, err := w.fetch(to, nearHosts, 1, 2*s.each)
			if err != nil {
				return sec, err
			}
			got[i] = append(got[i], f)
		}
	}
	perPage := func(f *clientFigures) float64 { return f.user() + f.system() }
	userShare := func(f *clientFigures) float64 { return f.User.Seconds() / f.Wall.Seconds() }
	systemShare := func(f *clientFigures) float64 { return f.System.Seconds() / f.Wall.Seconds() }
	for i, r := range got {
		name, where := wires[1].name, fmt.Sprintf("%v away", farTrip)
		if i < len(wires) {
			name, where = wires[i].name, "fast"
		}
		user, system := r.median(userShare), r.median(systemShare)
		tab.Rows = append(tab.Rows, []any{
			name, where, r.median((*clientFigures).rate), r.median((*clientFigures).user), r.median((*clientFigures).system),
			user, system, max(0, 1-user-system), r.over(got[1], perPage),
		})
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		// These two fail if fetch.pool keeps no connections: both versions then open one for each page.
		atLeast("system time per page of HTTP/1.0 relative to HTTP/1.1", 1.3, []float64{got[0].over(got[1], (*clientFigures).system)}),
		atLeast("processor time per page of HTTP/1.0 relative to HTTP/1.1", 1.1, []float64{got[0].over(got[1], perPage)}),
		// Fails if fetch.Client polls a connection instead of sleeping until data arrives.
		atLeast("processor share with fast hosts relative to far ones", 2, []float64{got[1].over(got[len(wires)], (*clientFigures).busy)}),
		// Fails if fetch.pool keeps no HTTP/2 connections: each page then costs a TLS handshake.
		atLeast("pages per second of processor time, HTTP/2 relative to HTTP/1.1", 0.5, []float64{got[1].over(got[2], perPage)}),
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
- **HTTP/2**: over TLS, with one request at a time. The fetcher has no pipelining, which today's servers do not support.
- **HTTP/2, 4 streams**: four requests at once over each connection. This takes the place of pipelining.

Loopback has no delay, so a far host has a round trip time of %[3]v: the server starts with a new connection one trip late and sends each answer
one trip late. A TLS handshake takes another trip. A page takes one trip over an open connection and two over a new one. So the model itself gives a ratio of 2; the measurement
shows whether the fetcher reaches it. We have only the ratios that the paper states, and no values of its curves.`

const simulatedText = `The crawler's own step and frontier run on a virtual clock for %[1]v, with two hosts for each connection. A response takes %[2]v and a new
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
if other programs use it. The paper's crawler was connected to real servers; loopback has no network, so here this share is small by
construction, and only the last row shows a wait for far hosts. User time contains link extraction and compression of records. We have no values of the paper's figure.`
