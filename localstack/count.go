package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/lambdalocal"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/wiretap"
)

type calls = blobschema.Calls

// watch counts the same calls in two ways: from the functions' logs, and on the wire.
type watch struct {
	w      *world
	wire   wiretap.Counts
	logged map[string]int64 // length of each log when the watch began
	killed int64            // index steps that did not end by themselves
	polls  int64
	begin  time.Time
}

// watch begins to count while no invocation runs: a running one would log calls that it made before.
func (w *world) watch(ctx context.Context) (*watch, error) {
	all := slices.Collect(maps.Keys(w.functions))
	for begin := time.Now(); ; {
		before, _ := w.invocations(all)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond): // for the last lines of the logs
		}
		k, err := w.watchNow()
		if err != nil {
			return nil, err
		}
		switch after, busy := w.invocations(all); {
		case after == before && !busy:
			return k, nil
		case time.Since(begin) > time.Minute:
			return nil, errors.New("some function is always at work: no moment to begin counting")
		}
	}
}

func (w *world) watchNow() (*watch, error) {
	k := &watch{w: w, logged: map[string]int64{}, begin: time.Now()}
	k.wire = w.tap.Counts().Plus(w.tableTap.Counts())
	for name := range w.functions {
		_, at, err := w.lines(name, 0)
		if err != nil {
			return nil, err
		}
		k.logged[name] = at
	}
	for _, p := range w.pollers {
		k.polls += p.Counts().Requests
	}
	k.killed = w.killed("index")
	return k, nil
}

// killed returns the number of steps of a function that did not end by themselves.
func (w *world) killed(function string) int64 {
	t := w.functions[function].Totals()
	return t.Invocations - t.Outcomes[lambdalocal.Succeeded] - t.Outcomes[lambdalocal.Failed]
}

// told holds the figures of the functions' logs.
type told struct {
	all   calls
	by    map[string]calls // function
	pages int64

	read, repeated int64 // pages, by index steps
}

// of returns the sum of the calls of some functions.
func (t *told) of(names ...string) (sum calls) {
	for _, name := range names {
		c := t.by[name]
		sum.Add(c)
	}
	return sum
}

// told returns the figures of the functions' logs since the watch began.
func (k *watch) told() (t told, err error) {
	t.by = map[string]calls{}
	for name, at := range k.logged {
		lines, _, err := k.w.lines(name, at)
		if err != nil {
			return t, err
		}
		sum := calls{}
		for _, l := range lines {
			sum.Add(l.Calls)
			if l.Msg == "step" { // ticks log the pages of all steps
				t.pages += l.Pages
			}
			t.read, t.repeated = t.read+l.Read, t.repeated+l.Repeated
		}
		t.by[name] = sum
		t.all.Add(sum)
	}
	return t, nil
}

// seen returns the calls on the wire since the watch began, in the same units.
func (k *watch) seen() calls {
	c := k.w.tap.Counts().Plus(k.w.tableTap.Counts()).Since(k.wire)
	return calls{
		QueueRequests: int64(c.Sum("sqs").Units),
		KVReadUnits:   int64(c.Sum("dynamodb", "BatchGetItem").Units),
		KVWriteUnits:  int64(c.Sum("dynamodb", "PutItem").Units),
		BlobPuts:      c.Sum("s3", "PutObject").Requests,
		BlobGets:      c.Sum("s3").Requests - c.Sum("s3", "PutObject", "DeleteObject").Requests, // deleting is free
	}
}

// both returns the two counts. They may differ because a tick has made calls and not yet logged them; then both
// reads them again, at most ten times.
func (k *watch) both() (t told, seen calls, err error) {
	for try := 0; ; try++ {
		if t, err = k.told(); err != nil {
			return t, seen, err
		}
		if seen = k.seen(); equal(t.all, seen) == nil || try == 10 {
			return t, seen, nil
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// equal returns an error that says where the two counts differ.
func equal(told, seen calls) error {
	var errs []error
	for _, c := range []struct {
		what       string
		told, seen int64
	}{
		{"queue requests", told.QueueRequests, seen.QueueRequests},
		{"KV read units", told.KVReadUnits, seen.KVReadUnits},
		{"KV write units", told.KVWriteUnits, seen.KVWriteUnits},
		{"blob puts", told.BlobPuts, seen.BlobPuts},
		{"blob gets", told.BlobGets, seen.BlobGets},
	} {
		if c.told != c.seen {
			errs = append(errs, fmt.Errorf("%s: the ledger has %d, on the wire were %d", c.what, c.told, c.seen))
		}
	}
	return errors.Join(errs...)
}

// working lists the functions that do the work that ticks find.
var working = []string{"fetch", "index", "rank"}

// invocations returns the number of invocations of some functions so far, and whether one is running.
func (w *world) invocations(names []string) (n int64, busy bool) {
	for _, name := range names {
		n += w.functions[name].Totals().Invocations
		for _, i := range w.functions[name].Instances() {
			busy = busy || i.RequestID != ""
		}
	}
	return n, busy
}

// quiet waits until no function runs and the ticks find nothing to do.
func (w *world) quiet(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		before, _ := w.invocations(working)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2*tickEvery + time.Second):
		}
		if after, busy := w.invocations(working); !busy && after == before {
			return nil
		}
	}
	return errors.New("steps go on and on")
}

