package inbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// Bounds of the claims, which are one record of the table.
const (
	maxClaims     = 200
	maxHostClaims = 20
	maxClaimBytes = 128 << 10      // of all URLs, compressed; base64 adds a third, and DynamoDB takes 400 KB
	claimAge      = 24 * time.Hour // age at which a claim is dropped, if the key file has no answer by then
	settleSoon    = 2 * time.Second
	settleLate    = time.Minute
	skew          = 5 * time.Second // greatest difference of two machines' clocks
)

// claims is the record of the submissions whose key files were requested (naming.ClaimsKey).
type claims struct {
	Claims []claim `json:"claims"` // oldest first
}

// claim is a submission that waits for its key file.
type claim struct {
	Location string    `json:"location"` // of the key file
	Key      string    `json:"key"`
	Since    time.Time `json:"since"` // an answer of the key file counts if its request was sent later
	URLs     []byte    `json:"urls"`  // one a line, compressed by gzip
}

// claim records a submission. It returns since when the key file is requested: an older claim's time, if there is one.
func (h *Handler) claim(ctx context.Context, crawl string, s *submission) (since time.Time, err error) {
	c := claim{Location: s.location.String(), Key: s.key, Since: time.Now().UTC()}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = io.WriteString(z, strings.Join(s.urls, "\n"))
	if err = errors.Join(err, z.Close()); err != nil {
		return since, err
	}
	c.URLs = packed.Bytes()
	counted := false // a repetition after a conflict does not count
	err = h.revise(ctx, crawl, func(r *claims) error {
		size, host := len(c.URLs), 0
		for _, o := range r.Claims {
			size += len(o.URLs)
			if u, err := weburl.Parse(o.Location); err == nil && u.Host() == s.location.Host() {
				host++
			}
			if o.Location == c.Location && o.Since.Before(c.Since) {
				c.Since = o.Since
			}
		}
		if len(r.Claims) >= maxClaims || host >= maxHostClaims || size > maxClaimBytes {
			return refuse(http.StatusTooManyRequests, "too many submissions wait for their keys")
		}
		if fresh := !slices.ContainsFunc(r.Claims, func(o claim) bool { return o.Location == c.Location }); fresh && !counted {
			if counted = h.checks.allow(string(s.location.Host()), 1); !counted {
				return errManyKeys
			}
		}
		r.Claims = append(r.Claims, c)
		return nil
	})
	if err != nil {
		return since, err
	}
	select {
	case h.claimed <- struct{}{}:
	default:
	}
	return c.Since, nil
}

// Run calls Settle until ctx ends: some seconds after a claim, then less and less often, at last every minute.
func (h *Handler) Run(ctx context.Context) {
	for pause := settleSoon; ; pause = min(2*pause, settleLate) {
		left, err := h.Settle(ctx)
		if err != nil && ctx.Err() == nil {
			h.Log.Warn("check keys of submissions", "error", err)
		}
		if left == 0 {
			pause = settleLate
		}
		select {
		case <-ctx.Done():
			return
		case <-h.claimed:
			pause = settleSoon / 2
		case <-time.After(pause):
		}
	}
}

// revise changes the record of the claims by compare-and-set.
func (h *Handler) revise(ctx context.Context, crawl string, change func(*claims) error) error {
	key := naming.ClaimsKey(crawl)
	for try := 0; ; try++ {
		recs, err := h.Platform.ReadRecords(ctx, []string{key})
		if err != nil {
			return err
		}
		var r claims
		if recs[0].Found {
			if err := json.Unmarshal(recs[0].Value, &r); err != nil {
				return err
			}
		}
		if err := change(&r); err != nil {
			return err
		}
		value, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err = h.Platform.WriteRecord(ctx, key, value, recs[0].Revision); !errors.Is(err, platform.ErrConflict) || try == 9 {
			return err
		}
	}
}

// Settle requests the URLs of claims whose key files have arrived with the right key, and drops claims with a wrong key or
// without an answer for a day. It returns the number of claims that still wait.
//
// A crash after the requests leaves the claims: the next call requests the same URLs under the same ids, which changes nothing.
func (h *Handler) Settle(ctx context.Context) (left int, err error) {
	v, err := h.view(ctx)
	if errors.Is(err, view.ErrNoCrawl) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var r claims
	if _, err := blobschema.ReadRecord(ctx, v.Store(), naming.ClaimsKey(v.ID()), &r); err != nil || len(r.Claims) == 0 {
		return 0, err
	}
	var done []claim
	for i := range r.Claims {
		settled, err := h.settle(ctx, v, &r.Claims[i])
		if err != nil {
			return len(r.Claims), err
		}
		if settled {
			done = append(done, r.Claims[i])
		}
	}
	if len(done) == 0 {
		return len(r.Claims), nil
	}
	err = h.revise(ctx, v.ID(), func(r *claims) error {
		r.Claims = slices.DeleteFunc(r.Claims, func(c claim) bool {
			return slices.ContainsFunc(done, func(d claim) bool {
				return c.Location == d.Location && c.Key == d.Key && c.Since.Equal(d.Since) && bytes.Equal(c.URLs, d.URLs)
			})
		})
		left = len(r.Claims)
		return nil
	})
	return left, err
}

// settle requests the URLs of a claim, or drops it. It returns false if the claim still waits.
func (h *Handler) settle(ctx context.Context, v *view.View, c *claim) (settled bool, err error) {
	location, err := weburl.Parse(c.Location)
	if err != nil {
		return true, nil // damage
	}
	pg, err := v.Latest(ctx, location)
	if err != nil {
		return false, err
	}
	if pg == nil || pg.Time.Before(c.Since.Add(-skew)) {
		return time.Since(c.Since) > claimAge, nil
	}
	right, err := holds(ctx, v, pg, c.Key)
	if err != nil {
		return false, err
	}
	if !right {
		h.Log.Warn("a submission was dropped: its key is wrong", "location", c.Location, "outcome", pg.Outcome.String())
		return true, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(c.URLs))
	if err != nil {
		return true, nil // damage
	}
	text, err := io.ReadAll(io.LimitReader(z, maxBody))
	if err != nil {
		return true, nil // likewise
	}
	return true, h.submit(ctx, blobschema.Request{
		Crawl: v.ID(), ID: "indexnow-" + digest(c.Location, c.Since.String(), string(text)), Recrawl: strings.Split(string(text), "\n"),
	})
}
