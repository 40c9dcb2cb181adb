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
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// found is what of an answer of the search is used.
type found struct {
	Query   string `json:"query"`
	Total   int64  `json:"total"`
	More    bool   `json:"more"`
	Cut     bool   `json:"cut_short"`
	Error   string `json:"error"`
	Results []hit  `json:"results"`
}

// hit is a result.
type hit struct {
	Place   int     `json:"place"`
	URL     string  `json:"url"`
	Score   float64 `json:"score"`
	Lang    string  `json:"lang"`
	Similar int     `json:"similar"`
	Title   struct {
		Text string `json:"text"`
	} `json:"title"`
	Snippet struct {
		Text string `json:"text"`
	} `json:"snippet"`
	Explain *struct {
		Score  float64 `json:"score"`
		Titled float64 `json:"titled"`
		Words  []struct {
			Score  float64 `json:"score"`
			Sum    float64 `json:"sum"`
			Fields []struct {
				Part float64 `json:"part"`
			} `json:"fields"`
		} `json:"words"`
		Rank struct {
			Rank  float64 `json:"rank"`
			Score float64 `json:"score"`
		} `json:"rank"`
	} `json:"explain"`
}

// place is where a URL is among the results, from 1; 0 if it is not.
func (f *found) place(url string) int {
	for i := range f.Results {
		if f.Results[i].URL == url {
			return i + 1
		}
	}
	return 0
}

func (f *found) urls() []string {
	out := make([]string, len(f.Results))
	for i := range f.Results {
		out[i] = f.Results[i].URL
	}
	return out
}

// index makes the crawl searchable.
func (c *crawler) index(ctx context.Context) (*indexing, error) {
	var x indexing
	err := c.run(ctx, []string{"index", "--json", "--quiet", "--data", c.data}, nil, func(out io.Reader) error {
		return json.NewDecoder(out).Decode(&x)
	})
	return &x, err
}

// indexing is what index says.
type indexing struct {
	Done    bool    `json:"done"`
	Seconds float64 `json:"seconds"`
	Index   struct {
		Documents int64 `json:"documents"`
		Behind    int64 `json:"behind"`
		Bytes     int64 `json:"bytes"`
	} `json:"index"`
}

// search asks from the command line. What is wrong with the query is the answer's Error.
func (c *crawler) search(ctx context.Context, flags []string, query string) (*found, error) {
	args := append([]string{"search", "--json", "--data", c.data}, flags...)
	if query != "" {
		args = append(args, "--", query)
	}
	var f found
	err := c.run(ctx, args, nil, func(out io.Reader) error {
		if err := json.NewDecoder(out).Decode(&f); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	})
	const wrongUse = 2 // the program's exit status
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == wrongUse {
		f.Error, err = err.Error(), nil
	}
	return &f, err
}

// A searcher is the program's page, served. It must be stopped.
type searcher struct {
	home string // URL
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan struct{}
}

// serve starts the page and returns when it is there.
func (c *crawler) serve(ctx context.Context) (*searcher, error) {
	s := &searcher{cmd: exec.CommandContext(ctx, c.binary, "search", "--data", c.data, "--serve", "127.0.0.1:0"), done: make(chan struct{})}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = stopTime
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	line, _ := lines.ReadString('\n') // what is wrong with it shows below
	go func() {
		defer close(s.done)
		_, _ = io.Copy(&s.said, lines) // it ended, or will be stopped
	}()
	for _, w := range strings.Fields(line) {
		if strings.HasPrefix(w, "http://") {
			s.home = w
			return s, nil
		}
	}
	return nil, fmt.Errorf("search --serve said %q; %w", line, s.stop())
}

// stop stops the page, and says what was wrong meanwhile.
func (s *searcher) stop() error {
	err := s.cmd.Process.Signal(os.Interrupt)
	<-s.done
	if err = errors.Join(err, s.cmd.Wait()); err != nil || s.said.Len() > 0 {
		return fmt.Errorf("search --serve: %v, %s", err, s.said.Bytes())
	}
	return nil
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 20

// get asks for something of the page.
func (s *searcher) get(ctx context.Context, ref string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.home+ref, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, err
}

// A question is asked of the page.
type question struct {
	query         string
	offset, limit int
	all, explain  bool
	lang          string
}

func (q question) encode() string {
	v := url.Values{"q": {q.query}}
	for name, n := range map[string]int{"offset": q.offset, "limit": q.limit} {
		if n > 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	for name, on := range map[string]bool{"all": q.all, "explain": q.explain} {
		if on {
			v.Set(name, "1")
		}
	}
	if q.lang != "" {
		v.Set("lang", q.lang)
	}
	return "?" + v.Encode()
}

// ask returns the answer as JSON has it. That the query is refused is no error.
func (s *searcher) ask(ctx context.Context, q question) (*found, error) {
	status, body, err := s.get(ctx, "search.json"+q.encode())
	if err != nil {
		return nil, err
	}
	var f found
	if err := json.Unmarshal(body, &f); err != nil || (status != http.StatusOK) != (f.Error != "") {
		return nil, fmt.Errorf("search.json for %.80q: status %d, %.200q (%w)", q.query, status, body, err)
	}
	return &f, nil
}

// A shown page is what a reader sees.
type shown struct {
	status   int
	query    string   // in the field for it
	results  []string // targets of the titles' links
	titles   []string
	next     string // reference of the next page; "" if there is none
	alert    string // what is said to be wrong
	noScript bool   // there is none
}

// show returns the answer as the page has it.
func (s *searcher) show(ctx context.Context, ref string) (*shown, error) {
	status, body, err := s.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	p := &shown{status: status, noScript: true}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch {
		case n.Data == "script":
			p.noScript = false
		case n.Data == "input" && attribute(n, "name") == "q":
			p.query = attribute(n, "value")
		case n.Data == "a" && n.Parent.Data == "h2":
			p.results = append(p.results, attribute(n, "href"))
			p.titles = append(p.titles, textOf(n))
		case n.Data == "a" && attribute(n, "rel") == "next":
			p.next = attribute(n, "href")
		case attribute(n, "role") == "alert":
			p.alert = textOf(n)
		}
	}
	return p, nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
