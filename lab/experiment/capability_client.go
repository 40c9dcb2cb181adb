package experiment

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// ClientCommand is the argument of a process that runs [Client].
const ClientCommand = "capability-client"

// clientJob is the work of a client process, as JSON on its standard input.
type clientJob struct {
	Hosts      []string      `json:"hosts"`      // prefixes of URLs, up to the number of the page
	Streams    int           `json:"streams"`    // requests under way to each host
	Processors int           `json:"processors"` // 0: all
	For        time.Duration `json:"for"`
	Roots      []byte        `json:"roots"` // certificate of the authority, in DER; without it, no TLS
}

// clientFigures are the results of a client process, as JSON on its standard output. Its parent adds the times of the process.
type clientFigures struct {
	Pages  int           `json:"pages"`
	Reused int           `json:"reused"` // pages over a connection that had served another one
	Took   time.Duration `json:"took"`

	Wall, User, System time.Duration `json:"-"` // of the whole process
}

// Client is the main function of a process that fetches pages for the experiment "capability". The process does nothing else,
// so its processor time is that of the fetcher.
func Client(in io.Reader, out io.Writer) error {
	var j clientJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if j.Processors > 0 {
		runtime.GOMAXPROCS(j.Processors)
	}
	roots := x509.NewCertPool()
	if len(j.Roots) > 0 {
		root, err := x509.ParseCertificate(j.Roots)
		if err != nil {
			return fmt.Errorf("read job: %w", err)
		}
		roots.AddCert(root)
	}
	client := fetch.New(fetch.Config{
		UserAgent: liveAgent, Token: liveAgent, Roots: roots, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	})
	defer client.Close()
	var pages, reused atomic.Int64
	get := func(host string, page int) error {
		u, err := weburl.Parse(fmt.Sprint(host, page))
		if err != nil {
			return err
		}
		answer := client.Fetch(context.Background(), actor.Request{URL: u, Attempt: 1})
		if answer.Page.Outcome != blobschema.OutcomeOK {
			return fmt.Errorf("fetch %s: outcome %d: %s", u, answer.Page.Outcome, answer.Page.Detail)
		}
		if answer.HTTP2 != (u.Scheme() == "https") {
			return fmt.Errorf("fetch %s: HTTP/2 is %v", u, answer.HTTP2)
		}
		pages.Add(1)
		if answer.Reused {
			reused.Add(1)
		}
		return nil
	}
	// The first page of each host is not counted: it opens the connection.
	var first, rest errgroup.Group
	for _, host := range j.Hosts {
		first.Go(func() error { return get(host, 0) })
	}
	if err := first.Wait(); err != nil {
		return err
	}
	pages.Store(0)
	reused.Store(0)
	began := time.Now()
	for _, host := range j.Hosts {
		for stream := range j.Streams {
			rest.Go(func() (err error) {
				for n := stream + 1; err == nil && time.Since(began) < j.For; n += j.Streams {
					err = get(host, n)
				}
				return err
			})
		}
	}
	if err := rest.Wait(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(clientFigures{Pages: int(pages.Load()), Reused: int(reused.Load()), Took: time.Since(began)})
}
