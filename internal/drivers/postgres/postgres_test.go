package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/orbweaver/orbweaver/internal/servers"
	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

// serve starts a server. Without PostgreSQL the test is skipped, unless ORBWEAVER_TEST_SERVERS demands it.
func serve(t *testing.T) *servers.Postgres {
	t.Helper()
	s, err := servers.NewPostgres(t.Context())
	if errors.Is(err, servers.ErrMissing) && os.Getenv("ORBWEAVER_TEST_SERVERS") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// location returns the URL of a platform whose bucket is a folder.
func locationOf(t *testing.T, s *servers.Postgres) string {
	t.Helper()
	return s.URL() + "?partitions=4&blobs=file://" + filepath.ToSlash(t.TempDir())
}

func open(t *testing.T, location string, m platform.Meter) *platform.Platform {
	t.Helper()
	p, err := Open(t.Context(), location, m)
	return conformance.Opened(t, p, err)
}

func execute(t *testing.T, s *servers.Postgres, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func suite(t *testing.T, s *servers.Postgres, location string) {
	const visibility = 2 * time.Second
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p := open(t, location, m)
		if err := p.CreateQueues(t.Context(), conformance.Partitions); err != nil {
			t.Fatal(err)
		}
		execute(t, s, `update orbweaver.queues set visibility = '2 seconds'`)
		return p
	}, conformance.Traits{
		Visibility: visibility, Unmetered: true,
		Restart: func(t *testing.T, p *platform.Platform) *platform.Platform {
			s.Kill()
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return p // its connections are dead, and it has to make new ones
		},
	})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	s := serve(t)
	suite(t, s, locationOf(t, s))
}

// TestSuiteOnObjectStore runs the suite with pages in a store that speaks S3.
func TestSuiteOnObjectStore(t *testing.T) {
	if os.Getenv("ORBWEAVER_TEST_SERVERS") == "" {
		t.Skip("not run: make selfhosted-test builds the object store")
	}
	s := serve(t)
	store, err := servers.NewObjectStore(t.Context(), filepath.Join("..", "..", "..", "bin", "tools"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Kill)
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	suite(t, s, s.URL()+"?blobs="+store.URL())
}

// TestOpenedTogether opens a new platform by several processes at once. One of them creates the tables.
func TestOpenedTogether(t *testing.T) {
	t.Parallel()
	s := serve(t)
	location := locationOf(t, s)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := Open(t.Context(), location, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestUnfit checks the errors of servers, databases and buckets that do not fit.
func TestUnfit(t *testing.T) {
	t.Parallel()
	s := serve(t)
	location := locationOf(t, s)
	open(t, location, nil)
	execute(t, s, `create role stranger login`, `create role careless login`, `alter role careless set synchronous_commit = off`,
		`create role reader login`, `alter role reader set default_transaction_read_only = on`,
		`create database plain encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'`)
	change := func(from, to string) string { return strings.Replace(location, from, to, 1) }
	for what, c := range map[string]struct{ location, want string }{
		"another bucket":  {change("blobs=file://", "blobs=file://"+filepath.ToSlash(t.TempDir())), "its pages are not in file://"},
		"no server":       {strings.Replace(location, s.URL(), "postgres://orbweaver@127.0.0.1:1/postgres", 1), "cannot be reached"},
		"no database":     {change("/postgres?", "/none?"), "createdb"},
		"no right":        {change("orbweaver@", "stranger@") + "&name=theirs", "grant it CREATE"},
		"no right to use": {change("orbweaver@", "stranger@"), "lacks a right"},
		"read-only":       {change("orbweaver@", "reader@"), "takes no writes"},
		"async commits":   {change("orbweaver@", "careless@"), "synchronous_commit"},
		"encoding":        {change("/postgres?", "/plain?"), "UTF8"},
	} {
		p, err := Open(t.Context(), c.location, nil)
		if err == nil {
			_ = p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		t.Log(err)
	}
	execute(t, s, `update orbweaver.about set version = 99`)
	if _, err := Open(t.Context(), location, nil); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("another version: %v", err)
	}
}

func TestBadURLs(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u@h/d":                                      "blobs is missing",
		"postgres://u@h/d?blobs=":                               "blobs needs one value",
		"postgres://u@h/d?blobs=file:///x&name=A":               "the name",
		"postgres://u@h/d?blobs=file:///x&partitions=0":         "partitions is",
		"postgres://u@h/d?blobs=file:///x&pool_max_conns=many":  "pool_max_conns",
		"postgres://u:secret@h:port/d?blobs=file:///x":          "invalid port",
		"postgres://u:secret@h/d?blobs=file:///x&sslmode=maybe": "sslmode",
	} {
		_, err := parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	l, err := parse("postgres://u@h/d?blobs=s3://b?endpoint=http://h:9000&sslmode=disable&pool_max_conns=3")
	if err != nil || l.blobs != "s3://b?endpoint=http://h:9000" || l.name != "orbweaver" || l.partitions != 16 || l.pool.MaxConns != 3 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestRidesOutRestarts sends, receives and writes while the server is killed and restarted. No message that was sent is
// lost, and no write happens twice.
func TestRidesOutRestarts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := open(t, locationOf(t, s), nil)
	u := newUser(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() { u.send(ctx, w) })
	}
	all.Go(func() { u.write(ctx) })
	all.Go(func() {
		for ctx.Err() == nil {
			u.take(100 * time.Millisecond)
		}
	})
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		s.Kill()
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	all.Wait()
	// A killed server may have hidden messages for a receiver that never got them.
	execute(t, s, `update orbweaver.messages set visible = now()`)
	u.check()
}

// TestFailsOver kills a server while its standby follows synchronously, and promotes the standby. All that was acknowledged is
// there, and work goes on.
func TestFailsOver(t *testing.T) {
	t.Parallel()
	first := serve(t)
	second, err := first.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	hosts := strings.TrimSuffix(strings.TrimPrefix(second.URL(), "postgres://orbweaver@"), "/postgres")
	p := open(t, strings.Replace(locationOf(t, first), "/postgres?", ","+hosts+"/postgres?", 1), nil)
	u := newUser(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() { u.send(ctx, w) })
	}
	all.Go(func() { u.write(ctx) })
	time.Sleep(time.Second)
	first.Kill()
	before := u.written()
	execute(t, second, `select pg_promote()`, `alter system reset synchronous_standby_names`, `select pg_reload_conf()`)
	for began := time.Now(); u.written() <= before+1; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("no write succeeds after the promotion")
		}
	}
	cancel()
	all.Wait()
	execute(t, second, `update orbweaver.messages set visible = now()`)
	u.check()
}

