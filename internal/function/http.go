package function

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Serve calls a handler with a request to the function's address, and returns its answer.
func Serve(ctx context.Context, h http.Handler, e events.LambdaFunctionURLRequest) events.LambdaFunctionURLResponse {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest}
		}
	}
	target := e.RawPath
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if e.RawQueryString != "" {
		target += "?" + e.RawQueryString
	}
	r, err := http.NewRequestWithContext(ctx, e.RequestContext.HTTP.Method, target, bytes.NewReader(body))
	if err != nil {
		return events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest}
	}
	r.RequestURI, r.RemoteAddr = target, e.RequestContext.HTTP.SourceIP
	for name, value := range e.Headers {
		r.Header.Set(name, value)
	}
	r.Host = r.Header.Get("Host")
	w := &recorder{header: http.Header{}}
	h.ServeHTTP(w, r)
	return w.response()
}

// recorder keeps what a handler writes.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// maxAnswer is the largest answer in bytes. Lambda allows 6 MB after escaping, which may double the size.
const maxAnswer = 3 << 20

func (w *recorder) response() events.LambdaFunctionURLResponse {
	w.WriteHeader(http.StatusOK)
	if w.body.Len() > maxAnswer {
		return events.LambdaFunctionURLResponse{
			StatusCode: http.StatusInternalServerError, Headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"},
			Body: "The answer is too large to be sent: request less.\n",
		}
	}
	out := events.LambdaFunctionURLResponse{StatusCode: w.status, Headers: map[string]string{}, Body: w.body.String()}
	for name, values := range w.header {
		out.Headers[name] = strings.Join(values, ",")
	}
	if !utf8.Valid(w.body.Bytes()) {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(w.body.Bytes()), true
	}
	return out
}
