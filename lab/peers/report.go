package main

import (
	"fmt"
	"strings"
)

// report is the page about all programs.
type report struct {
	peers  []about
	tables []table
}

// about is a program with its version, or why it is missing.
type about struct {
	peer
	version string
	missing error
}

// table is what the programs did on one web. The first one is this crawler.
type table struct {
	web
	sights []sight
}

const intro = `# Beside other crawlers

The same generated webs, crawled by this program and by others on one machine with two processors, which the server shares. The server counts the
requests, so nobody's own figures are used. All programs are set to obey robots.txt, follow links to all hosts, do not wait between requests and accept gzip if
they can. wget has one connection, the others have %d at once. Programs in Java may use a heap of 1 GB.

Made by ` + "`make peers-install` and `make peers ARGS='-out docs/peers.md'`; [how each program is called](../lab/peers/peers.go)." + `

| program | version | stores |
|---|---|---|
`

const columns = `
| program | URLs requested | of | requested again | against robots.txt | unknown | URLs/s | CPU, ms per URL | memory, MB | stored, MB | most requests a second to one host |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

const notes = `
*Of* is the number of URLs that a faultless crawl requests. Retries of failed answers do not count as *requested again*. *Unknown* are requests
for URLs that no link leads to.

`

// text returns the page in Markdown, and the number of claims that its tables refute.
func (r *report) text() (text string, refuted int) {
	var b strings.Builder
	fmt.Fprintf(&b, intro, connections)
	for _, p := range r.peers {
		if p.missing == nil {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", p.name, p.version, p.stores)
		}
	}
	b.WriteString(notes + left)
	for _, t := range r.tables {
		fmt.Fprintf(&b, "\n## %s: %s\n%s", t.name, t.about, columns)
		for _, s := range t.sights {
			b.WriteString(s.row())
		}
		if t.note != "" {
			b.WriteString("\n" + t.note + "\n")
		}
		b.WriteString("\nClaims about this crawler that this table can refute:\n\n")
		for _, c := range t.claims() {
			verdict := "holds"
			if !c.holds {
				verdict = "**refuted**"
				refuted++
			}
			fmt.Fprintf(&b, "- %s: %s\n", c.text, verdict)
		}
	}
	return b.String(), refuted
}

type claim struct {
	text  string
	holds bool
}

// claims compares this crawler's row with what is said of it, and with the others.
func (t *table) claims() (claims []claim) {
	if len(t.sights) == 0 || t.sights[0].name != peers[0].name {
		return nil
	}
	own := &t.sights[0]
	claims = append(claims,
		claim{"every URL is requested, and nothing else", own.found == own.expected && own.other == 0},
		claim{"no request is against robots.txt", own.denied == 0})
	if !t.kill {
		claims = append(claims, claim{"no URL is requested twice", own.twice == 0})
	}
	fastest, leanest := true, true
	for i := range t.sights {
		s := &t.sights[i]
		if s.warc && i > 0 {
			fastest = fastest && own.rate() > s.rate()
			leanest = leanest && own.cpuPerURL() < s.cpuPerURL()
		}
	}
	if t.race {
		claims = append(claims, claim{"no other program that stores WARC with digests is as fast", fastest},
			claim{"no other program that stores WARC with digests takes as little CPU per URL", leanest})
	}
	return claims
}

// rate returns found URLs per second.
func (s *sight) rate() float64 { return float64(s.found) / s.seconds }

func (s *sight) cpuPerURL() float64 { return 1000 * s.cpu / float64(max(1, s.found)) }

func (s *sight) row() string {
	late := ""
	if s.late {
		late = fmt.Sprintf(" (ended after %v)", atMost)
	}
	return fmt.Sprintf("| %s%s | %d | %d | %d | %d | %d | %.0f | %.2f | %d | %.0f | %.0f |\n", s.name, late, s.found, s.expected, s.twice, s.denied, s.other,
		s.rate(), s.cpuPerURL(), s.memory>>20, float64(s.stored)/1e6, s.fastest)
}
