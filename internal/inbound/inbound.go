// Package inbound is an HTTP endpoint by which other programs request URLs of a crawl.
//
//	POST /requests            URLs to fetch, from holders of the operator's token
//	GET, POST /indexnow       changed URLs, from a host that shows a key (https://www.indexnow.org)
//	GET, POST /websub         a changed feed, from a hub (W3C WebSub, as a subscriber)
//
// All of them become requests on the intake queue (blobschema.Request), and nothing else: the endpoint cannot order,
// change or read a crawl. So the crawl's scope, paces, robots.txt and address guard hold for its URLs too.
//
// The endpoint itself fetches nothing. It requests the key file of an IndexNow submission from the crawl, as an ordinary URL. Until
// the answer is stored, the submission waits as a claim in a record of the table, which [Handler.Settle] works off.
//
// The handler bounds bodies, URLs, submissions at work, waiting claims, and rates: in total, for each source and for each
// host. Strangers cannot use up the rate of those whom the operator trusts. Rates are counted in memory and start again with the process. The server that uses the handler bounds the time. The parsers are parseURLs,
// parseIndexNow and signed; all have fuzz tests.
package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// TokenVariable names the environment variable with the operator's token.
const TokenVariable = "ORBWEAVER_INBOUND_TOKEN"

// Bounds of the endpoint.
const (
	// LeastToken is the least length of a token in bytes. Callbacks and secrets of WebSub derive from the token.
	LeastToken = 16
	maxBody    = 2 << 20  // bytes: 10,000 URLs of 200 bytes
	maxContent = 16 << 20 // bytes of a WebSub notification, which is only hashed
	atWork     = 32       // submissions at once, so that their bodies take at most 64 MiB
	// ReadTime bounds the time to receive a request.
	ReadTime = 10 * time.Second
)

// Submitter puts requests on the intake queue; control.Control and service.Service do.
type Submitter interface {
	Submit(context.Context, blobschema.Request) error
}

// Config configures a [Handler].
type Config struct {
	// Token is the operator's token; "" turns /requests and /websub off.
	Token    string
	Platform *platform.Platform // holds the crawl and the claims
	To       Submitter
	Log      *slog.Logger
}

// Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	Config
	mux   *http.ServeMux
	slots chan struct{} // one for each submission at work

	trusted *rate.Limiter // requests with the token or a callback of it
	all     *rate.Limiter // submissions
	sources limits        // submissions, by address
	urls    limits        // URLs of IndexNow submissions, by host
	// Requests for key files: by address, by host, and in total.
	checkers, checks limits
	checked          *rate.Limiter
	claimed          chan struct{} // tells Run that there is a claim
}

// New returns the endpoint of the active crawl of a platform.
func New(cfg Config) (*Handler, error) {
	if n := len(cfg.Token); n > 0 && n < LeastToken {
		return nil, fmt.Errorf("the token has %d bytes, less than %d: make a random one", n, LeastToken)
	}
	h := &Handler{
		Config: cfg, mux: http.NewServeMux(), slots: make(chan struct{}, atWork),
		trusted: rate.NewLimiter(20, 100), all: rate.NewLimiter(10, 100), sources: limits{rate: 2, burst: 50},
		urls:     limits{rate: 1, burst: blobschema.MaxRequestURLs}, // 3,600 an hour after a first list
		checkers: limits{rate: rate.Every(time.Minute), burst: 10}, checks: limits{rate: rate.Every(10 * time.Minute), burst: 5},
		checked: rate.NewLimiter(rate.Every(5*time.Second), 50), claimed: make(chan struct{}, 1),
	}
	h.handle("POST /requests", h.requests)
	h.handle("GET /indexnow", h.indexNow)
	h.handle("POST /indexnow", h.indexNow)
	h.handle("GET /websub", h.verify)
	h.handle("POST /websub", h.distribute)
	return h, nil
}

