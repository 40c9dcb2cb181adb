package simweb

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

type robotsKind uint8

// In the order of RobotsShares.
const (
	robotsNone robotsKind = iota
	robotsAllowAll
	robotsSections
	robotsForbidden
	robotsError
	robotsRedirect
	robotsHuge
	robotsSoft404
	robotsDrip
)

func (k robotsKind) String() string {
	return [...]string{"none", "allow all", "sections", "forbidden", "error", "redirect", "huge", "soft 404", "drip"}[k]
}

// rules reports whether sections of the host are forbidden.
func (k robotsKind) rules() bool {
	return k == robotsSections || k == robotsRedirect || k == robotsHuge
}

// unreachable reports whether the host's rules cannot be fetched, which forbids all pages (RFC 9309 section
// 2.3.1.4).
func (k robotsKind) unreachable() bool { return k == robotsError || k == robotsDrip }

// badAgent is the product token that every robots.txt with rules forbids everything.
const badAgent = "badbot"

// denied reports whether a crawler with that product token must not request pages of a section. It is
// robotsText as a table.
func (w *Web) denied(h int, s section, agent string) bool {
	x := &w.hosts[h]
	switch {
	case !x.robots.rules():
		return false
	case strings.EqualFold(agent, badAgent):
		return true
	case s == private, s == days:
		return true
	case s == beta, s == script:
		return !(x.ownGroup && strings.EqualFold(agent, w.cfg.Agent))
	default:
		return false
	}
}

func (w *Web) robotsText(h int) []byte {
	var b bytes.Buffer
	delay := ""
	if d := w.cfg.Robots.Delay; d > 0 {
		delay = "Crawl-delay: " + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "\n"
	}
	b.WriteString("# who may go where\nUser-agent: " + badAgent + "\nDisallow: /\n\n")
	if w.hosts[h].robots == robotsHuge {
		fill(&b, 480<<10)
	}
	b.WriteString("User-agent: *\nDisallow: /private/\nAllow: /private/open/\nDisallow: /beta/ # not yet\n" +
		"Disallow: /*.cgi$\ndisallow: /calendar/\n" + delay + "\n")
	if w.hosts[h].ownGroup {
		fmt.Fprintf(&b, "User-Agent: %s\nAllow: /private/open/\nDisallow: /private/\nDisallow: /calendar/\n%s\n",
			strings.ToUpper(w.cfg.Agent), delay)
	}
	b.WriteString(w.sitemapLine(h))
	if w.hosts[h].robots == robotsHuge {
		fill(&b, 1<<20)
	}
	return b.Bytes()
}

// sitemapLine returns the line that names the sitemap. Some hosts without a sitemap have this line too; its URL
// is then a 404.
func (w *Web) sitemapLine(h int) string {
	return "Sitemap: " + w.scheme() + w.authority[h] + sitemapURI + "\n"
}

// fill writes comments up to a size.
func fill(b *bytes.Buffer, size int) {
	for b.Len() < size {
		b.WriteString("# nothing to see on this line, nor on the next one\n")
	}
}

// robotsHops returns how many redirects lead from a host's robots.txt to its rules.
func (w *Web) robotsHops(h int) int {
	if w.hosts[h].robots != robotsRedirect {
		return 0
	}
	r := draw(w.cfg.Seed, h, 2, streamHost)
	return 1 + r.below(3)
}

// robotsAnswer answers for robots.txt and for the targets of its redirects.
func (w *Web) robotsAnswer(h int, uri string) (Response, bool) {
	hop := 0
	if uri != "/robots.txt" {
		n, ok := strings.CutPrefix(uri, "/robots-")
		n, ok2 := strings.CutSuffix(n, ".txt")
		if !ok || !ok2 || len(n) != 1 || !digit(n[0]) || n[0] == '0' {
			return Response{}, false
		}
		hop = int(n[0] - '0')
	}
	hops := w.robotsHops(h)
	switch {
	case hop > hops:
		return Response{}, false
	case hop < hops:
		return w.redirectResponse(301+hop%2, fmt.Sprintf("/robots-%d.txt", hop+1)), true
	}
	const plainText = "text/plain; charset=utf-8"
	switch w.hosts[h].robots {
	case robotsAllowAll:
		text := "User-agent: *\nDisallow:\n"
		if w.hosts[h].sitemap != sitemapNone {
			text += w.sitemapLine(h)
		}
		return textResponse(200, plainText, []byte(text)), true
	case robotsForbidden:
		return errorResponse(403), true
	case robotsError:
		return errorResponse(503), true
	case robotsSoft404:
		return textResponse(200, "text/html; charset=utf-8", []byte("<!DOCTYPE html>\n<title>Not here</title>\n<p>User-agents find nothing.</p>\n")), true
	case robotsNone:
		if w.hosts[h].sitemap != sitemapNone {
			return textResponse(200, plainText, []byte(w.sitemapLine(h))), true
		}
		return errorResponse(404), true
	default:
		resp := textResponse(200, plainText, w.robotsText(h))
		if w.hosts[h].robots == robotsDrip {
			resp.BodyTime = w.cfg.LateBy
		}
		return resp, true
	}
}
