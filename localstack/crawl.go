package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/internal/wiretap"
)

// serve serves a generated web until the scenario ends.
func (w *world) serve(ctx context.Context, cfg simweb.Config) (*simweb.Server, error) {
	srv, err := simweb.Start(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, err
	}
	w.opened = append(w.opened, srv.Close)
	return srv, nil
}

// openView opens a view of the deployment, as the command line does. It stays open until the scenario ends.
func (w *world) openView(ctx context.Context) (*view.View, error) {
	p, err := drivers.Open(ctx, w.deployed.platform, nil)
	if err != nil {
		return nil, err
	}
	w.opened = append(w.opened, func() { _ = p.Close() }) // it was only read
	return view.New(ctx, engine.Store{Platform: p})
}

// compare compares the stored pages with the truth of the web.
func (w *world) compare(ctx context.Context, web *simweb.Web) (pages int, err error) {
	v, err := w.openView(ctx)
	if err != nil {
		return 0, err
	}
	got := map[string]simweb.Got{}
	for pg, err := range v.Pages(ctx, view.EveryRecord) {
		if err != nil {
			return 0, err
		}
		if pg.Robots || pg.Generation > 0 {
			continue
		}
		if _, twice := got[pg.URL]; twice {
			return 0, fmt.Errorf("%s is visible twice", pg.URL)
		}
		got[pg.URL] = simweb.GotOf(pg)
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{Attempts: 3}), got); d != "" {
		return len(got), errors.New(d)
	}
	return len(got), nil
}

// disturbances returns a rule with the faults of services that a crawl has to survive:
// throttling, errors, lost replies, and half of a batch. It counts them in done.
func disturbances(done *atomic.Int64) wiretap.Rule {
	return func(op wiretap.Op) (f wiretap.Fault) {
		p := rand.Float64()
		switch {
		case p < 0.02:
			f = wiretap.Throttle
		case p < 0.03:
			f = wiretap.Fail
		case p < 0.04:
			f = wiretap.Lose
		case p < 0.07 && (op.Action == "BatchGetItem" || strings.HasSuffix(op.Action, "Batch")):
			f = wiretap.Partial
		default:
			return wiretap.None
		}
		done.Add(1)
		return f
	}
}

// disturbed crawls a web with every kind of host and page, while functions are killed in
// the middle of their work and services refuse calls. Nothing may be lost or repeated.
func disturbed(ctx context.Context, w *world) (map[string]any, error) {
	srv, err := w.serve(ctx, simweb.Demo())
	if err != nil {
		return nil, err
	}
	web := srv.Web()
	var faults atomic.Int64
	w.tap.SetRule(disturbances(&faults))
	w.tableTap.SetRule(disturbances(&faults))
	quiet, stop := context.WithCancel(ctx)
	defer stop()
	kills := make(chan int, 1)
	most := 12
	if w.fast {
		most = 4
	}
	go func() { kills <- w.kill(quiet, most, 300*time.Millisecond, "fetch") }()
	begin := time.Now()
	_, err = w.crawl(ctx, web.Seeds(), "--json", "--delay", "0s", "--timeout", "8s")
	took := time.Since(begin)
	stop()
	killed := <-kills
	w.tap.SetRule(nil)
	w.tableTap.SetRule(nil)
	if err != nil {
		return nil, err
	}
	n, err := w.compare(ctx, web)
	if err != nil {
		return nil, err
	}
	if killed == 0 || faults.Load() == 0 {
		return nil, fmt.Errorf("%d functions killed and %d calls disturbed show nothing", killed, faults.Load())
	}
	return map[string]any{"records": n, "seconds": took.Seconds(), "killed": killed, "disturbed_calls": faults.Load()}, nil
}