// large returns the web whose crawl is counted and priced: 32,000 pages of about 30 KB, or
// fewer and smaller ones with -fast.
func (w *world) large() simweb.Config {
	cfg := simweb.Config{Seed: 1, Hosts: 64, Pages: simweb.Pages{Min: 500}, PageBytes: 30 << 10, LinksPerPage: 45}
	if w.fast {
		cfg.Pages.Min, cfg.PageBytes = 60, 4<<10
	}
	return cfg
}

// counted crawls a large web, and compares the functions' ledgers with the calls on the wire.
func counted(ctx context.Context, w *world) (map[string]any, error) {
	if err := w.quiet(ctx); err != nil {
		return nil, err
	}
	srv, err := w.serve(ctx, w.large())
	if err != nil {
		return nil, err
	}
	web := srv.Web()
	k, err := w.watch(ctx)
	if err != nil {
		return nil, err
	}
	out, err := w.crawl(ctx, web.Seeds(), "--new", "--json", "--index", "--delay", "0s")
	if err != nil {
		return nil, err
	}
	took := time.Since(k.begin)
	n, err := w.compare(ctx, web)
	if err != nil {
		return nil, err
	}
	v, err := w.openView(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := w.followed(ctx, v); err != nil {
		return nil, err
	}
	if err := w.quiet(ctx); err != nil {
		return nil, err
	}
	figures, err := k.price(int64(n), took)
	if err != nil {
		return figures, err
	}
	if figures["reported"], err = reported(out); err != nil {
		return figures, err
	}
	if err := k.indexedOnce(figures); err != nil {
		return figures, err
	}
	if got := figures["dollars_per_million"].(map[string]float64)["queue+kv+blob"]; !w.fast && got > target {
		return figures, fmt.Errorf("the calls cost $%.4f per million pages, more than $%.2f", got, target)
	}
	return figures, nil
}

// maxRepeated bounds the pages that are indexed twice, in percent: two steps may begin at the same moment.
const maxRepeated = 1

// indexedOnce checks that index steps stored their work before their time was up, and that no other step did it again.
func (k *watch) indexedOnce(figures map[string]any) error {
	told, err := k.told()
	if err != nil {
		return err
	}
	killed := k.w.killed("index") - k.killed
	figures["index_read"], figures["index_repeated"], figures["index_killed"] = told.read, told.repeated, killed
	if killed > 0 || told.read == 0 || told.repeated*100 > told.read*maxRepeated {
		return fmt.Errorf("%d index steps were killed before they had stored their work, and of %d pages that were indexed %d were indexed again", killed, told.read, told.repeated)
	}
	return nil
}

// target bounds the cost of the calls to queue, table and bucket, in dollars per million pages.
const target = 0.03

// price compares both counts, and computes the cost of a million pages.
func (k *watch) price(pages int64, took time.Duration) (map[string]any, error) {
	told, seen, err := k.both()
	if err != nil {
		return nil, err
	}
	polls := -k.polls
	for _, p := range k.w.pollers {
		polls += p.Counts().Requests
	}
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return nil, err
	}
	bill := prices.PerMillion(told.of("fetch", "coordinate", "intake"), pages, 0)
	dollars := map[string]float64{
		"queue": bill.Queue, "kv": bill.KV, "blob": bill.Blob, "queue+kv+blob": bill.Queue + bill.KV + bill.Blob,
		"functions": bill.Functions, "pollers": float64(polls) * prices.QueueRequest / float64(pages),
	}
	for _, name := range []string{"index", "rank"} {
		b := prices.PerMillion(told.of(name), pages, 0)
		dollars[name], dollars[name+"_functions"] = b.Queue+b.KV+b.Blob, b.Functions
	}
	figures := map[string]any{
		"pages": pages, "pages_per_second": float64(pages) / took.Seconds(), "pages_in_logs": told.pages,
		"ledger": told.all, "wire": seen, "pollers_requests": polls, "dollars_per_million": dollars,
	}
	return figures, equal(told.all, seen)
}

