package inbound

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

const (
	keyValid   = 24 * time.Hour   // age at which the key file of a known key is requested again
	keyWrong   = 10 * time.Minute // age at which a key file without the key is requested again
	maxKeyFile = 4 << 10          // bytes of a key file
)

// keyForm is the form of a key.
var keyForm = regexp.MustCompile(`^[a-zA-Z0-9-]{8,128}$`)

// submission is a list of changed URLs of one host.
type submission struct {
	key      string
	location weburl.URL // of the key file
	urls     []string   // canonical
}

// indexNow takes a submission whose key is known, or records a claim and requests the key file.
// The statuses are those of the protocol: 200 taken, 202 the key is not checked yet, 400 not a submission, 403 wrong key, 422 URLs
// or key do not fit, 429 too many.
func (h *Handler) indexNow(r *http.Request) (int, string, error) {
	release, err := h.admit(r)
	if err != nil {
		return 0, "", err
	}
	defer release()
	s, err := readIndexNow(r)
	if err != nil {
		return 0, "", err
	}
	v, err := h.view(r.Context())
	if err != nil {
		return 0, "", err
	}
	pg, err := v.Latest(r.Context(), s.location)
	if err != nil {
		return 0, "", err
	}
	if pg != nil {
		age := time.Since(pg.Time)
		right, err := holds(r.Context(), v, pg, s.key)
		switch {
		case err != nil:
			return 0, "", err
		case right && !h.urls.allow(string(s.location.Host()), len(s.urls)):
			return 0, "", errManyURLs
		case right && age > keyValid: // a removed key counts until its file was fetched again
			s.urls = append(s.urls, s.location.String())
			fallthrough
		case right:
			return http.StatusOK, "", h.submit(r.Context(), blobschema.Request{Crawl: v.ID(), Recrawl: s.urls})
		case age < keyWrong:
			return 0, "", refuse(http.StatusForbidden, "%s does not hold the key", s.location)
		}
	}
	if err := h.mayCheck(r, v, &s); err != nil {
		return 0, "", err
	}
	since, err := h.claim(r.Context(), v.ID(), &s)
	if err != nil {
		return 0, "", err
	}
	// A crash here leaves a claim without a request: a repeated submission repeats the request, and its id makes it count once.
	return http.StatusAccepted, "the key is checked first\n", h.submit(r.Context(), blobschema.Request{
		Crawl: v.ID(), ID: "indexnow-key-" + digest(s.location.String(), since.String()), Recrawl: []string{s.location.String()},
	})
}

var (
	errManyURLs = refuse(http.StatusTooManyRequests, "too many URLs of this host")
	errManyKeys = refuse(http.StatusTooManyRequests, "too many keys to check")
)

// mayCheck refuses a submission whose key may not be checked. It counts only hosts in scope, so that invented hosts do not
// fill the memory of the limits.
func (h *Handler) mayCheck(r *http.Request, v *view.View, s *submission) error {
	if !h.checkers.allow(source(r.RemoteAddr), 1) || !h.checked.Allow() {
		return errManyKeys
	}
	why, err := v.OutOfScope(r.Context(), s.location)
	switch host := string(s.location.Host()); {
	case err != nil:
		return err
	case why != "":
		return refuse(http.StatusUnprocessableEntity, "%s is not in the scope of this crawl", s.location)
	case !h.urls.allow(host, len(s.urls)):
		return errManyURLs
	}
	return nil
}

// view opens the active crawl for reading.
func (h *Handler) view(ctx context.Context) (*view.View, error) {
	return view.New(ctx, engine.Store{Platform: h.Platform})
}

// holds reports whether a stored answer consists of the key, with or without white space around it.
func holds(ctx context.Context, v *view.View, pg *blobschema.Page, key string) (bool, error) {
	fetched := pg.Outcome == blobschema.OutcomeOK || pg.Outcome == blobschema.OutcomeUnchanged
	if !fetched || pg.BodyBytes > maxKeyFile || pg.WARC == "" {
		return false, nil
	}
	rec, err := v.Payload(ctx, *pg)
	if err != nil {
		return false, err
	}
	body, _, err := view.Decoded(rec, maxKeyFile)
	if err != nil {
		return false, nil // not an answer that can be read
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(body), "\ufeff"))
	return subtle.ConstantTimeCompare([]byte(text), []byte(key)) == 1, nil
}

// readIndexNow reads a submission of one URL from the query, or of a list from the body.
func readIndexNow(r *http.Request) (submission, error) {
	if r.Method == http.MethodGet {
		q := r.URL.Query()
		if q.Get("url") == "" {
			return submission{}, refuse(http.StatusBadRequest, "no url given")
		}
		return newSubmission("", q.Get("key"), q.Get("keyLocation"), q["url"])
	}
	body, err := readBody(r)
	if err != nil {
		return submission{}, err
	}
	return parseIndexNow(body)
}

// parseIndexNow decodes the JSON body of a submission.
func parseIndexNow(body []byte) (submission, error) {
	var in struct {
		Host        string   `json:"host"`
		Key         string   `json:"key"`
		KeyLocation string   `json:"keyLocation"`
		URLs        []string `json:"urlList"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return submission{}, refuse(http.StatusBadRequest, "the body is not a submission: %v", err)
	}
	if in.Host == "" || len(in.URLs) == 0 {
		return submission{}, refuse(http.StatusBadRequest, "the body has no host or no urlList")
	}
	return newSubmission(in.Host, in.Key, in.KeyLocation, in.URLs)
}

// newSubmission checks a submission: its key must have the right form, all URLs must have the host of the key file, and be in its folder. An
// empty host stands for that of the first URL, and an empty location for /KEY.txt on it.
func newSubmission(host, key, location string, raw []string) (s submission, err error) {
	unfit := func(format string, args ...any) (submission, error) {
		return submission{}, refuse(http.StatusUnprocessableEntity, format, args...)
	}
	if len(raw) > blobschema.MaxRequestURLs {
		return unfit("%d URLs are more than %d: split them", len(raw), blobschema.MaxRequestURLs)
	}
	if !keyForm.MatchString(key) {
		return unfit("a key is 8 to 128 letters, digits and hyphens")
	}
	var first weburl.URL
	for i, text := range raw {
		u, err := weburl.Parse(text)
		if err != nil {
			return submission{}, refuse(http.StatusBadRequest, "URL %d is invalid: %v", i+1, err)
		}
		if i == 0 {
			first = u
			if s.location, err = u.Resolve("/" + key + ".txt"); location != "" {
				s.location, err = weburl.Parse(location)
			}
			if err != nil {
				return submission{}, refuse(http.StatusBadRequest, "keyLocation is invalid: %v", err)
			}
		}
		if u.Host() != s.location.Host() || !strings.HasPrefix(u.Path(), folder(s.location)) {
			return unfit("URL %d is not below %s, where the key is", i+1, s.location)
		}
		s.urls = append(s.urls, u.String())
	}
	if h, err := weburl.Parse(first.Scheme() + "://" + host + "/"); host != "" && (err != nil || h.Host() != s.location.Host()) {
		return unfit("host %.100q is not that of the URLs and of the key", host)
	}
	s.key = key
	return s, nil
}

// folder returns the folder of a URL's path, which ends in a slash.
func folder(u weburl.URL) string { return strings.TrimSuffix(path.Dir(u.Path()), "/") + "/" }
