package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/orbweaver/orbweaver/internal/platform"
)

// The API of a folder's owner, HTTP over the socket:
//
//	GET /records?key=K   a record's value; 404 if there is none
//	GET /live            JSON: a Live
//
// It only reads. Whoever may write the folder may ask: the socket has mode 0600.
const (
	socketName = "orbweaver.sock"
	// maxSocketPath is what fits into a socket's address: 108 bytes with a final zero
	// on Linux, 104 elsewhere.
	maxSocketPath = 103
	maxAnswer     = 64 << 20
)

// Live is what the process that works on a folder says of itself.
type Live struct {
	PID      int             `json:"pid"`
	Started  time.Time       `json:"started"`  // when it began to answer
	Snapshot json.RawMessage `json:"snapshot"` // the figures it gave to Serve, such as engine.Snapshot
}

// Serve answers for the records of a folder that this process owns, and with
// snapshot's figures, until stop is called. A socket that a dead owner left is
// replaced. snapshot is called by several goroutines.
func Serve(ctx context.Context, dir string, p *platform.Platform, snapshot func() any) (stop func() error, err error) {
	l, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("serve socket in %s: %w", dir, err)
	}
	store, started := OfPlatform(p), time.Now().UTC()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /records", func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		if key == "" {
			http.Error(w, "which key?", http.StatusBadRequest)
			return
		}
		v, found, err := store.Record(r.Context(), key)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !found:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(v) // whoever asked may be gone
		}
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) {
		figures, err := json.Marshal(snapshot())
		if err == nil {
			figures, err = json.Marshal(Live{PID: os.Getpid(), Started: started, Snapshot: figures})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(figures)
	})
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	return func() error {
		// Only the owner of the folder gets here, so the socket is this one.
		err := os.Remove(filepath.Join(dir, socketName))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		err = errors.Join(err, srv.Close())
		if serr := <-done; !errors.Is(serr, http.ErrServerClosed) {
			err = errors.Join(err, serr)
		}
		return err
	}, nil
}

// listen makes the folder's socket. It is bound in a folder that only its owner may
// enter and then moved into place: so it never has another mode than 0600, and one
// that a dead process left is replaced in the same step.
func listen(dir string) (net.Listener, error) {
	private, err := os.MkdirTemp(dir, ".socket-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	bound := filepath.Join(private, "s")
	var l *net.UnixListener
	err = withShortPath(bound, func(path string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it will not be there any more
	if err = os.Chmod(bound, 0o600); err == nil {
		err = os.Rename(bound, filepath.Join(dir, socketName))
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// withShortPath calls f with path, or, where that does not fit into a socket's
// address, with another path to the same place: through a link in the folder for
// temporary files, which is removed again.
func withShortPath(path string, f func(path string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "ow")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	link := filepath.Join(tmp, "d")
	if err := os.Symlink(dir, link); err != nil {
		return err
	}
	return f(filepath.Join(link, filepath.Base(path)))
}

// client asks a folder's owner.
type client struct{ http *http.Client }

func newClient(dir string) *client {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = withShortPath(filepath.Join(dir, socketName), func(path string) (err error) {
			c, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return c, err
	}
	return &client{&http.Client{Transport: &http.Transport{DialContext: dial, Proxy: nil}, Timeout: 30 * time.Second}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) get(ctx context.Context, path string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://owner"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("ask the folder's owner: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("ask the folder's owner: %s: %.200s", resp.Status, body)
	}
	return resp.StatusCode, body, err
}

func (c *client) answers(ctx context.Context) bool {
	_, err := c.live(ctx)
	return err == nil
}

func (c *client) record(ctx context.Context, key string) ([]byte, bool, error) {
	status, body, err := c.get(ctx, "/records?key="+url.QueryEscape(key))
	if err != nil || status == http.StatusNotFound {
		return nil, false, err
	}
	return body, true, nil
}

func (c *client) live(ctx context.Context) (*Live, error) {
	_, body, err := c.get(ctx, "/live")
	if err != nil {
		return nil, err
	}
	l := &Live{}
	if err := json.Unmarshal(body, l); err != nil {
		return nil, fmt.Errorf("ask the folder's owner: %w", err)
	}
	return l, nil
}
