package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/inbound"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

type subscribeFlags struct {
	hub, at string
	lease   time.Duration
	end     bool
}

func newSubscribe() *cobra.Command {
	var f subscribeFlags
	cmd := command("subscribe", one("FEED"), func(cmd *cobra.Command, args []string) error {
		topic, err := parseURL(args[0])
		if err != nil {
			return err
		}
		if err := f.send(cmd.Context(), topic); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "the hub accepted the request for %s; it now verifies it at %s\n", topic, f.at)
		return err
	})
	fs := cmd.Flags()
	fs.StringVar(&f.hub, "hub", "", "URL of the hub, which the feed names with rel=\"hub\"")
	fs.StringVar(&f.at, "at", "", "public URL of the endpoint (--inbound), as the hub reaches it")
	fs.DurationVar(&f.lease, "lease", 10*24*time.Hour, "time after which the subscription ends, unless it is renewed; the hub may choose another")
	fs.BoolVar(&f.end, "end", false, "end the subscription")
	return cmd
}

// send sends a request for a subscription to the hub (WebSub section 5.1). The hub verifies it before it answers or afterwards.
func (f *subscribeFlags) send(ctx context.Context, topic weburl.URL) error {
	token := os.Getenv(inbound.TokenVariable)
	if len(token) < inbound.LeastToken {
		return usagef("$%s must have the token of the endpoint, of %d bytes or more", inbound.TokenVariable, inbound.LeastToken)
	}
	hub, err := weburl.Parse(f.hub)
	if err == nil {
		_, err = weburl.Parse(f.at)
	}
	if err != nil {
		return usagef("--hub and --at must be URLs: %w", err)
	}
	if addr, _ := netip.ParseAddr(hub.Host().Name()); hub.Scheme() != "https" && !addr.IsLoopback() {
		return usagef("--hub must be an https URL, because the request holds a secret")
	}
	callback, secret := inbound.Callback(token, f.at, topic.String())
	form := url.Values{
		"hub.callback": {callback}, "hub.topic": {topic.String()}, "hub.mode": {"subscribe"}, "hub.secret": {secret},
		"hub.lease_seconds": {strconv.Itoa(int(f.lease.Seconds()))},
	}
	if f.end {
		form.Set("hub.mode", "unsubscribe")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hub.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", defaultAgent)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("request to the hub: %w", err)
	}
	_ = resp.Body.Close() // only the status matters
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the hub answered with status %s: it did not take the request", resp.Status)
	}
	return nil
}
