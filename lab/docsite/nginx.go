package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	webDir     = "www"        // what is served, below the server's folder
	accessLog  = "access.log" // see log.go
	markURI    = "/.mark"     // its requests divide the log
	startTries = 3            // ports that are tried
	startTime  = 10 * time.Second
	stopTime   = 5 * time.Second
)

// configuration is that of an ordinary server of static files, run by an ordinary user.
// All paths are relative to the prefix that nginx is started with. One process without a
// master is what can be stopped for sure.
func configuration(port int, without func(module string) bool) string {
	var temps strings.Builder
	for _, module := range []string{"fastcgi", "proxy", "scgi", "uwsgi"} {
		if !without(module) {
			fmt.Fprintf(&temps, "\t%s_temp_path temp-%[1]s;\n", module)
		}
	}
	return `daemon off;
master_process off;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 64; }
http {
	client_body_temp_path temp-body;
` + temps.String() + `	log_format requests escape=json
		'{"status":$status,"bytes":$bytes_sent,"method":"$request_method","uri":"$request_uri",'
		'"if_none_match":"$http_if_none_match","if_modified_since":"$http_if_modified_since"}';
	access_log ` + accessLog + ` requests;
	log_not_found off;
	types {
		text/html              html htm;
		application/xhtml+xml  xhtml;
		text/css               css;
		application/javascript js;
		application/json       json;
		image/svg+xml          svg;
		image/png              png;
		image/gif              gif;
		image/jpeg             jpg jpeg;
		font/woff2             woff2;
		application/gzip       gz;
		application/pdf        pdf;
	}
	default_type text/plain;
	sendfile on;
	etag on;
	gzip on;
	gzip_types text/css application/javascript;
	gzip_vary on;
	server {
		listen 127.0.0.1:` + strconv.Itoa(port) + `;
		root ` + webDir + `;
		index index.html;
		location = /robots.txt { return 404; }
		location = ` + markURI + ` { return 204; }
	}
}
`
}

// findNginx looks where system programs are, too, which is in few users' PATH.
func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", wrongUse("nginx is not installed; on Debian and Ubuntu: apt-get install nginx-light")
}

// A server is a running nginx. It must be stopped.
type server struct {
	port   int
	prefix string // its folder
	cancel context.CancelFunc
	ended  chan struct{} // closed when the process is gone
	err    error         // why; read after ended
	output bytes.Buffer  // what it said; read after ended
	log    logReader
}

// startServer starts a server of the folder www below prefix, and returns when it
// answers. The end of ctx stops it as stop does.
func startServer(ctx context.Context, nginx, prefix string) (*server, error) {
	version, err := exec.CommandContext(ctx, nginx, "-V").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s -V: %w", nginx, err)
	}
	without := func(module string) bool { return bytes.Contains(version, []byte("--without-http_"+module+"_module")) }
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(prefix, "nginx.conf"), []byte(configuration(port, without)), 0o644); err != nil {
			return nil, err
		}
		s := &server{port: port, prefix: prefix, ended: make(chan struct{}), log: logReader{name: filepath.Join(prefix, accessLog)}}
		// A port that was free may be taken before nginx takes it.
		if err := s.start(ctx, nginx); err == nil {
			return s, nil
		} else if try == startTries || ctx.Err() != nil || !strings.Contains(err.Error(), "bind()") {
			return nil, fmt.Errorf("start nginx: %w", err)
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// start starts the process and waits until it answers.
func (s *server) start(ctx context.Context, nginx string) error {
	ctx, s.cancel = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, nginx, "-p", s.prefix, "-c", "nginx.conf")
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	if err := cmd.Start(); err != nil {
		s.cancel()
		return err
	}
	go func() {
		defer close(s.ended)
		s.err = cmd.Wait()
	}()
	for until := time.Now().Add(startTime); ; {
		err := s.mark(ctx, 0)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			log, _ := os.ReadFile(filepath.Join(s.prefix, "error.log"))
			return fmt.Errorf("it ended at once (%v): %s%s", s.err, s.output.Bytes(), log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) || ctx.Err() != nil {
			s.stop()
			return fmt.Errorf("no answer: %w", err)
		}
	}
}

// stop stops the process and waits for its end.
func (s *server) stop() {
	s.cancel()
	<-s.ended
}

// mark makes a request that stands in the log between what was asked before and after it:
// the server's one process logs a request before it turns to the next.
func (s *server) mark(ctx context.Context, n int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s?%d", s.port, markURI, n), nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// requests returns what the server was asked for since the last call.
func (s *server) requests(ctx context.Context) ([]request, error) {
	s.log.marks++
	if err := s.mark(ctx, s.log.marks); err != nil {
		return nil, fmt.Errorf("mark the access log: %w", errors.Join(err, s.gone()))
	}
	return s.log.read(ctx)
}

// gone says why the server is no more, if so.
func (s *server) gone() error {
	select {
	case <-s.ended:
		return fmt.Errorf("nginx ended (%v): %s", s.err, s.output.Bytes())
	default:
		return nil
	}
}
