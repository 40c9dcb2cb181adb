package view

import (
	"bytes"
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

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/platform"
)

// The API of a folder's owner, HTTP over the socket:
//
//	GET /records?key=K   a record's value; 404 if there is none
//	GET /live            JSON: a Live
//	POST /requests       a blobschema.Request; 204 once it is on the intake queue,
//	                     400 if it is unfit, 503 if it was not taken
//	POST /orders         JSON {"order": "pause"}, or "resume" or "stop": JSON
//	                     {"changed": true} once it is given, false if it was no news;
//	                     400 if it is no order, 503 if it was not taken
//	POST /partitions     JSON {"version": 7, "map": base64 of a partition.Map}: 204 once the
//	                     slots are to go to its owners; 409 if the map record has another
//	                     version, 400 if it is no map, 503 if it was not taken
//	POST /topics         JSON {"topic": "news", "priority": 5}, or "slice", "minimum" or
//	                     "period": JSON {"topic": {...}, "changed": true} once it is so; 404 if
//	                     there is no such topic, 422 if it has no one priority, 400 if it is no
//	                     change, 503 if it was not taken
//	POST /ranks          a RankOrder: JSON {"job": {...}, "begun": true} once the job is begun, or goes
//	                     on; 423 if another one is under way, 422 if there is nothing to rank, 400 if
//	                     it is no order, 503 if it was not taken
//
// It reads, and takes requests, orders, rank jobs and changes of the map and of topics. Whoever may write the folder may ask: the socket has
// mode 0600.
const (
	// maxSocketPath is what fits into a socket's address: 108 bytes with a final zero
	// on Linux, 104 elsewhere.
	maxSocketPath = 103
	maxAnswer     = 64 << 20
	maxOrder      = 1 << 10
)

// Live is what the process that works on a folder says of itself.
type Live struct {
	PID      int             `json:"pid"`
	Started  time.Time       `json:"started"`  // when it began to answer
	Snapshot json.RawMessage `json:"snapshot"` // the figures it gave to Serve, such as engine.Snapshot
}

// Owner is what the process that works on a folder answers with. Its functions are
// called by several goroutines.
type Owner struct {
	Snapshot func() any // its figures, for [Live]
	// Submit puts a request on the intake queue; nil where none are taken.
	Submit func(context.Context, blobschema.Request) error
	// Order gives the crawl an order, and reports whether it was news; nil where none are
	// taken.
	Order func(context.Context, crawl.Order) (changed bool, err error)
	// ChangeTopic changes a topic; nil where that cannot be.
	ChangeTopic func(ctx context.Context, name string, c crawl.TopicChange) (now blobschema.Topic, changed bool, err error)
	// StartRanks begins a rank job and sees that it is run; nil where that cannot be.
	StartRanks func(context.Context, RankOrder) (job ranks.Job, begun bool, err error)
	// Repartition changes which partitions own the slots, unless the error is ErrChanged; nil
	// where that cannot be.
	Repartition func(context.Context, Change) error
}

