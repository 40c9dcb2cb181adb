package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// newExplain takes an argument with a slash for a URL, and any other for a host.
func newExplain() *cobra.Command {
	var f reading
	return f.newReport("explain", one("URL or host"), func(ctx context.Context, v *view.View, args []string) (string, any, error) {
		if strings.Contains(args[0], "/") {
			u, err := parseURL(args[0])
			if err != nil {
				return "", nil, err
			}
			r, err := v.ExplainURL(ctx, u)
			return "explain", urlReport{r}, err
		}
		h, err := weburl.ParseHost(args[0])
		if err != nil {
			return "", nil, usagef("%.200q is neither a URL nor a host: %w", args[0], err)
		}
		r, err := v.ExplainHost(ctx, h)
		return "explain-host", hostReport{r}, err
	})
}

// urlReport is a report on a URL, for people.
type urlReport struct{ *view.URLReport }

// maxEarlier is how many earlier records of a URL people are shown.
const maxEarlier = 10

// Latest are the latest of the earlier records, and how many more there are.
func (r urlReport) Latest() []blobschema.Page {
	return r.Earlier[:min(len(r.Earlier), maxEarlier)]
}
func (r urlReport) More() int { return max(0, len(r.Earlier)-maxEarlier) }

// hostReport is a report on a host, for people.
type hostReport struct{ *view.HostReport }

// LeftAlone reports whether the host is left alone after failures.
func (r hostReport) LeftAlone() bool { return time.Until(r.Backoff) > 0 }
