package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// TestSites checks that a site includes all its ports and all names below it, for each way of partitioning and any words
// in its name.
func TestSites(t *testing.T) {
	news, home, shop, local := "https://news1.163.com/a", "https://163.com/", "https://x.shop.co.uk/", "https://a_b.-._/"
	port, below := "http://ports.example:8080/", "http://a.ports.example:8081/"
	four, four80, six, six80 := "http://192.0.2.7:8080/", "http://192.0.2.7/", "http://[2001:db8::7]:8080/", "http://[2001:db8::7]/"
	pages := []*page{{url: news, body: "coffee"}, {url: home, body: "tea"}, {url: shop, body: "coffee"}, {url: local, body: "coffee"}}
	for _, url := range []string{port, below, four, four80, six, six80, "http://192.0.2.77:8080/", "http://92.0.2.7:8080/", "http://[2001:db8::77]:8080/"} {
		pages = append(pages, &page{url: url, body: "port"})
	}
	for _, by := range []blobschema.PartitionBy{blobschema.ByHost, blobschema.ByDomain, blobschema.ByIP} {
		c := newCorpus(t, 1)
		c.crawl.Settings.PartitionBy = by
		c.put(naming.CrawlKey(testCrawl), c.crawl)
		c.commit(0, []blobschema.SegmentRef{c.segment(0, pages, false)}, nil)
		ix := c.open()
		for query, want := range map[string][]string{
			"site:163.com":            {home, news},
			"site:news1.163.com":      {news},
			"site:1.163.com":          nil,
			"site:com":                {home, news},
			"site:co.uk":              {shop},
			"site:uk":                 {shop},
			"site:shop.co.uk":         {shop},
			"site:_":                  {local},
			"site:-._":                {local},
			"site:-":                  nil,
			"site:a_b.-._":            {local},
			"site:ports.example":      {port, below},
			"site:ports.example:8080": {port},
			"site:a.ports.example":    {below},
			"site:192.0.2.7":          {four, four80},
			"site:192.0.2.7:8080":     {four},
			"site:0.2.7":              nil,
			"site:[2001:db8::7]":      {six, six80},
			"site:[2001:db8::7]:8080": {six},
			"coffee -site:_":          {news, shop},
			"coffee -site:163.com":    {local, shop},
		} {
			got := ask(t, ix, Request{Query: query, All: true})
			if d := cmp.Diff(sorted(want), sorted(urls(got))); d != "" {
				t.Errorf("by %s: %s: (-want +got)\n%s", by, query, d)
			}
		}
	}
}