// kill kills instances of some functions in the middle of their work, until ctx ends or most kills were made.
// Between two kills it waits one to three times every.
func (w *world) kill(ctx context.Context, most int, every time.Duration, names ...string) (killed int) {
	for killed < most {
		select {
		case <-ctx.Done():
			return killed
		case <-time.After(every + rand.N(2*every)):
		}
		var busy []func() bool
		for _, name := range names {
			f := w.functions[name]
			for _, i := range f.Instances() {
				if i.RequestID != "" && time.Since(i.Since) > every/6 {
					busy = append(busy, func() bool { return f.Kill(i.ID) })
				}
			}
		}
		if len(busy) > 0 && busy[rand.IntN(len(busy))]() {
			killed++
		}
	}
	return killed
}

// answered waits until a URL has this many records, and returns how long that took.
func (w *world) answered(ctx context.Context, raw string, records int) (time.Duration, error) {
	v, err := w.openView(ctx)
	if err != nil {
		return 0, err
	}
	u, err := weburl.Parse(raw)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for time.Since(begin) < time.Minute {
		list, err := v.History(ctx, u)
		if err != nil {
			return 0, err
		}
		if len(list) >= records {
			return time.Since(begin), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s is not answered after a minute", raw)
}

// seed returns a stored page of depth 0 of the active crawl, which is a seed.
func (w *world) seed(ctx context.Context) (string, error) {
	v, err := w.openView(ctx)
	if err != nil {
		return "", err
	}
	for pg, err := range v.Pages(ctx, view.EveryRecord) {
		if err != nil {
			return "", err
		}
		if pg.Outcome == blobschema.OutcomeOK && !pg.Robots && pg.Depth == 0 {
			return pg.URL, nil
		}
	}
	return "", errors.New("there is no page")
}

// send puts a message on a queue of the deployment.
func (w *world) send(ctx context.Context, queue, body string) error {
	_, err := w.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(w.queueURL(queue)), MessageBody: &body})
	return err
}

