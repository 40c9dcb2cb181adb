package lambdalocal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// URL answers HTTP requests through a function, as a function URL in the mode BUFFERED does, with payloads of
// version 2.0 in both directions. It checks no authorization.
//
// Source: the Lambda developer guide, "Invoking Lambda function URLs", request and
// response payloads.
type URL struct {
	Function *Function
}

func (u URL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, err := u.event(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	payload, err := json.Marshal(event)
	if err != nil { // cannot happen: strings only
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	inv, err := u.Function.invoke(payload, r.Header.Get("X-Amzn-Trace-Id"))
	switch {
	case errors.Is(err, ErrThrottled):
		http.Error(w, "Rate Exceeded.", http.StatusTooManyRequests)
	case errors.Is(err, ErrTooLarge):
		http.Error(w, "Request Entity Too Large", http.StatusRequestEntityTooLarge)
	case err != nil || inv.Outcome != Succeeded:
		http.Error(w, "Internal Server Error", http.StatusBadGateway)
	default:
		respond(w, inv.Response)
	}
}

// event returns the input of the function for a request. Names of headers are in lower case, and repeated
// values are joined by commas. Cookies and binary bodies are left out, because no function needs them.
func (u URL) event(w http.ResponseWriter, r *http.Request) (e events.LambdaFunctionURLRequest, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	if err != nil {
		return e, err
	}
	e = events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host, "x-forwarded-proto": "https"}, Body: string(body),
	}
	for name, values := range r.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if query := r.URL.Query(); len(query) > 0 {
		e.QueryStringParameters = map[string]string{}
		for name, values := range query {
			e.QueryStringParameters[name] = strings.Join(values, ",")
		}
	}
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr // of a test
	}
	now := time.Now().UTC()
	e.RequestContext = events.LambdaFunctionURLRequestContext{
		AccountID: "anonymous", RequestID: newID(), APIID: u.Function.config.Name, DomainName: r.Host, DomainPrefix: u.Function.config.Name,
		Time: now.Format("02/Jan/2006:15:04:05 +0000"), TimeEpoch: now.UnixMilli(),
		HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{
			Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: address, UserAgent: r.UserAgent(),
		},
	}
	return e, nil
}

// respond writes the function's result: a response with a status, or any other JSON text as a body.
func respond(w http.ResponseWriter, response []byte) {
	status, header, body, err := readResponse(response)
	if err != nil {
		http.Error(w, "Internal Server Error", http.StatusBadGateway)
		return
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client may be gone
}

func readResponse(response []byte) (status int, header http.Header, body []byte, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(response, &fields) != nil || fields["statusCode"] == nil {
		return http.StatusOK, http.Header{"Content-Type": {"application/json"}}, bytes.TrimSpace(response), nil
	}
	var got events.LambdaFunctionURLResponse
	if err := json.Unmarshal(response, &got); err != nil {
		return 0, nil, nil, err
	}
	if got.StatusCode < 100 || got.StatusCode > 599 {
		return 0, nil, nil, fmt.Errorf("status %d", got.StatusCode)
	}
	body = []byte(got.Body)
	if got.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(got.Body); err != nil {
			return 0, nil, nil, err
		}
	}
	header = http.Header{"Content-Type": {"application/json"}}
	for name, value := range got.Headers {
		header.Set(name, value)
	}
	return got.StatusCode, header, body, nil
}
