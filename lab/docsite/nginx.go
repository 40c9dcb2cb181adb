package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	webDir    = "www" // what is served, below the server's folder
	readyURI  = "/.ready"
	startTime = 10 * time.Second
)

// configuration is the one of an ordinary server of static files, run by an ordinary user.
// A single process without a master logs in the order of its answers.
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
		'"if_none_match":"$http_if_none_match","if_modified_since":"$http_if_modified_since"}';
	access_log access.log requests;
	log_not_found off;
	types {
		text/html              html htm;
		application/xhtml+xml  xhtml;
		text/css               css;
		application/javascript js;
		image/svg+xml          svg;
		image/png              png;
		image/gif              gif;
		image/jpeg             jpg jpeg;
		font/woff2             woff2;
		application/gzip       gz;
		application/pdf        pdf;
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
		location = ` + readyURI + ` { access_log off; return 204; }
	}
}
`

// findNginx also looks where system programs are, because few users have that in their PATH.
func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("nginx is not installed; on Debian and Ubuntu: apt-get install nginx-light")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// A server is an nginx that runs during each phase, always at the same port.
type server struct {
	nginx, dir string
	port       int
}

// A request is a line of the server's access log.
type request struct {
	Status          int    `json:"status"`
	Bytes           int64  `json:"bytes"` // sent, header included
	Method          string `json:"method"`
	URI             string `json:"uri"`
	IfNoneMatch     string `json:"if_none_match"`
	IfModifiedSince string `json:"if_modified_since"`
}

// during runs work while the server answers, and returns the requests that the server logged.
// The log is read after the server's end, when it is complete.
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
	// The end of a context is an error of Wait even if the program ended with status 0.
	if end := cmd.Wait(); end != nil && !errors.Is(end, context.Canceled) {
		err = errors.Join(err, fmt.Errorf("nginx: %w: %s", end, said.Bytes()))
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decodeLines[request](f)
}

// ready waits until the server answers.
func (s *server) ready(ctx context.Context) error {
	for until := time.Now().Add(startTime); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", s.port, readyURI), nil)
		if err != nil {
			return err
		}
		req.Close = true
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			return resp.Body.Close()
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("nginx does not answer: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// decodeLines decodes JSON values, one after another.
func decodeLines[T any](r io.Reader) (all []T, err error) {
	for d := json.NewDecoder(r); ; {
		var one T
		if err := d.Decode(&one); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}
