// Peers crawls generated webs with this crawler and with other programs, and compares what they did with what the
// server saw and with the ground truth.
//
//	make peers                       # takes half an hour; programs that are not installed are left out
//	make peers ARGS='-peers orbweaver,wget -webs fast'
//	make peers ARGS='-out docs/peers.md'
//
// The programs run one after another, each on a new server of the same web. A server is a goroutine of this program and
// shares the processors with them. All traffic stays on loopback. peers.go says how each program is configured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

const atMost = 5 * time.Minute // for one crawl

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
	port := f.Int("port", 0, "serve the webs at this port; 0: any that is free. wget2 1.99.1 needs 80, because it sends no port in Host")
	_ = f.Parse(args)
	for i := range webs {
		webs[i].cfg.Port = *port
	}
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
		for _, p := range r.peers {
			if p.missing != nil {
				fmt.Fprintf(out, "%s is left out: %v\n", p.name, p.missing)
				continue
			}
			s, err := measure(ctx, p.peer, w, false)
			if err != nil {
				return fmt.Errorf("%s on the web %s: %w", p.name, w.name, err)
			}
			fmt.Fprintln(out, s)
			r.sights = append(r.sights, s)
		}
	}
	for _, p := range r.peers {
		if p.missing != nil || !selected(*only, webs[0].name) {
			continue
		}
		s, err := measure(ctx, p.peer, webs[0], true)
		if err != nil {
			return fmt.Errorf("%s, killed: %w", p.name, err)
		}
		fmt.Fprintln(out, s)
		r.killed = append(r.killed, s)
	}
	if *file == "" {
		return r.write(out)
	}
	w, err := os.Create(*file)
	if err != nil {
		return err
	}
	return errors.Join(r.write(w), w.Close())
}

// sight is what one program did on one web.
type sight struct {
	peer, web string
	killed    bool
	late      bool // it was ended after atMost

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
	return fmt.Sprintf("%-6s %-10s %5d of %d, %d again, %d against robots.txt, %d others, %.1f s, %.1f s CPU, %d MB, %d MB stored%s",
		s.web, s.peer, s.found, s.expected, s.twice, s.denied, s.other, s.seconds, s.cpu, s.memory>>20, s.stored>>20, s.exit)
}

// rate returns found pages per second.
func (s sight) rate() float64 { return float64(s.found) / s.seconds }

// measure runs a program on a new server. With kill it is killed after half of the pages and started again.
func measure(ctx context.Context, p peer, w web, kill bool) (s sight, err error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	srv, err := simweb.Start(ctx, w.cfg)
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
	s = sight{peer: p.name, web: w.name, killed: kill}
	began := time.Now()
	for again := false; ; again = true {
		cmd := p.command(ctx, dir, srv.Web().Seeds(), again)
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
		if kill && !again {
			go killHalfway(ctx, cmd, srv, len(truth.Pages)/2)
		}
		err = cmd.Wait()
		s.count(cmd)
		if err := log.Close(); err != nil {
			return s, err
		}
		if kill && !again {
			continue
		}
		if err != nil {
			s.exit = fmt.Sprintf(" (%v)", err)
		}
		break
	}
	s.seconds, s.late = time.Since(began).Seconds(), ctx.Err() != nil
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
		n := 0
		for _, k := range srv.Requests() {
			n += k
		}
		if n >= requests {
			_ = cmd.Cancel()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// count adds what a process that has ended took.
func (s *sight) count(cmd *exec.Cmd) {
	s.cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.memory = max(s.memory, usage.Maxrss<<10)
	}
}

// compare compares what the server saw with the ground truth.
func (s *sight) compare(srv *simweb.Server, truth simweb.Truth) {
	requests := srv.Requests()
	for url, e := range truth.Pages {
		n := requests[url]
		switch {
		case e.Kind == simweb.KindDenied:
			s.denied += n
		case e.Kind == simweb.KindError: // retries are right
			s.expected++
			s.found += min(n, 1)
		default:
			s.expected++
			s.found += min(n, 1)
			s.twice += max(0, n-1)
		}
	}
	for url, n := range requests {
		if _, ok := truth.Pages[url]; !ok && !strings.HasSuffix(url, "/robots.txt") {
			s.other += n
		}
	}
	for h := range srv.Web().Hosts() {
		if at := srv.Starts(h); len(at) > 20 {
			s.fastest = max(s.fastest, float64(len(at)-1)/at[len(at)-1].Sub(at[0]).Seconds())
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
