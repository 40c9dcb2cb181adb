package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"

	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// ready is the first thing that a server says; [served] is the other.
type ready struct {
	Port int `json:"port"`
}

// serve serves the web until in ends, and tells what it saw.
func serve(ctx context.Context, j job, in io.Reader, out *json.Encoder) error {
	web, err := simweb.New(j.Web)
	if err != nil {
		return err
	}
	// Counting costs both sides the same, and a request the time of a map look-up.
	srv, err := simweb.Serve(ctx, web, simweb.ListenOptions{Recording: simweb.RecordCounts})
	if err != nil {
		return err
	}
	web = srv.Web()
	precompress(web)
	runtime.GC()
	cpu := ledger.Processor()
	if err := out.Encode(ready{Port: web.Config().Port}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	s := served{CPUSeconds: (ledger.Processor() - cpu).Seconds()}
	srv.Close()
	s.count(web, srv.Requests())
	return out.Encode(s)
}

// count sorts requests by what they were for. The web has pages only, and they are plain.
func (s *served) count(web *simweb.Web, requests map[string]int) {
	for url, n := range requests {
		if strings.HasSuffix(url, "/robots.txt") {
			s.Robots += n
		}
	}
	for h := range web.Hosts() {
		for p := range web.Host(h).Pages {
			n := requests[web.URL(h, p)]
			if n > 0 {
				s.Pages++
				s.Repeats += n - 1
			}
		}
	}
	for _, n := range requests {
		s.Elsewhere += n
	}
	s.Elsewhere -= s.Pages + s.Repeats + s.Robots
}

// server is a process that serves the web.
type server struct {
	cmd  *exec.Cmd
	in   io.WriteCloser // closing it ends the server
	out  *json.Decoder
	port int
}

// startServer returns when the web can be asked.
func startServer(ctx context.Context, web simweb.Config) (*server, error) {
	cmd, err := child(ctx, "", roleServer)
	if err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = json.NewDecoder(bufio.NewReader(out))
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var r ready
	err = json.NewEncoder(s.in).Encode(job{Role: roleServer, Web: web})
	if err == nil {
		err = s.out.Decode(&r)
	}
	if err != nil {
		s.in.Close()
		return nil, errors.Join(fmt.Errorf("start server: %w", err), cmd.Wait())
	}
	s.port = r.Port
	return s, nil
}

// end ends the server and returns what it saw.
func (s *server) end() (seen served, err error) {
	if err = s.in.Close(); err == nil {
		err = s.out.Decode(&seen)
	}
	if err = errors.Join(err, s.cmd.Wait()); err != nil {
		return seen, fmt.Errorf("end server: %w", err)
	}
	return seen, nil
}