// reported returns the cost that the command printed at the end of the crawl.
func reported(out string) (map[string]any, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Summary struct {
			Calls calls           `json:"run_calls"`
			Cost  json.RawMessage `json:"cost_per_million_pages"`
		} `json:"summary"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		return nil, fmt.Errorf("the summary of the crawl: %w", err)
	}
	return map[string]any{"calls": last.Summary.Calls, "cost": last.Summary.Cost}, nil
}

// idle counts the calls of a deployment with nothing to do.
func idle(ctx context.Context, w *world) (map[string]any, error) {
	if err := w.quiet(ctx); err != nil {
		return nil, err
	}
	k, err := w.watch(ctx)
	if err != nil {
		return nil, err
	}
	before := w.functions["coordinate"].Totals()
	after, ticks := before, int64(0)
	if err := until(ctx, "ten ticks", func() bool {
		after = w.functions["coordinate"].Totals()
		ticks = after.Invocations - before.Invocations
		return ticks >= 10
	}); err != nil {
		return nil, err
	}
	told, seen, err := k.both()
	if err != nil {
		return nil, err
	}
	per := func(n int64) float64 { return float64(n) / float64(ticks) }
	figures := map[string]any{
		"ticks": ticks, "kv_reads_per_tick": per(told.all.KVReadUnits), "kv_writes_per_tick": per(told.all.KVWriteUnits),
		"queue_per_tick": per(told.all.QueueRequests), "blob_per_tick": per(told.all.BlobPuts + told.all.BlobGets),
		"billed_ms_per_tick": float64((after.Billed - before.Billed).Milliseconds()) / float64(ticks),
	}
	if told.all.KVWriteUnits+told.all.QueueRequests+told.all.BlobPuts+told.all.BlobGets > 0 {
		return figures, errors.New("ticks of an idle crawl should only read records")
	}
	return figures, equal(told.all, seen)
}

// few crawls five hosts with ten seconds between two requests: the worst case for functions, which are billed
// while they wait.
func few(ctx context.Context, w *world) (map[string]any, error) {
	srv, err := w.serve(ctx, simweb.Config{Seed: 5, Hosts: 5, Pages: simweb.Pages{Min: 8}, CrossHost: 0.3})
	if err != nil {
		return nil, err
	}
	web := srv.Web()
	k, err := w.watch(ctx)
	if err != nil {
		return nil, err
	}
	steps := w.functions["fetch"].Totals()
	if _, err := w.crawl(ctx, web.Seeds(), "--new", "--json", "--delay", "10s", "--partitions", "1"); err != nil {
		return nil, err
	}
	took := time.Since(k.begin)
	n, err := w.compare(ctx, web)
	if err != nil {
		return nil, err
	}
	figures, err := k.price(int64(n), took)
	if figures != nil {
		after := w.functions["fetch"].Totals()
		figures["steps"] = after.Invocations - steps.Invocations
		figures["billed_s"] = (after.Billed - steps.Billed).Seconds()
	}
	return figures, err
}

// heavy crawls pages of many megabytes from many hosts at a time.
func heavy(ctx context.Context, w *world) (map[string]any, error) {
	srv, err := w.serve(ctx, simweb.Config{Seed: 6, Hosts: 24, Pages: simweb.Pages{Min: 4}, PageBytes: 10 << 20, LinksPerPage: 10})
	if err != nil {
		return nil, err
	}
	f := w.functions["fetch"]
	before := f.Totals()
	_, err = w.crawl(ctx, srv.Web().Seeds(), "--new", "--json", "--delay", "0s")
	after := f.Totals()
	figures := map[string]any{
		"max_memory_mb": after.MaxMemoryMB, "of_mb": f.Config().MemoryMB,
		"out_of_memory": after.Outcomes[lambdalocal.OutOfMemory] - before.Outcomes[lambdalocal.OutOfMemory],
	}
	if err != nil {
		return figures, err
	}
	n, err := w.compare(ctx, srv.Web())
	figures["pages"] = n
	if after.Outcomes[lambdalocal.OutOfMemory] > 0 {
		err = errors.Join(err, errors.New("a function took more memory than it has"))
	}
	return figures, err
}
