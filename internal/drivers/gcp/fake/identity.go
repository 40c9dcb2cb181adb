//go:build gcp

package fake

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"time"
)

// Identity signs tokens as Google does. As a transport it answers each request with its public key, so a client with it
// accepts its tokens.
type Identity struct{ key *rsa.PrivateKey }

// NewIdentity returns an identity with a new key.
func NewIdentity() (*Identity, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return &Identity{key}, err
}

// Claims are the contents of a token.
type Claims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	Email    string `json:"email"`
	Verified bool   `json:"email_verified"`
	Expires  int64  `json:"exp"`
}

// Claim returns the claims of a token for a service account, which expires in an hour.
func Claim(email, audience string) Claims {
	return Claims{"https://accounts.google.com", audience, email, true, time.Now().Add(time.Hour).Unix()}
}

var raw = base64.RawURLEncoding

// Token signs claims.
func (i *Identity) Token(c Claims) string {
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and numbers only
	}
	text := raw.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT","kid":"fake"}`)) + "." + raw.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // the key is long enough
	}
	return text + "." + raw.EncodeToString(signature)
}

// RoundTrip answers with the public key, as a set of JSON Web Keys.
func (i *Identity) RoundTrip(r *http.Request) (*http.Response, error) {
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kid": "fake", "kty": "RSA", "alg": "RS256", "use": "sig",
		"n": raw.EncodeToString(i.key.N.Bytes()), "e": raw.EncodeToString(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(set)), Request: r}, nil
}
