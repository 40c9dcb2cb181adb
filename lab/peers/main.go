// Peers crawls generated webs with this crawler and with other programs, and compares what they did with what the
// server saw and with the ground truth.
//
//	make peers-install               # the programs that are not in the system's packages
//	make peers                       # takes half an hour; programs that are not installed are left out
//	make peers ARGS='-peers orbweaver,wget -webs fast'
//	make peers ARGS='-out docs/peers.md'
//
// The programs run one after another, each on a new server of the same web. A server is a goroutine of this program and
// shares the processors with them. All traffic stays on loopback. peers.go says how each program is configured, and
// report.go which claims about this crawler a table can refute; then the exit status is 1.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

const (
	atMost = 3 * time.Minute  // for one crawl
	idle   = 20 * time.Second // without a request, after which a program that does not end by itself is ended
)

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	f := flag.NewFlagSet("peers", flag.ExitOnError)
	names := f.String("peers", "", "names of `programs`, separated by commas; all that are installed if empty")
	only := f.String("webs", "", "names of `webs`, separated by commas; all if empty")
	file := f.String("out", "", "write the report to this `file`")
	port := f.Int("port", 80, "serve the webs at this port; 0: any that is free, but wget2 1.99.1 sends no port in Host")
	_ = f.Parse(args)
	selected := func(list, name string) bool { return list == "" || slices.Contains(strings.Split(list, ","), name) }
	r := &report{}
	for _, p := range peers {
		if selected(*names, p.name) {
			version, err := p.installed(ctx)
			r.peers = append(r.peers, about{p, version, err})
		}
	}
	for _, w := range webs {
		if !selected(*only, w.name) {
			continue
		}
		t, err := w.table(ctx, r.peers, *port, out)
		if err != nil {
			return err
		}
		r.tables = append(r.tables, t)
	}
	text, refuted := r.text()
	if *file != "" {
		err = os.WriteFile(*file, []byte(text), 0o644)
	} else {
		_, err = io.WriteString(out, text)
	}
	if refuted > 0 {
		err = errors.Join(err, fmt.Errorf("%d claims are refuted; the report names them", refuted))
	}
	return err
}

// table has a web crawled by each program.
func (w web) table(ctx context.Context, peers []about, port int, out io.Writer) (t table, err error) {
	t.web = w
	w.cfg.Port = port
	pages, err := simweb.New(w.cfg)
	if err != nil {
		return t, err
	}
	for _, p := range peers {
		if p.missing != nil {
			fmt.Fprintf(out, "%s is left out: %v\n", p.name, p.missing)
			continue
		}
		s, err := measure(ctx, p.peer, pages, w.kill)
		if err != nil {
			return t, fmt.Errorf("%s on the web %s: %w", p.name, w.name, err)
		}
		fmt.Fprintf(out, "%-6s %s\n", w.name, s)
		t.sights = append(t.sights, s)
	}
	return t, nil
}

// sight is what one program did on one web.
type sight struct {
	peer
	late bool // it was ended after atMost

	expected, found, twice int     // pages and other answers that a crawl requests: of the truth, requested, requested again
	denied                 int     // requests for URLs that robots.txt forbids
	other                  int     // requests for URLs that are not in the truth
	fastest                float64 // requests per second of the busiest host
	seconds, cpu           float64
	memory                 int64 // bytes
	stored                 int64 // bytes in its folder
	exit                   string
}

func (s sight) String() string {
	return fmt.Sprintf("%-10s %5d of %d, %d again, %d against robots.txt, %d others, %.1f s, %.1f s CPU, %d MB, %d MB stored%s",
		s.name, s.found, s.expected, s.twice, s.denied, s.other, s.seconds, s.cpu, s.memory>>20, s.stored>>20, s.exit)
}

