package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// role is the purpose of a process started by this program.
type role string

const (
	roleServer role = "server"
	roleLoader role = "loader"
	roleCrawl  role = "crawl"
)

// job is the work of such a process, as JSON on its standard input.
type job struct {
	Name        string           `json:"name"` // unique
	Role        role             `json:"role"`
	Web         simweb.Config    `json:"web"` // with the port of the server, except for the server itself
	Dir         string           `json:"dir"` // for stored data; the process creates it
	Partitions  int              `json:"partitions,omitempty"`
	Compression warc.Compression `json:"compression,omitempty"` // of WARC records
	Profiles    string           `json:"profiles,omitempty"`    // folder; "" for none
	Roots       []byte           `json:"roots,omitempty"`       // see ready
	Fsck        bool             `json:"fsck,omitempty"`        // check the stored crawl, and measure the time
	Requisites  bool             `json:"requisites,omitempty"`
	program     string           // executable of the process; "" for this one
}

// figures holds the results of one measurement, as JSON on the process's standard output.
type figures struct {
	Pages          int           `json:"pages"`
	Seconds        float64       `json:"seconds"` // wall clock, to the end of the last commit
	PagesPerSecond float64       `json:"pages_per_second"`
	CPUSeconds     float64       `json:"cpu_seconds"` // of the measuring process, user and system
	CPUPer1000     float64       `json:"cpu_seconds_per_1000_pages"`
	PeakBytes      int64         `json:"peak_rss_bytes"`
	WARCBytes      int64         `json:"warc_bytes"`
	StoredBytes    int64         `json:"stored_bytes"` // everything on disk
	Tail           float64       `json:"tail_seconds"` // from the last request to the end; crawls only
	Commits        int           `json:"commits,omitempty"`
	Connections    int64         `json:"connections,omitempty"`  // opened to web servers; crawls only
	Steadiness     float64       `json:"steadiness,omitempty"`   // pages per second in the last tenth of the pages, relative to the first; crawls only
	FsckSeconds    float64       `json:"fsck_seconds,omitempty"` // see job.Fsck
	Calls          ledger.Counts `json:"calls"`

	Server served `json:"server"`
}

// served holds the server's counts of a measurement.
type served struct {
	Pages      int     `json:"pages"`     // requested at least once
	Repeats    int     `json:"repeats"`   // further requests for a page
	Robots     int     `json:"robots"`    // requests for robots.txt files
	Elsewhere  int     `json:"elsewhere"` // requests for other URLs
	CPUSeconds float64 `json:"cpu_seconds"`
}

// runChild is the main function of a process started by this program.
func runChild(ctx context.Context, what role, stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	out := json.NewEncoder(stdout)
	if what == roleServer {
		return serve(ctx, j, in, out)
	}
	web, err := simweb.New(j.Web)
	if err != nil {
		return err
	}
	if err := os.Mkdir(j.Dir, 0o755); err != nil {
		return err
	}
	var f *figures
	switch what {
	case roleLoader:
		f, err = loadAll(ctx, j, web)
	case roleCrawl:
		f, err = crawlAll(ctx, j, web)
	default:
		err = fmt.Errorf("unknown role %q", what)
	}
	if err != nil {
		return err
	}
	return out.Encode(f)
}

// roots returns the authority of a web over TLS.
func (j *job) roots() (*x509.CertPool, error) {
	cert, err := x509.ParseCertificate(j.Roots)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool, nil
}

// measure makes one measurement: it runs a server, and beside it the process of j. It deletes the
// folder j.Dir afterwards.
func measure(ctx context.Context, j job) (f figures, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(j.Dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv, err := startServer(ctx, j.Web)
	if err != nil {
		return f, err
	}
	j.Web.Port, j.Roots = srv.Port, srv.Roots
	cmd, err := child(ctx, j.program, j.Role)
	if err != nil {
		return f, err
	}
	data, err := json.Marshal(j)
	if err != nil {
		return f, err
	}
	cmd.Stdin = bytes.NewReader(append(data, '\n'))
	out, err := cmd.Output()
	if err != nil {
		cancel() // ends the server
		return f, errors.Join(fmt.Errorf("measure: %w", err), srv.cmd.Wait())
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("read figures: %w", err)
	}
	if f.Server, err = srv.end(); err != nil {
		return f, err
	}
	sheets := 0
	if j.Requisites { // each host has one, which is no page of the web
		sheets = j.Web.Hosts
	}
	return f, f.check(j.Web.Hosts, sheets)
}

// check compares the pages of a measurement, and style sheets, with the requests that the server saw.
func (f *figures) check(hosts, sheets int) error {
	s := &f.Server
	if s.Pages+sheets != f.Pages || s.Repeats != 0 || s.Elsewhere != sheets || s.Robots > hosts {
		return fmt.Errorf("of %d pages the server saw %d, %d repeated requests, %d for robots.txt of %d hosts, %d others",
			f.Pages, s.Pages, s.Repeats, s.Robots, hosts, s.Elsewhere)
	}
	return nil
}

// child makes a command that runs a program in a role; "" is this program. The end of ctx kills it.
func child(ctx context.Context, program string, what role) (_ *exec.Cmd, err error) {
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, program, childFlag, string(what))
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// stopwatch measures this process from start to stop.
type stopwatch struct {
	job   job
	began time.Time
	cpu   time.Duration
	file  *os.File // of the CPU profile, if there is one
}

// Endings of the names of profiles.
const (
	cpuProfile   = ".cpu.pprof"
	allocProfile = ".allocs.pprof"
)

// start begins a measurement. Preparations before it do not count, except in the peak of
// memory, which the system measures.
func start(j job) (*stopwatch, error) {
	w := &stopwatch{job: j}
	runtime.GC()
	if j.Profiles != "" {
		runtime.MemProfileRate = 32 << 10 // by default half a MiB, too coarse for a stage
		var err error
		if w.file, err = os.Create(filepath.Join(j.Profiles, j.Name+cpuProfile)); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(w.file); err != nil {
			return nil, err
		}
	}
	w.began, w.cpu = time.Now(), ledger.Processor()
	return w, nil
}

// stop ends the measurement of a number of pages.
func (w *stopwatch) stop(pages int) (*figures, error) {
	took, cpu := time.Since(w.began), ledger.Processor()-w.cpu
	f := &figures{Pages: pages, Seconds: took.Seconds(), CPUSeconds: cpu.Seconds(), PeakBytes: peakMemory()}
	if pages > 0 {
		f.PagesPerSecond = float64(pages) / f.Seconds
		f.CPUPer1000 = f.CPUSeconds * 1000 / float64(pages)
	}
	if w.file != nil {
		pprof.StopCPUProfile()
		if err := errors.Join(w.file.Close(), writeAllocs(w.job)); err != nil {
			return nil, fmt.Errorf("write profile: %w", err)
		}
	}
	return f, nil
}

func writeAllocs(j job) error {
	runtime.GC() // the profile shows the heap of the last collection
	file, err := os.Create(filepath.Join(j.Profiles, j.Name+allocProfile))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// peakMemory returns the largest resident memory of this process, in bytes; 0 if unknown. It does
// not use getrusage, whose figure on Linux is inherited from the process that started this one.
func peakMemory() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// weigh fills in the bytes that a measurement stored.
func (f *figures) weigh(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f.StoredBytes += info.Size()
		if strings.HasSuffix(name, ".warc.gz") || strings.HasSuffix(name, ".warc") {
			f.WARCBytes += info.Size()
		}
		return nil
	})
}
