package feed

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The bounds of a webhook.
const (
	callTimeout  = 30 * time.Second // of one request, with its answer
	maxAnswer    = 64 << 10         // bytes of an answer's header, and of its body, that are read
	minSecret    = 24               // bytes, as Standard Webhooks has them
	maxSecret    = 64
	secretPrefix = "whsec_"
)

// SecretVariable names the environment variable with the secret of a webhook. It is no flag, because other users see flags.
const SecretVariable = "ORBWEAVER_WEBHOOK_SECRET"

// Webhook posts batches of events to a URL, signed as Standard Webhooks 1.0.0 says: the header webhook-signature has "v1," and
// the base64 of HMAC-SHA256 over "ID.TIMESTAMP.BODY". The body is {"type": "pages", "timestamp": T, "data": [EVENT, ...]}.
// It follows no redirect, so that nobody else than the URL's owner receives an event.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
}

// NewWebhook returns the webhook at a URL. secret is "whsec_" and the base64 of 24 to 64 bytes.
func NewWebhook(address, secret string) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("a webhook needs a whole URL, such as https://example.org/hook")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || !strings.HasPrefix(secret, secretPrefix) || len(key) < minSecret || len(key) > maxSecret {
		return nil, fmt.Errorf("the secret of the webhook, in $%s, must be %s and the base64 of %d to %d bytes", SecretVariable, secretPrefix, minSecret, maxSecret)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxAnswer
	return &Webhook{url: address, secret: key, client: &http.Client{
		Transport: transport, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// send posts a batch. All attempts to send it have the same id.
func (w *Webhook) send(ctx context.Context, events []Event) error {
	now := time.Now()
	body, err := json.Marshal(struct {
		Type string    `json:"type"`
		Time time.Time `json:"timestamp"`
		Data []Event   `json:"data"`
	}{"pages", now.UTC().Truncate(time.Second), events})
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	sum := sha256.Sum256([]byte(events[0].Cursor + " " + events[len(events)-1].Cursor))
	id, at := "msg_"+hex.EncodeToString(sum[:16]), strconv.FormatInt(now.Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", w.sign(id, at, body))
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // only a connection whose answer was read is used again
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 3:
		return fmt.Errorf("%w: it redirects (%s); give the URL that it redirects to", errFinal, resp.Status)
	case code == http.StatusGone:
		return fmt.Errorf("%w: it wants no more events (%s)", errFinal, resp.Status)
	}
	return fmt.Errorf("it answers %s", resp.Status)
}

// sign returns the signature of a message.
func (w *Webhook) sign(id, at string, body []byte) string {
	mac := hmac.New(sha256.New, w.secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
