package main

import (
	"fmt"
	"io"
	"strings"
)

// report is the page about all programs.
type report struct {
	peers  []about
	sights []sight
	killed []sight
}

// about is a program with its version, or why it is missing.
type about struct {
	peer
	version string
	missing error
}

const intro = `# Beside other crawlers

The same generated webs, crawled by this program and by others on one machine with two processors, which the server shares. The server counts the
requests, so nobody's own figures are used. All programs obey robots.txt, follow links to all hosts, pause for nothing and accept gzip. Pages of wget
come over one connection, the others may use %d at once.

Made by ` + "`make peers ARGS='-out docs/peers.md'`; [how each program is called](../lab/peers/peers.go)." + `

| program | version | stores |
|---|---|---|
`

const columns = `
| program | URLs requested | of | requested again | against robots.txt | unknown to the truth | URLs/s | CPU, ms per URL | memory, MB | stored, MB | most requests a second to one host |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

// write writes the page in Markdown.
func (r *report) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, intro, connections)
	for _, p := range r.peers {
		if p.missing == nil {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", p.name, p.version, p.stores)
		}
	}
	for _, w := range webs {
		rows := ""
		for _, s := range r.sights {
			if s.web == w.name {
				rows += s.row()
			}
		}
		if rows != "" {
			fmt.Fprintf(&b, "\n## %s: %s\n%s%s", w.name, w.about, columns, rows)
		}
	}
	if len(r.killed) > 0 {
		fmt.Fprintf(&b, "\n## %s, killed\n\nEach program is killed by SIGKILL after half of the pages, and started again. What it requests again it had lost.\n%s", webs[0].name, columns)
		for _, s := range r.killed {
			b.WriteString(s.row())
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (s sight) row() string {
	late := ""
	if s.late {
		late = fmt.Sprintf(" (ended after %v)", atMost)
	}
	return fmt.Sprintf("| %s%s | %d | %d | %d | %d | %d | %.0f | %.2f | %d | %.0f | %.0f |\n", s.peer, late, s.found, s.expected, s.twice, s.denied, s.other,
		s.rate(), 1000*s.cpu/float64(max(1, s.found)), s.memory>>20, float64(s.stored)/1e6, s.fastest)
}