// user uses a platform whose server fails.
type user struct {
	t *testing.T
	p *platform.Platform
	q platform.Queue

	mu     sync.Mutex
	sent   map[string]bool
	got    map[string]bool
	writes int
	unsure int
}

func newUser(t *testing.T, p *platform.Platform) *user {
	t.Helper()
	if err := p.CreateQueues(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	q, err := p.Queue("mailbox-00000")
	if err != nil {
		t.Fatal(err)
	}
	return &user{t: t, p: p, q: q, sent: map[string]bool{}, got: map[string]bool{}}
}

// check takes all messages. Each that was sent must be among those that were taken.
func (u *user) check() {
	u.t.Helper()
	for u.take(time.Second) > 0 {
	}
	for body := range u.sent {
		if !u.got[body] {
			u.t.Errorf("message %s is lost", body)
		}
	}
	if len(u.sent) == 0 || u.writes == 0 {
		u.t.Error("nothing was sent or written")
	}
	u.t.Logf("%d messages sent, %d received, %d writes, %d of unknown result", len(u.sent), len(u.got), u.writes, u.unsure)
}

// written returns the number of writes so far.
func (u *user) written() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.writes
}

// send sends messages until ctx ends.
func (u *user) send(ctx context.Context, w int) {
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprintf("%d/%d", w, i)
		if err := u.q.Send(u.t.Context(), [][]byte{[]byte(body)}, 0); err == nil {
			u.mu.Lock()
			u.sent[body] = true
			u.mu.Unlock()
		}
	}
}

// take receives and acknowledges some messages, and returns their number.
func (u *user) take(wait time.Duration) int {
	list, err := u.q.Receive(u.t.Context(), 10, wait)
	if err != nil {
		return 0
	}
	var receipts []platform.Receipt
	for _, d := range list {
		u.got[string(d.Body)] = true
		receipts = append(receipts, d.Receipt)
	}
	_ = u.q.Acknowledge(u.t.Context(), receipts) // otherwise they come again
	return len(list)
}

// write counts up in a record until ctx ends. After a write of unknown result it reads the record, as a step does.
func (u *user) write(ctx context.Context) {
	var rev platform.Revision
	for ctx.Err() == nil {
		now, err := u.p.WriteRecord(u.t.Context(), "counter", fmt.Append(nil, u.writes+1), rev)
		if err == nil {
			rev = now
			u.mu.Lock()
			u.writes++
			u.mu.Unlock()
			continue
		}
		u.unsure++
		recs, err := u.p.ReadRecords(u.t.Context(), []string{"counter"})
		if err != nil || !recs[0].Found {
			continue
		}
		switch string(recs[0].Value) {
		case fmt.Sprint(u.writes):
		case fmt.Sprint(u.writes + 1):
			u.mu.Lock()
			u.writes++
			u.mu.Unlock()
		default:
			u.t.Errorf("%d writes, and the record is %s", u.writes, recs[0].Value)
		}
		rev = recs[0].Revision
	}
}