// measure runs a program on a new server. With kill it is killed after half of the pages and started again.
func measure(ctx context.Context, p peer, pages *simweb.Web, kill bool) (s sight, err error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	srv, err := simweb.Serve(ctx, pages)
	if err != nil {
		return s, err
	}
	defer srv.Close()
	dir, err := os.MkdirTemp("", "orbweaver-peers-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	truth := srv.Web().Truth(simweb.Scope{SkipDigests: true, Agent: agent, SkipSitemaps: true})
	for url := range truth.Pages { // so that nobody waits for compression
		srv.Web().Answer(simweb.Request{URL: url, AcceptGzip: true})
	}
	s = sight{peer: p}
	began := time.Now()
	var last atomic.Pointer[time.Time] // the last request, of a program that does not end by itself
	for again := false; ; again = true {
		cmd, err := p.command(ctx, dir, srv.Web().Seeds(), again)
		if err != nil {
			return s, err
		}
		log, err := os.Create(filepath.Join(dir, "peer.log"))
		if err != nil {
			return s, err
		}
		cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children can be ended too
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		if err := cmd.Start(); err != nil {
			return s, errors.Join(err, log.Close())
		}
		running, ended := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { s.watchMemory(running, cmd.Process.Pid) })
		switch {
		case kill && !again:
			go killHalfway(running, cmd, srv, len(truth.Pages)/2)
		case p.endless:
			go endIdle(running, cmd, srv, &last)
		}
		err = cmd.Wait()
		ended()
		watching.Wait()
		s.cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		if err := log.Close(); err != nil {
			return s, err
		}
		if kill && !again {
			continue
		}
		if err != nil && !p.endless {
			s.exit = fmt.Sprintf(" (%v)", err)
		}
		break
	}
	s.seconds, s.late = time.Since(began).Seconds(), ctx.Err() != nil
	if at := last.Load(); at != nil {
		s.seconds = at.Sub(began).Seconds()
	}
	s.compare(srv, truth)
	if s.found == 0 {
		said, _ := os.ReadFile(filepath.Join(dir, "peer.log"))
		s.exit += "\n" + string(said[max(0, len(said)-500):])
	}
	s.stored, err = size(dir)
	return s, err
}

// killHalfway kills a program and its children once the server has had a number of requests.
func killHalfway(ctx context.Context, cmd *exec.Cmd, srv *simweb.Server, requests int) {
	for ctx.Err() == nil {
		if total(srv) >= requests {
			_ = cmd.Cancel()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// endIdle ends a program once it has sent no request for a while, and sets the time of its last one.
func endIdle(ctx context.Context, cmd *exec.Cmd, srv *simweb.Server, last *atomic.Pointer[time.Time]) {
	for n, since := -1, time.Now(); ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if now := total(srv); now != n {
			n, since = now, time.Now()
		}
		if time.Since(since) > idle {
			last.Store(&since)
			_ = cmd.Cancel()
			return
		}
	}
}

// total returns the number of requests so far.
func total(srv *simweb.Server) (n int) {
	for _, k := range srv.Requests() {
		n += k
	}
	return n
}

// watchMemory keeps the most memory that a process has had, until it ends. What wait reports of a child begins with the
// memory of this program, so it is not used.
func (s *sight) watchMemory(ctx context.Context, pid int) {
	for ctx.Err() == nil {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		var kib int64
		if _, peak, ok := bytes.Cut(status, []byte("VmHWM:")); ok {
			_, _ = fmt.Sscan(string(peak), &kib)
		}
		s.memory = max(s.memory, kib<<10)
		time.Sleep(20 * time.Millisecond)
	}
}

// compare compares what the server saw with the ground truth.
func (s *sight) compare(srv *simweb.Server, truth simweb.Truth) {
	requests, pages := srv.Requests(), srv.Web()
	down := map[string]bool{} // hosts that see no request
	for h := range pages.Hosts() {
		host := pages.Host(h)
		down[host.Authority] = host.Down != simweb.FaultNone
		if at := srv.Starts(h); len(at) > 20 {
			s.fastest = max(s.fastest, float64(len(at)-1)/at[len(at)-1].Sub(at[0]).Seconds())
		}
	}
	for address, e := range truth.Pages {
		n := requests[address]
		u, err := url.Parse(address)
		switch {
		case err == nil && down[u.Host]:
		case e.Kind == simweb.KindDenied:
			s.denied += n
		default:
			s.expected++
			s.found += min(n, 1)
			if first := pages.Answer(simweb.Request{URL: address}); first.Fault == simweb.FaultNone && first.Status < 500 && first.Status != http.StatusTooManyRequests {
				s.twice += max(0, n-1) // otherwise a retry is right
			}
		}
	}
	for address, n := range requests {
		if _, ok := truth.Pages[address]; !ok && !strings.Contains(address, "/robots") {
			s.other += n
		}
	}
}

func size(dir string) (n int64, err error) {
	return n, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
}
