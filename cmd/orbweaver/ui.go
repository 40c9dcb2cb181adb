package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/metrics"
	"github.com/orbweaver/orbweaver/internal/ui"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

type uiFlags struct {
	reading
	listen  string
	control bool
	metrics string // address
	inbound string // address
}

// Greatest age of the figures on a page: a deployment is billed for each read.
const (
	folderEvery     = 3 * time.Second
	deploymentEvery = 30 * time.Second
)

func newUI() *cobra.Command {
	var f uiFlags
	cmd := command("ui", noArguments, func(cmd *cobra.Command, _ []string) error {
		return f.read(cmd.Context(), func(v *view.View) error { return f.run(cmd, v) })
	})
	f.target.register(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8099", "address to serve at; one that other machines reach lets everyone there read the crawl")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", metricsUsage)
	cmd.Flags().StringVar(&f.inbound, "inbound", "", inboundUsage+"; with --platform only: in a folder, give it to 'crawl'")
	cmd.Flags().BoolVar(&f.control, "control", false, "let the page pause, resume and stop the crawl, and request URLs; only at an address of this machine")
	return cmd
}

func (f *uiFlags) run(cmd *cobra.Command, v *view.View) error {
	ctx, release := following(cmd.Context())
	defer release()
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return usagef("cannot serve at %s: %w", f.listen, err)
	}
	defer l.Close()
	local := l.Addr().(*net.TCPAddr).IP.IsLoopback()
	if f.control && !local {
		return usagef("--control needs an address of this machine only, such as 127.0.0.1:8099: there is no password.\nFor another machine, use a tunnel, as in 'ssh -L 8099:127.0.0.1:8099 HOST'")
	}
	name, _, _ := net.SplitHostPort(f.listen)
	errOut := cmd.ErrOrStderr()
	if !local {
		warn(errOut, "everyone who reaches %s can read the crawl", l.Addr())
	}
	w := f.where(v.ID())
	o := ui.Options{
		Name: f.target.String(), Every: folderEvery, Host: name, Priced: w.Priced(),
		Log: func(err error) { warn(errOut, "%s", f.target.explain(err)) },
	}
	if w.Deployed() {
		o.Every = deploymentEvery
	}
	if f.control {
		o.Order, o.Recrawl = f.order, f.recrawl
	}
	s := ui.New(v, o)
	defer s.Close()
	end, err := f.export(ctx, s, newLog(errOut))
	if err != nil {
		return err
	}
	defer end()
	page := func() error {
		fmt.Fprintf(errOut, "Look at %s at http://%s/ until Ctrl-C.\n", &f.target, l.Addr())
		return serve(ctx, l, s)
	}
	switch {
	case f.inbound == "":
		return page()
	case !w.Deployed():
		return usagef("--inbound needs --platform here: requests for a folder go to the process that crawls in it.\nGive --inbound to '%s'", f.command("crawl"))
	}
	return f.change(ctx, func(o *opened) error {
		stop, err := serveInbound(ctx, f.inbound, o.platform, o.Control, newLog(errOut))
		if err != nil {
			return err
		}
		defer stop()
		return page()
	})
}

// export serves and sends the figures that the pages show as metrics.
func (f *uiFlags) export(ctx context.Context, s *ui.Server, log *slog.Logger) (end func(), err error) {
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return nil, err
	}
	exporter, end, err := startMetrics(ctx, f.metrics, log)
	if exporter != nil {
		exporter.Read(func() metrics.Figures {
			st, err := s.Status(ctx)
			if err != nil {
				log.Warn("read the crawl for metrics", "error", err)
				return metrics.Figures{}
			}
			return figuresOfStatus(&st, prices)
		})
	}
	return end, err
}

// order passes an order to the process or the deployment that crawls.
func (f *uiFlags) order(ctx context.Context, o crawl.Order) (changed bool, err error) {
	err = f.change(ctx, func(opened *opened) (err error) {
		changed, err = opened.Order(ctx, o)
		return err
	})
	return changed, err
}

// recrawl requests a URL.
func (f *uiFlags) recrawl(ctx context.Context, u weburl.URL) error {
	return f.change(ctx, func(o *opened) error {
		return control.Recrawl(ctx, o, o.view.ID(), "ui-"+strings.ToLower(rand.Text()), []weburl.URL{u})
	})
}

func newReport() *cobra.Command {
	var f reading
	var out string
	var limit int
	cmd := command("report", noArguments, func(cmd *cobra.Command, _ []string) error {
		if limit < 1 {
			return usagef("--limit must be 1 or more")
		}
		return f.read(cmd.Context(), func(v *view.View) error {
			r, err := v.LinkReport(cmd.Context(), "", limit)
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := ui.WriteReport(&b, f.target.String(), r); err != nil {
				return err
			}
			if out == "-" {
				_, err := cmd.OutOrStdout().Write(b.Bytes())
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s, %s, %s of %s\n", out, plural(r.Broken.All, "broken link"), plural(r.Redirects.All, "redirect"),
				plural(r.Duplicates.All, "duplicate"), plural(r.Pages, "URL"))
			return os.WriteFile(out, b.Bytes(), 0o644)
		})
	})
	f.target.register(cmd)
	cmd.Flags().StringVar(&out, "out", "links.html", "file to write; - for standard output")
	cmd.Flags().IntVar(&limit, "limit", 1000, "most entries of each list")
	return cmd
}
