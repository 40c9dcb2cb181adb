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
	fewStreams   = 8    // most connections for that with streams
	persistently = 1.7  // HTTP/1.1 relative to HTTP/1.0
	linearly     = 0.8  // speed of n connections relative to n times one
	alike        = 0.85 // HTTP/2 with a stream relative to HTTP/1.1
	shared       = 0.75 // streams of one connection relative to as many connections
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
		Intro: fmt.Sprintf(capabilityIntro, s.rounds, s.each, farTrip), Sections: sections,
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
		atLeast("HTTP/1.1 relative to HTTP/1.0 (paper: 2)", persistently, doubled),
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
	sec := Section{Title: "Connections, over sockets", Text: fmt.Sprintf(farText, farTrip, farEnough, fewStreams)}
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
	var doubled, linear, same, streams []float64
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
		}
		if n <= fewStreams {
			streams = append(streams, many)
		}
	}
	sec.Tables, sec.Plots = []Table{tab}, []Plot{plot}
	sec.Checks = []Check{
		atLeast(fmt.Sprintf("HTTP/1.1 relative to HTTP/1.0, up to %d connections (paper: 2)", farEnough), persistently, doubled),
		atLeast(fmt.Sprintf("HTTP/1.1 with n connections relative to n times one, up to %d", farEnough), linearly, linear),
		atLeast(fmt.Sprintf("HTTP/2 with one stream relative to HTTP/1.1, up to %d connections", farEnough), alike, same),
		atLeast(fmt.Sprintf("HTTP/2 with 4 streams relative to HTTP/1.1, up to %d connections (paper, pipelining: 1.2)", fewStreams), shared*4, streams),
	}
	return sec, nil
}

// streamsSection compares the streams of one HTTP/2 connection with as many HTTP/1.1 connections to the same host.
func streamsSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Several requests to one host", Text: fmt.Sprintf(streamsText, farTrip)}
	tab := Table{Name: "streams", Caption: "Pages a second from one host, medians", Columns: []string{
		"requests under way", "HTTP/1.1 connections", "over reused ones", "HTTP/2 streams", "over the same connection", "HTTP/2 times HTTP/1.1", "HTTP/2 times one stream",
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
	var same, up, one []float64
	for i, m := range s.streams {
		both, ratio, gain := got[i], got[i][1].over(got[i][0], rate), got[i][1].over(got[0][1], rate)
		tab.Rows = append(tab.Rows, []any{m, both[0].median(rate), both[0].median(reuse), both[1].median(rate), both[1].median(reuse), ratio, gain})
		same, up, one = append(same, ratio), append(up, gain/float64(m)), append(one, both[1].median(reuse))
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		atLeast("m streams of one HTTP/2 connection relative to m HTTP/1.1 connections", alike, same),
		atLeast("m streams relative to m times one stream", shared, up),
		atLeast("share of the HTTP/2 answers over the first connection", 0.99, one),
	}
	return sec, nil
}

// nearSection measures the processor time of the fetcher when hosts answer at once.
func nearSection(s capabilityScale) (Section, error) {
	sec := Section{Title: "Processor time with fast hosts", Text: fmt.Sprintf(nearText, nearHosts, nearBytes, farTrip)}
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
		atLeast("system time per page of HTTP/1.0 relative to HTTP/1.1", 1.3, []float64{got[0].over(got[1], (*clientFigures).system)}),
		atLeast("processor time per page of HTTP/1.0 relative to HTTP/1.1", 1.1, []float64{got[0].over(got[1], perPage)}),
		atLeast("share of the time on the processor with fast hosts relative to far ones", 2, []float64{got[1].over(got[4], (*clientFigures).busy)}),
		atLeast("pages per second of processor time with HTTP/2 relative to HTTP/1.1", 0.5, []float64{got[1].over(got[2], perPage)}),
	}
	return sec, nil
}

const capabilityIntro = `%d %v %v`
const simulatedText = `%s %v %v`
const farText = `%v %d %d`
const streamsText = `%v`
const nearText = `%d %d %v`
