package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	webDir    = "www" // served folder, below the server's folder
	startTime = 10 * time.Second
)

// configuration configures an ordinary server of static files, run by an ordinary user.
// A single process without a master logs requests in the order of its answers.
const configuration = `daemon off;
master_process off;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 64; }
http {
	client_body_temp_path temp-body;
	fastcgi_temp_path temp-fastcgi;
	proxy_temp_path temp-proxy;
	scgi_temp_path temp-scgi;
	uwsgi_temp_path temp-uwsgi;
	log_format requests escape=json
		'{"status":$status,"bytes":$bytes_sent,"method":"$request_method","uri":"$request_uri",'
		'"condition":"$http_if_none_match$http_if_modified_since"}';
	access_log access.log requests;
	log_not_found off;
	types {
		text/html              html htm;
		application/xhtml+xml  xhtml;
		text/css               css;
		application/javascript js;
		image/svg+xml          svg;
		image/png              png;
	}
	default_type text/plain;
	gzip on;
	gzip_types text/css application/javascript;
	gzip_vary on;
	server {
		listen 127.0.0.1:%d;
		root ` + webDir + `;
		index index.html;
		location = /robots.txt { return 404; }
	}
}
`

// A server is an nginx that runs during each phase, always at the same port.
type server struct {
	nginx, dir string
	port       int
}

// newServer finds nginx and a free port. Few users have system programs in their PATH.
func newServer(dir string) (*server, error) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		return nil, fmt.Errorf("%w; on Debian and Ubuntu: apt-get install nginx-light", err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &server{nginx: nginx, dir: dir, port: l.Addr().(*net.TCPAddr).Port}, l.Close()
}

// A request is a line of the server's access log.
type request struct {
	Status    int    `json:"status"`
	Bytes     int64  `json:"bytes"` // sent, header included
	Method    string `json:"method"`
	URI       string `json:"uri"`
	Condition string `json:"condition"` // validators of the request, joined
}

// during runs work while the server answers, and returns the requests that the server logged.
// It reads the log after the server has ended, when the log is complete.
func (s *server) during(ctx context.Context, work func() error) ([]request, error) {
	config, log := filepath.Join(s.dir, "nginx.conf"), filepath.Join(s.dir, "access.log")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, s.port), 0o600); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(log); err != nil {
		return nil, err
	}
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.nginx, "-p", s.dir, "-c", config)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = startTime
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err := s.ready(ctx)
	if err == nil {
		err = work()
	}
	cancel()
	// Wait returns the end of the context even if the program ended with status 0.
	if end := cmd.Wait(); end != nil && !errors.Is(end, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("nginx: %w: %s", end, said.Bytes()))
	}
	if err != nil {
		return nil, err
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	return decodeLines[request](lines)
}

// ready waits until the server accepts connections.
func (s *server) ready(ctx context.Context) error {
	for until := time.Now().Add(startTime); ; time.Sleep(20 * time.Millisecond) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err == nil {
			return c.Close()
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("nginx does not answer: %w", err)
		}
	}
}

// decodeLines decodes JSON values, one after another.
func decodeLines[T any](lines []byte) (all []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var one T
		if err := d.Decode(&one); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}
