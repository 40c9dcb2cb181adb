package inbound

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // many hubs sign with nothing else, and HMAC-SHA1 is not forgeable
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxChallenge is the longest challenge that is echoed, in bytes.
const maxChallenge = 1 << 10

// Callback returns the callback URL and the secret of a subscription to a topic, the URL of a feed. base is the public URL
// of the endpoint. Both derive from the token, so that no subscription needs to be stored; who does not know the token cannot
// guess them.
func Callback(token, base, topic string) (callback, secret string) {
	q := url.Values{"topic": {topic}, "id": {derive(token, "websub callback", topic)[:32]}}
	return strings.TrimSuffix(base, "/") + "/websub?" + q.Encode(), derive(token, "websub secret", topic)
}

// subscribed returns the topic and secret of the subscription that a callback URL belongs to.
func (h *Handler) subscribed(r *http.Request) (topic, secret string, err error) {
	q := r.URL.Query()
	topic = q.Get("topic")
	want := derive(h.Token, "websub callback", topic)[:32]
	_, bad := weburl.Parse(topic)
	if h.Token == "" || !hmac.Equal([]byte(q.Get("id")), []byte(want)) || bad != nil {
		return "", "", refuse(http.StatusNotFound, "there is no such subscription")
	}
	if !h.trusted.Allow() {
		return "", "", errManyRequests
	}
	return topic, derive(h.Token, "websub secret", topic), nil
}

// verify confirms to a hub that the operator subscribed or unsubscribed (WebSub section 5.3), by echoing the challenge.
func (h *Handler) verify(r *http.Request) (int, string, error) {
	topic, _, err := h.subscribed(r)
	if err != nil {
		return 0, "", err
	}
	q := r.URL.Query()
	challenge := q.Get("hub.challenge")
	switch mode := q.Get("hub.mode"); {
	case mode == "denied": // section 5.2
		h.Log.Warn("a hub denied a subscription", "topic", topic, "reason", q.Get("hub.reason"))
		return http.StatusOK, "", nil
	case mode != "subscribe" && mode != "unsubscribe" || challenge == "" || len(challenge) > maxChallenge:
		return 0, "", refuse(http.StatusBadRequest, "this is not a verification of intent")
	case q.Get("hub.topic") != topic:
		return 0, "", refuse(http.StatusNotFound, "the subscription has another topic")
	}
	return http.StatusOK, challenge, nil
}

// distribute takes the notification that a feed has changed (section 7). The content only proves that the hub knows the
// secret; the crawl fetches the feed itself.
func (h *Handler) distribute(r *http.Request) (int, string, error) {
	topic, secret, err := h.subscribed(r)
	if err != nil {
		return 0, "", err
	}
	content := sha256.New()
	valid, err := signed(r.Header.Get("X-Hub-Signature"), secret, io.TeeReader(r.Body, content))
	if err != nil {
		return 0, "", refuse(http.StatusBadRequest, "the content could not be read")
	}
	if !valid {
		return 0, "", refuse(http.StatusForbidden, "the content has no valid signature: subscribe with the secret")
	}
	// A repeated or replayed notification counts once an hour.
	hour := time.Now().UTC().Truncate(time.Hour).String()
	return http.StatusAccepted, "", h.submit(r.Context(), blobschema.Request{
		ID: "websub-" + digest(topic, hour, string(content.Sum(nil))), Recrawl: []string{topic},
	})
}

// signatures are the methods of X-Hub-Signature (section 7.1).
var signatures = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// signed reports whether a signature, as in "sha256=HEX", fits a secret and a content. The error is that of reading the content.
func signed(signature, secret string, content io.Reader) (bool, error) {
	method, text, _ := strings.Cut(signature, "=")
	got, err := hex.DecodeString(text)
	if signatures[method] == nil || err != nil {
		return false, nil
	}
	m := hmac.New(signatures[method], []byte(secret))
	if _, err := io.Copy(m, content); err != nil {
		return false, err
	}
	return hmac.Equal(got, m.Sum(nil)), nil
}
