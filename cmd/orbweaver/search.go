package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/search"
	"github.com/orbweaver/orbweaver/internal/view"
)

type searchFlags struct {
	reading
	request search.Request
	serve   string
}

func newSearch() *cobra.Command {
	var f searchFlags
	cmd := f.newCommand("search", nil, func(cmd *cobra.Command, args []string) error {
		f.request.Query = strings.Join(args, " ")
		asked := len(args)+len(f.request.Sites)+len(f.request.Langs) > 0
		switch most := search.MaxResults; {
		case f.serve != "" && (len(args) > 0 || f.json):
			return usagef("--serve takes queries from a browser; give no words, and no --json, with it")
		case f.serve == "" && !asked:
			return usagef("no search terms given\nSee '%s --help'", cmd.CommandPath())
		case f.request.Limit < 1 || f.request.Offset < 0 || f.request.Offset+f.request.Limit > most:
			return usagef("--limit must be 1 or more, --offset 0 or more, and both together %d at most", most)
		}
		return f.read(cmd.Context(), func(v *view.View) error { return f.explainSearch(f.run(cmd, v)) })
	})
	f.registerCrawl(cmd)
	fs := cmd.Flags()
	fs.StringSliceVar(&f.request.Sites, "site", nil, "only this host (any port unless given) and its subdomains; several: any of them")
	fs.StringSliceVar(&f.request.Langs, "lang", nil, "only documents in this language, such as en; several: any of them")
	fs.IntVar(&f.request.Limit, "limit", search.DefaultLimit, "number of results")
	fs.IntVar(&f.request.Offset, "offset", 0, "number of results to leave out before them")
	fs.BoolVar(&f.request.All, "all", false, "show near-duplicates, and all results of a site")
	fs.BoolVar(&f.request.Explain, "explain", false, "show how each score is computed")
	fs.StringVar(&f.serve, "serve", "", "serve the search page at this address, such as 127.0.0.1:8090")
	return cmd
}

// explainSearch adds advice to an error of searching.
func (t *target) explainSearch(err error) error {
	switch {
	case errors.Is(err, search.ErrQuery):
		return usagef("%w\nSee 'orbweaver help search-syntax'", err)
	case errors.Is(err, blobschema.ErrTerms):
		return usagef("the index in %s was made by another version of orbweaver; '%s' rebuilds it", t, t.command("index"))
	case errors.Is(err, search.ErrNoIndex) && t.crawl != "":
		return usagef("nothing of crawl %s in %s is indexed, and only the active crawl can be", t.crawl, t)
	case errors.Is(err, search.ErrNoIndex):
		return usagef("nothing of the crawl in %s is indexed yet; '%s' does it", t, t.command("index"))
	}
	return err
}

func (f *searchFlags) run(cmd *cobra.Command, v *view.View) error {
	ctx := cmd.Context()
	ix, err := search.Open(ctx, v.Store(), v.ID(), search.Options{})
	if err != nil {
		return err
	}
	if f.serve != "" {
		return serveSearch(ctx, cmd.ErrOrStderr(), f.serve, ix)
	}
	a, err := ix.Search(ctx, f.request)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	return f.report(out, "search", answer{a, newScreen(out) != nil && os.Getenv("NO_COLOR") == ""})
}

// answer is an answer for people, in colour or not.
type answer struct {
	*search.Answer
	colour bool
}

// Paint colours text, if there are colours.
func (a answer) Paint(code, text string) any {
	if text = printable(text); !a.colour || text == "" {
		return text
	}
	return safe("\x1b[" + code + "m" + text + "\x1b[0m")
}

// Mark colours the words of the query in a text, and the rest with a code, if there is one.
func (a answer) Mark(code string, m search.Marked) any {
	var b strings.Builder
	for _, p := range m.Pieces() {
		paint := code
		if p.Mark {
			paint = "1;33"
		}
		if paint == "" {
			b.WriteString(printable(p.Text))
		} else {
			fmt.Fprint(&b, a.Paint(paint, p.Text))
		}
	}
	return safe(b.String())
}

// About is the line below a result.
func (a answer) About(r search.Result) string {
	line := r.Date().UTC().Format("2006-01-02")
	if r.Lang != "" {
		line += ", " + r.Lang
	}
	if r.Similar > 0 {
		line += fmt.Sprintf(", and %d similar", r.Similar)
	}
	return line
}

// Summary says how many results there are.
func (a answer) Summary() string { return search.Summary(a.Answer) }

// Indent is an explanation of several lines.
func (a answer) Indent(s fmt.Stringer) any {
	return safe(strings.ReplaceAll(s.String(), "\n", "\n       "))
}

// serveSearch serves the page until a signal or the end of ctx.
func serveSearch(ctx context.Context, errOut io.Writer, addr string, ix *search.Index) error {
	ctx, release := following(ctx)
	defer release()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return usagef("cannot serve at %s: %w", addr, err)
	}
	page := &search.Handler{
		Open: func(ctx context.Context) (*search.Index, error) { return ix, ix.Fresh(ctx, refreshAfter) },
		Done: func(_ *http.Request, _ *search.Answer, err error) {
			if err != nil && !errors.Is(err, search.ErrQuery) {
				fmt.Fprintln(errOut, "orbweaver: "+err.Error())
			}
		},
	}
	mux := http.NewServeMux() // there is nothing else, also below other folders
	mux.Handle("/{$}", page)
	mux.Handle("/search.json", page)
	fmt.Fprintf(errOut, "Search %s at http://%s/ until Ctrl-C.\n", plural(ix.Documents(), "document"), l.Addr())
	return serve(ctx, l, mux)
}

// serve answers browsers until ctx ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := srv.Shutdown(end)
	if serr := <-done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// refreshAfter is the greatest age of the index of a served answer while a crawl runs.
const refreshAfter = 10 * time.Second