// Serve answers for the records of a folder that this process owns, and with the
// owner's figures, until stop is called. A socket that a dead owner left is replaced.
func Serve(ctx context.Context, dir string, p *platform.Platform, o Owner) (stop func() error, err error) {
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
		values, err := store.Records(r.Context(), key)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case values[0] == nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(values[0]) // whoever asked may be gone
		}
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) {
		figures, err := json.Marshal(o.Snapshot())
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
	o.handle(mux)
	srv := &http.Server{
		Handler: mux, ReadTimeout: 30 * time.Second, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	return func() error {
		// Only the owner of the folder gets here, so the socket is this one.
		err := os.Remove(filepath.Join(dir, naming.SocketFile))
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

// handle registers what the owner is asked to do.
func (o *Owner) handle(mux *http.ServeMux) {
	mux.HandleFunc("POST /requests", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, blobschema.MaxRequestBytes, blobschema.DecodeRequest, quietly(o.Submit), nil)
	})
	mux.HandleFunc("POST /partitions", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, maxChange, decodeChange, quietly(o.Repartition), changeErrors())
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var do func(context.Context, order) (obeyed, error)
		if o.Order != nil {
			do = func(ctx context.Context, what order) (obeyed, error) {
				changed, err := o.Order(ctx, what.Order)
				return obeyed{changed}, err
			}
		}
		answer(w, r, maxOrder, decodeOrder, do, nil)
	})
	mux.HandleFunc("POST /topics", func(w http.ResponseWriter, r *http.Request) {
		var do func(context.Context, Topic) (changedTopic, error)
		if o.ChangeTopic != nil {
			do = func(ctx context.Context, what Topic) (changedTopic, error) {
				now, changed, err := o.ChangeTopic(ctx, what.Name, what.TopicChange)
				return changedTopic{now, changed}, err
			}
		}
		answer(w, r, maxOrder, decodeOne[Topic], do, topicErrors())
	})
	mux.HandleFunc("POST /ranks", func(w http.ResponseWriter, r *http.Request) {
		var do func(context.Context, RankOrder) (rankStarted, error)
		if o.StartRanks != nil {
			do = func(ctx context.Context, what RankOrder) (rankStarted, error) {
				job, begun, err := o.StartRanks(ctx, what)
				return rankStarted{job, begun}, err
			}
		}
		answer(w, r, maxRankOrder, decodeRankOrder, do, rankErrors())
	})
}

// quietly is do, which says nothing but whether it worked.
func quietly[In any](do func(context.Context, In) error) func(context.Context, In) (nothing, error) {
	if do == nil {
		return nil
	}
	return func(ctx context.Context, what In) (nothing, error) { return nothing{}, do(ctx, what) }
}

// The bodies of POST /orders.
type (
	order struct {
		Order crawl.Order `json:"order"`
	}
	obeyed struct {
		Changed bool `json:"changed"`
	}
)

// decodeOrder reads what is asked of POST /orders.
func decodeOrder(body []byte) (order, error) {
	o, err := decodeOne[order](body)
	if known := o.Order == crawl.OrderPause || o.Order == crawl.OrderResume || o.Order == crawl.OrderStop; err == nil && !known {
		err = fmt.Errorf("there is no order %.20q", o.Order)
	}
	return o, err
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
		err = os.Rename(bound, filepath.Join(dir, naming.SocketFile))
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
		err = withShortPath(filepath.Join(dir, naming.SocketFile), func(path string) (err error) {
			c, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return c, err
	}
	return &client{&http.Client{Transport: &http.Transport{DialContext: dial, Proxy: nil}, Timeout: 30 * time.Second}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) get(ctx context.Context, path string) (status int, body []byte, err error) {
	status, body, err = c.do(ctx, http.MethodGet, path, nil)
	if err == nil && status != http.StatusOK && status != http.StatusNotFound {
		err = fmt.Errorf("ask the folder's owner: %s: %.200s", http.StatusText(status), body)
	}
	return status, body, err
}

func (c *client) do(ctx context.Context, method, path string, content []byte) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://owner"+path, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("ask the folder's owner: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, err
}

// Submit gives a request to the process that works on the view's folder. The error is
// [ErrNoOwner] if there is none, or if it is ending and takes no more.
func (v *View) Submit(ctx context.Context, r blobschema.Request) error {
	body, err := blobschema.EncodeRequest(r)
	if err != nil {
		return err
	}
	_, err = post[nothing](ctx, v, "/requests", body, nil)
	return err
}

// Order gives an order to the process that works on the view's folder, and reports
// whether it was news. The error is [ErrNoOwner] if there is none, or if it is ending.
func (v *View) Order(ctx context.Context, o crawl.Order) (changed bool, err error) {
	was, err := post[obeyed](ctx, v, "/orders", order{o}, nil)
	return was.Changed, err
}

func (c *client) answers(ctx context.Context) bool {
	_, err := c.live(ctx)
	return err == nil
}

// record returns nil if there is no such record.
func (c *client) record(ctx context.Context, key string) ([]byte, error) {
	status, body, err := c.get(ctx, "/records?key="+url.QueryEscape(key))
	if err != nil || status == http.StatusNotFound {
		return nil, err
	}
	return body, nil
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
