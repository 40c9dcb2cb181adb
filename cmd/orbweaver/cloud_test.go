package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// cloudURL is the platform of these tests, in memory unless they use emulators; see TestCloudAWS.
const cloudURL = "aws://test?bucket=test&partitions=3"

// cloud is a platform with functions that can be turned on.
type cloud struct {
	t    *testing.T
	url  string
	open opener
	site *site
}

// memoryCloud returns a platform of gocloud's memory drivers, shared by all commands of a test like a cloud's.
func memoryCloud(t *testing.T) *cloud {
	t.Helper()
	t.Parallel()
	os.Unsetenv(platformVariable) // otherwise commands without a location would use it
	id := url.PathEscape(strings.ToLower(t.Name()))
	v := url.Values{
		"topic": {"mem://" + id + "/{queue}"}, "subscription": {"mem://" + id + "/{queue}?ackdeadline=5s"},
		"table": {"mem://" + id + "/key"}, "bucket": {"mem://"}, "partitions": {"3"},
	}
	p, err := drivers.Open(t.Context(), "gocloud://"+id+"?"+v.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	c := &cloud{t: t, url: cloudURL, site: newSite()}
	t.Cleanup(c.site.close)
	c.open = func(_ context.Context, location string, _ platform.Meter) (*platform.Platform, error) {
		if location != cloudURL {
			return nil, errors.New("there is no such table")
		}
		shared := *p
		shared.Exclusive = false
		shared.Close = func() error { return nil }
		return &shared, nil
	}
	return c
}

func (c *cloud) platform() *platform.Platform {
	c.t.Helper()
	p, err := c.open(c.t.Context(), c.url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { p.Close() })
	return p
}

// functions runs the functions until off is called.
func (c *cloud) functions() (off func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	p := c.platform()
	wg.Go(func() {
		var e *jobs.Jobs
		active := ""
		for ctx.Err() == nil {
			v, err := view.New(ctx, engine.Store{Platform: p})
			if errors.Is(err, view.ErrNoCrawl) {
				wait(ctx, 20*time.Millisecond)
				continue
			}
			if err == nil && v.ID() != active {
				active = v.ID()
				e, err = newFunction(ctx, p, v)
			}
			if err == nil {
				err = turn(ctx, p, e, active)
			}
			if err != nil && ctx.Err() == nil {
				c.t.Error(err)
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func newFunction(ctx context.Context, p *platform.Platform, v *view.View) (*jobs.Jobs, error) {
	rec, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	led := &ledger.Ledger{}
	return jobs.Open(p, service.Config{
		Ledger: led, MemoryMB: 512,
		Step: crawl.StepConfig{
			Software: "test", Retry: polite.Retry{Wait: 50 * time.Millisecond, Backoff: 20 * time.Millisecond},
			CommitEvery: 100 * time.Millisecond, CommitMin: 20 * time.Millisecond, Linger: 100 * time.Millisecond, SendsWakes: true,
		},
		Tick:  crawl.TickConfig{WakeAgain: time.Second},
		Fetch: fetch.Config{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}.For(&rec.Settings))
}

// turn does one tick and the functions' work for the messages that are there.
func turn(ctx context.Context, p *platform.Platform, e *jobs.Jobs, active string) error {
	if _, err := e.Open(); err != nil { // the crawl's limits may have changed
		return err
	}
	if _, err := e.Tick(); err != nil {
		return err
	}
	for _, name := range []string{naming.IntakeQueue, naming.WakesQueue} {
		q, err := p.Queue(name)
		if err != nil {
			return err
		}
		got, err := q.Receive(ctx, 10, 20*time.Millisecond)
		if err != nil {
			return err
		}
		var msgs []actor.Message
		var receipts []platform.Receipt
		for _, d := range got {
			msgs, receipts = append(msgs, actor.Message{ID: d.ID, Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}), append(receipts, d.Receipt)
		}
		if name == naming.IntakeQueue && len(msgs) > 0 {
			if _, err := e.Take(msgs); err != nil {
				return err
			}
		}
		if name == naming.WakesQueue {
			for _, m := range msgs {
				if id, part, err := blobschema.DecodeWake(m.Body); err == nil && id == active {
					if _, err := e.Step(part, time.Second); err != nil {
						return err
					}
				}
			}
		}
		if err := errors.Join(q.Acknowledge(ctx, receipts), q.Close(context.WithoutCancel(ctx))); err != nil {
			return err
		}
	}
	return nil
}

// result is the result of a command line.
type result struct {
	*cloud
	args        string
	status      exit
	out, errOut string
}

// run runs a command line on the platform.
func (c *cloud) run(args ...string) *result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	return c.runFor(ctx, args...)
}

func (c *cloud) runFor(ctx context.Context, args ...string) *result {
	c.t.Helper()
	var out, errOut bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	args = append(args, "--platform", c.url)
	status := execute(context.WithValue(ctx, openerKey{}, c.open), cmd, args)
	return &result{c, strings.Join(args, " "), status, out.String(), errOut.String()}
}

// ends checks the exit status, and matches each line against output and errors together.
func (r *result) ends(status exit, lines ...string) *result {
	r.t.Helper()
	all := r.out + r.errOut
	if r.status != status {
		r.t.Fatalf("%s: exit status %d, want %d\n%s", r.args, r.status, status, all)
	}
	for _, l := range lines {
		l = strings.ReplaceAll(l, "aws://test", drivers.ShortName(r.url))
		if !regexp.MustCompile("(?m)" + l).MatchString(all) {
			r.t.Errorf("%s: nothing matches %q in\n%s", r.args, l, all)
		}
	}
	return r
}

func TestCloudCrawl(t *testing.T) { testCloudCrawl(memoryCloud(t)) }

// testCloudCrawl crawls a site, and reads the crawl with all commands.
func testCloudCrawl(c *cloud) {
	url := c.site.url
	c.run("status").ends(exitUsage, `there is no crawl in aws://test yet; give a URL to create one, as in 'orbweaver crawl --platform '?aws:`)
	c.run("pause").ends(exitUsage, `there is no crawl in aws://test yet`)
	c.run("crawl").ends(exitUsage, `there is no crawl in aws://test yet`)
	c.run("crawl", "--partitions", "4", url+"/0").ends(exitUsage, `--partitions 4 is too many: aws://test was deployed for 3 partitions`)
	for _, flag := range []string{"--connections=1", "--allow-net=127.0.0.1", "--max-time=1m"} {
		c.run("crawl", flag, url+"/0").ends(exitUsage, `makes no sense in a cloud: `)
	}
	c.run("crawl", "--delay", "0s", "--detach", url+"/0", url+"/fixed").ends(exitOK,
		`^crawl .* begins in aws://test with 2 URLs$`, `^crawl .* continues in aws://test; see its progress with 'orbweaver status --platform `)
	c.run("status").ends(exitOK, `^state +running$`, `^at work +0 of 3 partitions$`, `^ +[1-3] woken, not yet at work$`)
	ctx, cancel := context.WithTimeout(c.t.Context(), 300*time.Millisecond)
	defer cancel()
	c.runFor(ctx, "crawl", "--every", "50ms").ends(exitOK, `continues in aws://test; see its progress with`)

	off := c.functions()
	defer off()
	c.run("crawl", "--every", "50ms").ends(exitOK,
		`^crawl .* in aws://test resumes after \d+ pages?$`, `^Finished: nothing is left to do, 41 pages\.$`,
		`^  calls +queue \d+`, `^  cost +\$[\d,.]+ per million pages`, `functions \$.*GB-seconds`, `without crashed steps`,
		`orbweaver export --format warc --out DIR --platform`)
	c.run("status").ends(exitOK, `^state +finished$`, `^calls +\d+ of functions`, `^cost +\$`)
	var s statusReport
	if err := json.Unmarshal([]byte(c.run("status", "--json").ends(exitOK).out), &s); err != nil || s.InCloud == nil || s.InCloud.Partitions != 3 ||
		s.InCloud.Calls.Functions == 0 || s.InCloud.Calls.FunctionMBMillis == 0 || s.InCloud.Cost <= 0 || s.Totals.Pages != 41 || s.Cloud != c.url {
		c.t.Errorf("%v, %+v", err, s.InCloud)
	}
	c.run("explain", url+"/1").ends(exitOK, `^state +fetched$`)
	c.run("get", url+"/1").ends(exitOK, `<title>page 1</title>`)
	c.eventually("hosts", `1 host`) // a tick after the end copies the estimates of the host
	if r := c.run("export", "--format", "urls", "--outcome", "ok", "--out", "-").ends(exitOK); strings.Count(r.out, "\n") != 41 {
		c.t.Errorf("exported\n%s", r.out)
	}
	dir := filepath.Join(c.t.TempDir(), "warcs")
	c.run("export", "--format", "warc", "--out", dir).ends(exitOK, `WARC files? .* and index.cdxj with 4\d lines`)
	if files, err := os.ReadDir(dir); err != nil || len(files) < 2 {
		c.t.Errorf("%v, %v", files, err)
	}
	c.run("fsck").ends(exitOK, `^clean: `)
	c.run("crawl", "--every", "50ms", "--slots", "7").ends(exitUsage, `--slots 7 contradicts the crawl in aws://test, .*`, `or start another one with --new once`)

	// URLs that were requested before are requested again.
	c.run("recrawl", "--every", "50ms", "--id", "one", url+"/fixed", url+"/1", "http://elsewhere.example/").ends(exitOK,
		`^Finished: 2 of 3 URLs answered: 1 failed, 2 unchanged\.$`, `/fixed: unchanged 304, generation 1$`, `/1: ok 200, generation 1, unchanged$`,
		`out-of-scope`)
	c.run("recrawl", "--every", "50ms", "--id", "one", url+"/fixed").ends(exitOK, `/fixed: nothing new: it was requested before`)
	c.run("recrawl", "--later", url+"/2").ends(exitOK, `^1 URL in the intake queue of aws://test`)
	c.run("crawl", "--every", "50ms").ends(exitOK, `^Finished`)
	off()
	c.run("recrawl", "--every", "50ms", "--max-time", "200ms", url+"/3").ends(exitStopped,
		`^Stopped waiting after --max-time 200ms, with 41 pages\. 0 of 1 URL answered so far; the request stands`, `/3: not requested yet`)
	c.run("recrawl", "--connections", "3", url+"/3").ends(exitUsage, `makes no sense in a cloud`)
	c.run("fsck").ends(exitOK, `^clean: `)
}

// TestCloudSearch searches an index that functions have built of their crawl.
func TestCloudSearch(t *testing.T) {
	c := memoryCloud(t)
	off := c.functions()
	c.run("crawl", "--index", "--every", "50ms", "--delay", "0s", c.site.url+"/0").ends(exitOK)
	c.settled("finished")
	off()
	c.run("search", "page").ends(exitUsage, `nothing of the crawl in aws://test is indexed yet; 'orbweaver index --platform `)
	p := c.platform()
	v, err := view.New(t.Context(), engine.Store{Platform: p})
	if err != nil {
		t.Fatal(err)
	}
	e, err := newFunction(t.Context(), p, v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(); err != nil {
		t.Fatal(err)
	}
	for part := range partition.ID(3) {
		if _, err := e.Index(t.Context(), part, index.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	c.run("search", `title:"page 7"`).ends(exitOK, `^  1  page 7$`, `/7$`, `^1 result in `)
	c.run("search", "--json", "--all", "title:page").ends(exitOK, `"total": 40,$`)
}

func TestCloudOrders(t *testing.T) { testCloudOrders(memoryCloud(t)) }

// testCloudOrders pauses, resumes and stops a crawl, and replaces it.
func testCloudOrders(c *cloud) {
	url := c.site.url
	off := c.functions()
	defer off()
	c.run("crawl", "--delay", "30ms", "--detach", url+"/0").ends(exitOK)
	c.site.wait(3)
	c.notYet()
	c.run("pause").ends(exitOK, `^crawl .* in aws://test is paused: no page is requested until 'orbweaver resume --platform .*'; `)
	c.run("pause").ends(exitOK, `it was paused already`)
	c.settled("paused")
	before := c.site.count()
	c.run("recrawl", url+"/1").ends(exitUsage, `the crawl in aws://test is paused`, `--later`)
	c.notYet()
	time.Sleep(300 * time.Millisecond)
	if n := c.site.count(); n != before {
		c.t.Errorf("%d pages were requested while it was paused", n-before)
	}
	c.run("resume").ends(exitOK, `^crawl .* continues$`)
	c.run("resume").ends(exitOK, `it was neither paused nor stopped`)
	c.site.wait(before + 3)
	c.run("stop").ends(exitOK, `is stopped: 'orbweaver crawl --platform`)
	c.settled("stopped")
	c.run("crawl", "--new", "--delay", "0s", "--max-pages", "5", "--every", "50ms", url+"/0").ends(exitOK,
		`begins in aws://test with 1 URL`, `The limit of --max-pages 5 is reached: 5 pages`)
	c.run("stop").ends(exitOK)
	c.run("crawl", "--max-pages=-1", "--every", "50ms").ends(exitOK, `no longer stopped or paused`, `^Finished: nothing is left to do, 40 pages\.$`)
	c.run("fsck").ends(exitOK, `^clean: `)
}

func TestCloudTopics(t *testing.T) { testCloudTopics(memoryCloud(t)) }

// testCloudTopics crawls two topics that a file describes, and changes them.
func testCloudTopics(c *cloud) {
	file := filepath.Join(c.t.TempDir(), "crawl.yaml")
	write := func(text string) {
		text = strings.NewReplacer("SITE", c.site.url, "OTHER", c.site.other).Replace(text)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	const first = "delay: 0s\ntopics:\n  - name: a\n    priority: 5\n    minimum: 30/h\n    seeds: SITE/0\n"
	write(first + "hosts: [{host: x.example, connection: 2}]\n")
	c.run("crawl", "--file", file).ends(exitUsage, `crawl.yaml:7: a host has no key "connection"; its keys are host, connections, delay`)
	write(first)
	c.run("crawl", "--file", file, "--detach").ends(exitOK, `begins in aws://test with 1 URL and 1 topic$`)
	c.run("topics").ends(exitOK, `^ +5 +10s +0 of 30/h +0 +0.0% .* a$`)
	c.run("topics", "set", "b", "--priority", "3").ends(exitUsage, `the crawl in aws://test has no topic "b"; 'orbweaver topics --platform`)
	c.run("topics", "set", "a", "--priority", "3", "--slice", "8s").ends(exitOK, `^topic a of crawl .* in aws://test: priority 3, slice 8s, minimum 30/h`)
	write("policy: quality\n" + first)
	c.run("crawl", "--file", file).ends(exitUsage, `crawl.yaml:1: policy quality contradicts the crawl in aws://test, which was created with breadth-first and keeps it$`)
	off := c.functions()
	defer off()
	write(first + "  - name: b\n    max-depth: 1\n    slice: 4s\n    seeds: OTHER/1\n")
	c.run("crawl", "--file", file, "--every", "50ms").ends(exitOK, `resumes after \d+ pages?, with 1 URL more$`, `^Finished: nothing is left to do, 43 pages\.$`)
	c.run("topics").ends(exitOK, `^ +5 +10s( \(now 1.25s\))? +40 of 30/h +40 +93.0% .* a$`, `^ +0 +4s +- +3 +7.0% .* b$`, `^ +- +- +- +0 +0.0% .* \(none\)$`)
	var r topicsReport
	if err := json.Unmarshal([]byte(c.run("topics", "--json").ends(exitOK).out), &r); err != nil || len(r.Topics) != 2 || r.Topics[1].Pages != 3 || r.Cloud != c.url || r.Topics[0].Had != 40 {
		c.t.Errorf("%v, %+v", err, r)
	}
	c.run("fsck").ends(exitOK, `^clean: `)
}

// notYet checks that no other crawl can be created.
func (c *cloud) notYet() {
	c.t.Helper()
	c.run("crawl", "--new", c.site.url+"/1").ends(exitUsage, `neither finished nor stopped\.$`, `'orbweaver stop --platform .* and run this command again`)
}

// settled waits until the crawl is in a state.
func (c *cloud) settled(state string) {
	c.t.Helper()
	for range 200 {
		var s statusReport
		if err := json.Unmarshal([]byte(c.run("status", "--json").ends(exitOK).out), &s); err != nil {
			c.t.Fatal(err)
		}
		if string(s.State) == state {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("the crawl is not %s", state)
}

func TestCloudDeadLetters(t *testing.T) { testCloudDeadLetters(memoryCloud(t)) }

// testCloudDeadLetters sends unreadable messages, and lists and replays the dead letters that they become.
func testCloudDeadLetters(c *cloud) {
	url := c.site.url
	off := c.functions()
	c.run("crawl", "--delay", "0s", "--every", "50ms", url+"/0").ends(exitOK)
	c.run("dlq", "list").ends(exitOK, `^no dead letters`)
	c.send(naming.IntakeQueue, `recrawl it, please`)
	c.eventually("dlq list", `recrawl it|unfit request`)
	off()
	request := `{"recrawl": ["` + url + `/1"], "id": "dead"}`
	c.send(naming.DeadLettersQueue, request, string([]byte{'M', 0xff, 0xfe}))
	c.run("dlq", "list").ends(exitOK,
		`^ +id +put aside +kind +from +bytes +reason$`, `unknown +intake +18 +unfit request`, `request +intake +\d+ +given up by its queue`,
		`unknown +intake +3 +given up`, `^3 dead letters, 0 replayed$`)
	c.run("dlq", "list").ends(exitOK, `^3 dead letters, 0 replayed$`) // they are in the store now
	var list []letter
	if err := json.Unmarshal([]byte(c.run("dlq", "list", "--json").ends(exitOK).out), &list); err != nil || len(list) != 3 {
		c.t.Fatalf("%v, %+v", err, list)
	}
	id := map[int]string{}
	for _, l := range list {
		id[l.Bytes] = l.ID
	}
	c.run("dlq", "replay", "").ends(exitUsage, `there is no dead letter ""`)
	c.run("dlq", "replay", "zzz").ends(exitUsage, `there is no dead letter "zzz"`)
	c.run("dlq", "replay").ends(exitUsage, `give ids of letters, or --all`)
	asked := c.site.count()
	c.run("dlq", "replay", "--all").ends(exitOK, `^1 message sent again; 2 not sent, which this version cannot parse either$`)
	c.run("dlq", "list").ends(exitOK, `request .* replayed 20.*; given up`, `^3 dead letters, 1 replayed$`)
	c.run("dlq", "replay", "--all").ends(exitOK, `^0 messages sent again; 2 not sent`)
	c.run("dlq", "replay", id[18]).ends(exitError, `cannot be parsed, so nothing was sent`)
	defer c.functions()()
	if !c.site.wait(asked + 1) {
		c.t.Error("the request that was sent again was not taken")
	}
	c.run("crawl", "--every", "50ms").ends(exitOK)
	c.run("explain", url+"/1").ends(exitOK, `generation 1`)
	c.run("fsck").ends(exitOK, `^clean: `, `3 dead letters$`)
}

// eventually waits until the output of a command matches.
func (c *cloud) eventually(command, want string) {
	c.t.Helper()
	var r *result
	for range 100 {
		if r = c.run(strings.Fields(command)...); regexp.MustCompile(want).MatchString(r.out) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("nothing matches %q in\n%s%s", want, r.out, r.errOut)
}

func (c *cloud) send(queue string, bodies ...string) {
	c.t.Helper()
	q, err := c.platform().Queue(queue)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, b := range bodies {
		if err := q.Send(c.t.Context(), [][]byte{[]byte(b)}, 0); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := q.Close(context.WithoutCancel(c.t.Context())); err != nil {
		c.t.Fatal(err)
	}
}

// TestPlatformInMemory checks that commands refuse a platform that ends with them.
func TestPlatformInMemory(t *testing.T) {
	const place = "gocloud://x?topic=mem://x/{queue}&subscription=mem://x/{queue}&table=mem://x/key&bucket=mem://&partitions=2"
	for _, args := range [][]string{{"crawl", "https://example.org/"}, {"status"}, {"work"}} {
		if status, out := inProcess(t, append(args, "--platform", place)...); status != exitUsage || !strings.Contains(out, "use a folder") {
			t.Errorf("%v: status %d, %s", args, status, out)
		}
	}
}

// TestRequisitesOnPlatform checks that functions fetch requisites if they are asked to, and otherwise do not.
func TestRequisitesOnPlatform(t *testing.T) {
	c := memoryCloud(t)
	defer c.functions()()
	at := []string{"--every", "50ms", "--delay", "0s", c.site.url + "/styled"}
	c.run(append([]string{"crawl"}, at...)...).ends(exitOK, `outcomes +ok 1\n`)
	c.settled("finished")
	c.run(append([]string{"crawl", "--new", "--requisites"}, at...)...).ends(exitOK, `requisites 2, which pages need`)
}