// recrawl sends a request as somebody could write it by hand, twice. The page must be fetched once.
func recrawl(ctx context.Context, w *world) (map[string]any, error) {
	url, err := w.seed(ctx)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"recrawl": [%q], "id": "by-hand-1"}`, url)
	times := map[string]any{}
	for i := range 2 {
		if err := w.send(ctx, "intake", body); err != nil {
			return nil, err
		}
		if i == 0 {
			took, err := w.answered(ctx, url, 2)
			if err != nil {
				return nil, err
			}
			times["message_to_stored_page_s"] = took.Seconds()
		}
	}
	time.Sleep(2 * tickEvery)
	v, err := w.openView(ctx)
	if err != nil {
		return nil, err
	}
	u, err := weburl.Parse(url)
	if err != nil {
		return nil, err
	}
	if list, err := v.History(ctx, u); err != nil || len(list) != 2 {
		return nil, fmt.Errorf("a message that came twice made %d records, %w", len(list), err)
	}
	// The command waits for the answer.
	begin := time.Now()
	if _, err := w.orbweaver(ctx, "recrawl", "--json", url); err != nil {
		return nil, err
	}
	times["by_command_s"] = time.Since(begin).Seconds()
	return times, nil
}

// upload puts a list of URLs into the bucket, and waits until its page is fetched.
func upload(ctx context.Context, w *world) (map[string]any, error) {
	url, err := w.seed(ctx)
	if err != nil {
		return nil, err
	}
	list := "# what has changed\n" + url + "\n"
	if _, err := w.bucket.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &w.deployed.bucket, Key: aws.String("lists/recrawl/today.txt"), Body: strings.NewReader(list),
	}); err != nil {
		return nil, err
	}
	took, err := w.answered(ctx, url, 4)
	return map[string]any{"upload_to_stored_page_s": took.Seconds()}, err
}

// busy requests a page in the middle of a long crawl, which must be fetched before other pages. Then
// it stops the crawl and resumes it.
func busy(ctx context.Context, w *world) (map[string]any, error) {
	srv, err := w.serve(ctx, simweb.Config{Seed: 9, Hosts: 16, Pages: simweb.Pages{Min: 100}, CrossHost: 0.3})
	if err != nil {
		return nil, err
	}
	more := func(n int) error {
		limit := count(srv) + n
		return until(ctx, fmt.Sprintf("%d more requests", n), func() bool { return count(srv) >= limit })
	}
	seed := srv.Web().Seeds()[0]
	if _, err := w.crawl(ctx, []string{seed}, "--new", "--detach", "--delay", "300ms"); err != nil {
		return nil, err
	}
	if err := more(100); err != nil {
		return nil, err
	}
	figures := map[string]any{}
	if err := w.send(ctx, "intake", fmt.Sprintf(`{"recrawl": [%q]}`, seed)); err != nil {
		return nil, err
	}
	took, err := w.answered(ctx, seed, 2)
	if err != nil {
		return nil, err
	}
	figures["message_to_stored_page_s"] = took.Seconds()
	v, err := w.openView(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if _, err := w.orbweaver(ctx, "stop"); err != nil {
		return nil, err
	}
	if err := idleSteps(ctx, v); err != nil {
		return nil, err
	}
	figures["stopped_after_s"] = time.Since(begin).Seconds()
	before := count(srv)
	time.Sleep(2 * tickEvery)
	if n := count(srv) - before; n > 0 {
		return nil, fmt.Errorf("%d requests by a crawl that is stopped", n)
	}
	if _, err := w.orbweaver(ctx, "resume"); err != nil {
		return nil, err
	}
	if err := more(50); err != nil {
		return nil, err
	}
	if _, err := w.orbweaver(ctx, "stop"); err != nil {
		return nil, err
	}
	return figures, idleSteps(ctx, v)
}

// idleSteps waits until a crawl is stopped and none of its steps runs.
func idleSteps(ctx context.Context, v *view.View) error {
	var failed error
	waited := until(ctx, "the crawl is stopped and no step runs", func() bool {
		s, err := v.Status(ctx)
		failed = err
		return err != nil || s.State == view.Stopped && s.Leased == 0
	})
	return errors.Join(waited, failed)
}

// poison sends unreadable messages. They must become dead letters, which are counted and listed, and must do no
// harm.
func poison(ctx context.Context, w *world) (map[string]any, error) {
	begin := time.Now()
	for q, body := range map[string]string{"intake": `{"recrawl": "not a list"}`, "mailbox-00001": "not mail", "wakes": "not a wake"} {
		if err := w.send(ctx, q, body); err != nil {
			return nil, err
		}
	}
	v, err := w.openView(ctx)
	if err != nil {
		return nil, err
	}
	for {
		// Mail becomes a dead letter after two deliveries, here to two steps.
		if err := w.send(ctx, "wakes", string(blobschema.EncodeWake(v.ID(), 1))); err != nil {
			return nil, err
		}
		time.Sleep(tickEvery)
		s, err := v.Status(ctx)
		if err != nil {
			return nil, err
		}
		if s.Totals.DeadMail == 1 && s.DeadRequests == 1 {
			break
		}
		if time.Since(begin) > time.Minute {
			return nil, fmt.Errorf("%d mails and %d requests are put aside", s.Totals.DeadMail, s.DeadRequests)
		}
	}
	took := time.Since(begin)
	out, err := w.orbweaver(ctx, "dlq", "list", "--json")
	if err != nil {
		return nil, err
	}
	if !strings.Contains(out, "unfit request") || !strings.Contains(out, "damaged") {
		return nil, fmt.Errorf("the dead letters are not what was sent:\n%s", out)
	}
	return map[string]any{"put_aside_after_s": took.Seconds()}, nil
}

// check runs fsck on the deployment.
func check(ctx context.Context, w *world) (map[string]any, error) {
	out, err := w.orbweaver(ctx, "fsck")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(out, "\n")
	return map[string]any{"fsck": first}, nil
}

// plan checks what a second apply of Terraform would change.
func plan(ctx context.Context, w *world) (map[string]any, error) {
	if !w.deployed.terraform {
		w.skip("a second plan: it was not deployed by Terraform")
		return nil, nil
	}
	out, err := w.emulated(ctx, "plan-again")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return map[string]any{"plan": lines[len(lines)-1]}, err
}
