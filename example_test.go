package orbweaver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver"
)

// site serves three pages on this machine. Its settings let a crawl connect to it, without a delay.
func site() (url string, settings map[string][]string, done func()) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages := map[string]string{
			"/":      `<title>Spiders</title><p>They weave. <a href="/orb">Orbs</a> <a href="/print/orb">to print</a></p>`,
			"/orb":   `<title>Orbs</title><p>A web in the form of a wheel. <a href="/sheet">Sheets</a></p>`,
			"/sheet": `<title>Sheets</title><p>A flat web.</p>`,
		}
		body, ok := pages[strings.TrimPrefix(r.URL.Path, "/print")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, body)
	}))
	return srv.URL, map[string][]string{"allow-net": {"127.0.0.1"}, "delay": {"0s"}}, srv.Close
}

// Crawl a site into a folder, and read its pages.
func Example() {
	url, settings, done := site()
	defer done()
	dir, err := os.MkdirTemp("", "orbweaver")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	c, err := orbweaver.Open(ctx, dir, orbweaver.Options{Seeds: []string{url}, Settings: settings})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
	var titles []string
	for page, err := range c.Pages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		title, _, err := page.Text(ctx)
		if err != nil {
			log.Fatal(err)
		}
		links, err := page.Links(ctx)
		if err != nil {
			log.Fatal(err)
		}
		titles = append(titles, fmt.Sprintf("%s: %d links", title, len(links)))
	}
	slices.Sort(titles)
	fmt.Println(strings.Join(titles, "\n"))
	// Output:
	// Orbs: 1 links
	// Orbs: 1 links
	// Sheets: 0 links
	// Spiders: 2 links
}

// Handle each page when it is stored, and follow some links only.
func ExampleOptions() {
	url, settings, done := site()
	defer done()
	ctx := context.Background()
	c, err := orbweaver.Open(ctx, "mem://", orbweaver.Options{
		Seeds: []string{url}, Settings: settings,
		Filter: func(_, link string) bool { return !strings.Contains(link, "/print/") },
		OnPage: func(ch orbweaver.Change) error {
			fmt.Println(ch.Kind, strings.TrimPrefix(ch.Page.URL, url))
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// new /
	// new /orb
	// new /sheet
}

// Stop a crawl, resume it, and fetch one of its pages again.
func ExampleCrawl_Run() {
	url, settings, done := site()
	defer done()
	dir, err := os.MkdirTemp("", "orbweaver")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c, err := orbweaver.Open(context.Background(), dir, orbweaver.Options{Seeds: []string{url}, Settings: settings})
	if err != nil {
		log.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(errors.Is(c.Run(stopped), context.Canceled))
	if err := c.Close(); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	c, err = orbweaver.Open(ctx, dir, orbweaver.Options{Settings: settings}) // another process, perhaps
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := errors.Join(c.Run(ctx), c.Submit(ctx, url+"/orb"), c.Run(ctx)); err != nil {
		log.Fatal(err)
	}
	for ch, err := range c.Feed(ctx, "") {
		if err != nil {
			log.Fatal(err)
		}
		if ch.Page.Generation > 0 {
			fmt.Println(ch.Kind, strings.TrimPrefix(ch.Page.URL, url), ch.Before == ch.Page.Digest)
		}
	}
	// Output:
	// true
	// unchanged /orb true
}
