package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/rank"
)

// Socket is the client of the process that owns a folder. As a [Control], its methods fail with
// [ErrNoOwner] if there is no such process, or if it is ending.
type Socket struct{ http *http.Client }

// Dial returns the client for a folder. Each call connects.
func Dial(dir string) *Socket {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = withShortPath(filepath.Join(dir, naming.SocketFile), func(path string) (err error) {
			c, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return c, err
	}
	// Each call connects again: on a kept connection the end of the owner looks like any other network error.
	return &Socket{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}}
}

// Record reads a record of the folder's table. It returns nil if the record does not exist.
func (s *Socket) Record(ctx context.Context, key string) ([]byte, error) {
	status, body, err := s.do(ctx, http.MethodGet, "/records?key="+url.QueryEscape(key), nil)
	if err != nil || status == http.StatusNotFound {
		return nil, err
	}
	return body, answer(status, body, nil)
}

// Live returns the description of the owner.
func (s *Socket) Live(ctx context.Context) (*Live, error) {
	status, body, err := s.do(ctx, http.MethodGet, "/live", nil)
	if err != nil {
		return nil, err
	}
	l := &Live{}
	return l, answer(status, body, l)
}

func (s *Socket) Submit(ctx context.Context, r blobschema.Request) error {
	body, err := blobschema.EncodeRequest(r)
	if err != nil {
		return err
	}
	return s.post(ctx, "/requests", json.RawMessage(body), nil)
}

func (s *Socket) Order(ctx context.Context, o crawl.Order) (bool, error) {
	var out changed
	err := s.post(ctx, "/orders", order{o}, &out)
	return out.Changed, err
}

func (s *Socket) ChangeTopic(ctx context.Context, name string, c crawl.TopicChange) (blobschema.Topic, bool, error) {
	var out topicChanged
	err := s.post(ctx, "/topics", topicChange{name, c}, &out)
	return out.Topic, out.Changed, err
}

func (s *Socket) Repartition(ctx context.Context, c Change) error {
	m, err := c.Map.MarshalBinary()
	if err != nil {
		return err
	}
	return s.post(ctx, "/partitions", mapChange{c.Version, m}, nil)
}

func (s *Socket) StartRanks(ctx context.Context, o rank.StartConfig) (job ranks.Job, err error) {
	err = s.post(ctx, "/ranks", o, &job)
	return job, err
}

// post sends a change and decodes the answer into out.
func (s *Socket) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	status, body, err := s.do(ctx, http.MethodPost, path, body)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return ErrNoOwner
	}
	if err != nil {
		return err
	}
	return answer(status, body, out)
}

func (s *Socket) do(ctx context.Context, method, path string, content []byte) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://owner"+path, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("call the owner of the folder: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, err
}

// answer decodes the body of an answer into out, or returns the error of its status.
func answer(status int, body []byte, out any) error {
	switch known := statuses[status]; {
	case known != nil:
		return known
	case status == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %.200s", ErrNoOwner, bytes.TrimSpace(body))
	case status == http.StatusNoContent || status == http.StatusOK && out == nil:
		return nil
	case status != http.StatusOK:
		return fmt.Errorf("call the owner of the folder: %s: %.200s", http.StatusText(status), bytes.TrimSpace(body))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("call the owner of the folder: %w", err)
	}
	return nil
}