// ServeHTTP answers a request. The answers are plain text.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// refusal is an answer other than success.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// handle registers a function that returns the status and text of success, or an error.
func (h *Handler) handle(pattern string, do func(*http.Request) (int, string, error)) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxContent)
		status, text, err := do(r)
		var no *refusal
		switch {
		case errors.As(err, &no):
			status, text = no.status, no.why+"\n"
		case err != nil: // an error of the platform may name it
			h.Log.Warn("inbound request", "path", r.URL.Path, "error", err)
			status, text = http.StatusServiceUnavailable, "the crawl cannot take requests now; try again later\n"
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "60")
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the client may be gone
	})
}

var errManyRequests = refuse(http.StatusTooManyRequests, "too many requests")

// admit counts a submission of a stranger against the bounds. The caller calls release at its end.
func (h *Handler) admit(r *http.Request) (release func(), err error) {
	if !h.sources.allow(source(r.RemoteAddr), 1) || !h.all.Allow() {
		return nil, errManyRequests
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	default:
		return nil, refuse(http.StatusServiceUnavailable, "too many submissions at once")
	}
}

// source returns the address that a request counts for: of IPv6 the network of 64 bits.
func source(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	bits := 64
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // the number of bits is valid
	return p.String()
}

// readBody reads a body of at most maxBody bytes.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body could not be read")
	}
	if len(body) > maxBody {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes: split it", maxBody)
	}
	return body, nil
}

// requests takes URLs from a holder of the token.
func (h *Handler) requests(r *http.Request) (int, string, error) {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want := sha256.Sum256([]byte(h.Token))
	got := sha256.Sum256([]byte(given)) // equal lengths for the comparison
	if h.Token == "" || !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return 0, "", refuse(http.StatusUnauthorized, "give the operator's token: Authorization: Bearer TOKEN")
	}
	if !h.trusted.Allow() {
		return 0, "", errManyRequests
	}
	body, err := readBody(r)
	if err != nil {
		return 0, "", err
	}
	req, err := parseURLs(body)
	if err != nil {
		return 0, "", refuse(http.StatusBadRequest, "%v", err)
	}
	if err := h.submit(r.Context(), req); err != nil {
		return 0, "", err
	}
	return http.StatusAccepted, fmt.Sprintf("%d URLs requested\n", len(req.Recrawl)), nil
}

// parseURLs decodes a body of POST /requests: a [blobschema.Request], or URLs, one a line, with # comments.
func parseURLs(body []byte) (req blobschema.Request, err error) {
	text := strings.TrimSpace(string(body))
	if strings.HasPrefix(text, "{") {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&req); err != nil {
			return req, err
		}
		if _, err := d.Token(); err != io.EOF {
			return req, errors.New("the body has more than one JSON value")
		}
	} else {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				req.Recrawl = append(req.Recrawl, line)
			}
		}
	}
	switch n := len(req.Recrawl); {
	case len(req.Seeds) > 0:
		return req, errors.New("seeds would widen the scope of the crawl: give them to 'orbweaver crawl'")
	case n == 0:
		return req, errors.New("there are no URLs in the body")
	case n > blobschema.MaxRequestURLs:
		return req, fmt.Errorf("%d URLs are more than %d: split them", n, blobschema.MaxRequestURLs)
	}
	for i, raw := range req.Recrawl {
		if _, err := weburl.Parse(raw); err != nil {
			return req, fmt.Errorf("URL %d is invalid: %w", i+1, err)
		}
	}
	for _, m := range req.Split() {
		if _, err := blobschema.EncodeRequest(m); err != nil {
			return req, err
		}
	}
	return req, nil
}

// submit sends a request in as many messages as it needs.
func (h *Handler) submit(ctx context.Context, req blobschema.Request) error {
	for _, m := range req.Split() {
		if err := h.To.Submit(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// digest returns 128 bits in hexadecimal that stand for some texts, for ids of requests.
func digest(texts ...string) string { return derive("", texts...)[:32] }

// derive returns an HMAC-SHA256 of some texts in hexadecimal. Different lists of texts give different results.
func derive(key string, texts ...string) string {
	m := hmac.New(sha256.New, []byte(key))
	for _, t := range texts {
		fmt.Fprintf(m, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(m.Sum(nil))
}
