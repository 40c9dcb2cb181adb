package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/blobschema"
)

// A crawler is the orbweaver program, used through its commands.
type crawler struct {
	binary, data string
}

// run runs a command and returns its standard output. Its error has the standard error.
func (c *crawler) run(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.binary, append(args, "--data", c.data)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &said
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("orbweaver %s: %w\n%s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}

// summary is the end of a run that fetches. Totals are of the whole crawl.
type summary struct {
	Status    int               `json:"status"`
	Totals    blobschema.Totals `json:"totals"`
	Requested []struct {
		URL    string `json:"url"`
		Result string `json:"result"`
	} `json:"requested"`
}

// fetch runs a command that fetches.
func (c *crawler) fetch(ctx context.Context, stdin string, args ...string) (*summary, error) {
	out, err := c.run(ctx, stdin, append(args, "--json", "--allow-net=127.0.0.1")...)
	if err != nil {
		return nil, err
	}
	events, err := decodeLines[struct{ Summary *summary }](bytes.NewReader(out))
	if err != nil || len(events) == 0 || events[len(events)-1].Summary == nil {
		return nil, fmt.Errorf("orbweaver %s gave no summary (%w): %.200s", args[0], err, out)
	}
	return events[len(events)-1].Summary, nil
}

// pages returns all page records, also of earlier generations.
func (c *crawler) pages(ctx context.Context) ([]blobschema.Page, error) {
	out, err := c.run(ctx, "", "export", "--format", "jsonl", "--history", "--out", "-")
	if err != nil {
		return nil, err
	}
	return decodeLines[blobschema.Page](bytes.NewReader(out))
}

// found is an answer to a search.
type found struct {
	Total   int64 `json:"total"`
	More    bool  `json:"more"`
	Results []hit `json:"results"`
}

type hit struct {
	URL     string  `json:"url"`
	Score   float64 `json:"score"`
	Explain struct {
		Exact  float64 `json:"exact"`
		Titled float64 `json:"titled"`
		Words  []struct {
			Score float64 `json:"score"`
		} `json:"words"`
		Rank struct {
			Score float64 `json:"score"`
		} `json:"rank"`
	} `json:"explain"`
}

// urls are those of the results, one a line.
func (f *found) urls() string {
	var b strings.Builder
	for i := range f.Results {
		fmt.Fprintln(&b, f.Results[i].URL)
	}
	return b.String()
}

// place is the number of a URL among the results, from 1, or 0.
func (f *found) place(url string) int {
	return 1 + slices.IndexFunc(f.Results, func(h hit) bool { return h.URL == url })
}

// A searcher is the program's search page.
type searcher struct{ home string }

// serve runs work while the search page is served.
func (c *crawler) serve(ctx context.Context, work func(searcher) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, "search", "--serve", "127.0.0.1:0", "--data", c.data)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = startTime
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	at := strings.Index(line, "http://")
	if at < 0 {
		cancel()
		return fmt.Errorf("search --serve: %q (%w, %w)", line, err, cmd.Wait())
	}
	home, _, _ := strings.Cut(strings.TrimSpace(line[at:]), " ")
	err = work(searcher{home})
	cancel()
	said, _ := io.ReadAll(lines) // the pipe ends with the program
	if end := cmd.Wait(); len(said) > 0 || end != nil && !errors.Is(end, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("search --serve: %w: %s", end, said))
	}
	return err
}

// get requests a page of the search page.
func (s searcher) get(ctx context.Context, page string, q url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.home+page+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	const most = 64 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d, %.200q", req.URL, resp.StatusCode, body)
	}
	return body, err
}

func query(text string, offset, limit int) url.Values {
	return url.Values{"q": {text}, "offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(limit)}}
}

// ask returns the JSON answer, with near-duplicates and explanations.
func (s searcher) ask(ctx context.Context, text string, offset, limit int) (*found, error) {
	q := query(text, offset, limit)
	q.Set("all", "1")
	q.Set("explain", "1")
	body, err := s.get(ctx, "search.json", q)
	if err != nil {
		return nil, err
	}
	var f found
	return &f, json.Unmarshal(body, &f)
}

// shown returns the URLs of the results that the HTML page shows, one a line.
func (s searcher) shown(ctx context.Context, text string, offset, limit int) (string, error) {
	q := query(text, offset, limit)
	q.Set("all", "1")
	body, err := s.get(ctx, "", q)
	if err != nil {
		return "", err
	}
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "a" && n.Parent.Data == "h2" {
			fmt.Fprintln(&b, attribute(n, "href"))
		}
	}
	return b.String(), nil
}
