package control

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
	"os"
	"path/filepath"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// The socket speaks HTTP. All bodies are JSON.
//
//	GET /records?key=K   the value of a record; 404 if there is none
//	GET /live            a [Live]
//	POST /requests       a [blobschema.Request]; 204
//	POST /orders         {"order": "pause"}, or "resume" or "stop"; {"changed": true}
//	POST /topics         {"topic": "news", "priority": 5}, or "slice", "minimum" or "period";
//	                     {"topic": {...}, "changed": true}
//	POST /partitions     {"version": 7, "map": base64 of a partition.Map}; 204
//	POST /ranks          a [rank.StartConfig]; the job
//
// A POST returns 400 if the body is invalid, and 503 if the owner did not carry it out; [statuses] lists the
// errors with a status of their own. The socket has mode 0600, so that only the owner of the folder connects.
const (
	// maxSocketPath is the longest path in a socket's address: 108 bytes with a final zero
	// on Linux, 104 elsewhere.
	maxSocketPath = 103
	maxAnswer     = 64 << 20
	// maxBody bounds the body of a POST, in bytes. The largest map takes 0.6 MB in base64.
	maxBody = 1 << 20
)

// statuses are the errors that pass through the socket.
var statuses = map[int]error{
	http.StatusNotFound:            crawl.ErrNoTopic,
	http.StatusUnprocessableEntity: crawl.ErrPriorities,
	http.StatusConflict:            ErrChanged,
	http.StatusLocked:              rank.ErrUnderWay,
	http.StatusFailedDependency:    rank.ErrNothing,
}

// The bodies that have no type elsewhere.
type (
	order struct {
		Order crawl.Order `json:"order"`
	}
	topicChange struct {
		Name string `json:"topic"`
		crawl.TopicChange
	}
	topicChanged struct {
		Topic   blobschema.Topic `json:"topic"`
		Changed bool             `json:"changed"`
	}
	changed struct {
		Changed bool `json:"changed"`
	}
	mapChange struct {
		Version uint64 `json:"version"`
		Map     []byte `json:"map"` // encoding of a partition.Map
	}
	nothing struct{}
)

// Live describes the process that works on a folder.
type Live struct {
	PID      int             `json:"pid"`
	Started  time.Time       `json:"started"`  // when it began to serve
	Snapshot json.RawMessage `json:"snapshot"` // the figures it gave to Serve, such as service.Snapshot
}

// Owner is the process that works on a folder. Several goroutines call its functions.
type Owner struct {
	Control
	Snapshot func() any  // figures for [Live]
	Ended    func() bool // reports whether the run accepts no more changes; nil: never
}

// Serve serves the records of a folder that this process owns, and carries out the changes that other
// processes send, until stop is called. It replaces a socket that a dead owner left.
func Serve(ctx context.Context, dir string, p *platform.Platform, o Owner) (stop func() error, err error) {
	l, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("serve socket in %s: %w", dir, err)
	}
	srv := &http.Server{
		Handler: o.handler(p), ReadTimeout: 30 * time.Second, ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	return func() error {
		// Only the owner of the folder runs this, so the socket is its own.
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

func (o *Owner) handler(p *platform.Platform) http.Handler {
	mux, started := http.NewServeMux(), time.Now().UTC()
	mux.HandleFunc("GET /records", func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		if key == "" {
			http.Error(w, "no key given", http.StatusBadRequest)
			return
		}
		recs, err := engine.ReadRecords(r.Context(), p, []string{key})
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !recs[0].Found:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(recs[0].Value) // the client may be gone
		}
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) {
		figures, err := json.Marshal(o.Snapshot())
		reply(w, Live{PID: os.Getpid(), Started: started, Snapshot: figures}, err)
	})
	handle(o, mux, "/requests", blobschema.DecodeRequest, func(ctx context.Context, r blobschema.Request) (nothing, error) {
		return nothing{}, o.Submit(ctx, r)
	})
	handle(o, mux, "/orders", decodeOrder, func(ctx context.Context, what order) (out changed, err error) {
		out.Changed, err = o.Order(ctx, what.Order)
		return out, err
	})
	handle(o, mux, "/topics", decode[topicChange], func(ctx context.Context, c topicChange) (out topicChanged, err error) {
		out.Topic, out.Changed, err = o.ChangeTopic(ctx, c.Name, c.TopicChange)
		return out, err
	})
	handle(o, mux, "/partitions", decodeChange, func(ctx context.Context, c Change) (nothing, error) {
		return nothing{}, o.Repartition(ctx, c)
	})
	handle(o, mux, "/ranks", decodeRankOrder, func(ctx context.Context, r rank.StartConfig) (ranks.Job, error) { return o.StartRanks(ctx, r) })
	return mux
}

// handle registers a change. decode checks the body, and do carries the change out.
func handle[In, Out any](o *Owner, mux *http.ServeMux, path string, decode func([]byte) (In, error),
	do func(context.Context, In) (Out, error),
) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var in In
		if err == nil {
			in, err = decode(body)
		}
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case o.Control == nil || o.Ended != nil && o.Ended():
			http.Error(w, "this run is at its end", http.StatusServiceUnavailable)
		default:
			out, err := do(r.Context(), in)
			reply(w, out, err)
		}
	})
}

// reply answers with a value as JSON, with 204 if it is [nothing], or with the status of an error.
func reply(w http.ResponseWriter, out any, err error) {
	if err != nil {
		status := http.StatusServiceUnavailable
		for s, known := range statuses {
			if errors.Is(err, known) {
				status = s
			}
		}
		http.Error(w, err.Error(), status)
		return
	}
	if out == (nothing{}) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client may be gone
}

// decode decodes one JSON value that has only the fields of T.
func decode[T any](body []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("the body has more than one JSON value")
		}
	}
	return v, err
}

func decodeOrder(body []byte) (order, error) {
	o, err := decode[order](body)
	if known := o.Order == crawl.OrderPause || o.Order == crawl.OrderResume || o.Order == crawl.OrderStop; err == nil && !known {
		err = fmt.Errorf("there is no order %.20q", o.Order)
	}
	return o, err
}

func decodeChange(body []byte) (Change, error) {
	m := &partition.Map{}
	c, err := decode[mapChange](body)
	if err == nil {
		err = m.UnmarshalBinary(c.Map)
	}
	return Change{c.Version, m}, err
}

func decodeRankOrder(body []byte) (rank.StartConfig, error) {
	o, err := decode[rank.StartConfig](body)
	if err == nil {
		err = o.Params.Check()
	}
	return o, err
}

// listen makes the folder's socket. It binds the socket in a folder that only its owner may enter,
// and then moves it into place. So the socket never has another mode than 0600, and the move
// replaces one that a dead process left.
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
	l.SetUnlinkOnClose(false) // it will have moved
	if err = os.Chmod(bound, 0o600); err == nil {
		err = os.Rename(bound, filepath.Join(dir, naming.SocketFile))
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// withShortPath calls f with path. If path does not fit into a socket's address, f gets another
// path to the same place, through a temporary link.
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
