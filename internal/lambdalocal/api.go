package lambdalocal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// routes returns the handler of the Runtime API of one instance.
func (i *instance) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", i.serveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) { i.serveReply(w, r, false) })
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) { i.serveReply(w, r, true) })
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", i.serveInitError)
	return mux
}

// serveNext reports that the runtime is ready, and answers when there is work.
func (i *instance) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case i.ready <- struct{}{}:
	case <-i.gone:
		return
	case <-r.Context().Done():
		return
	}
	select {
	case j := <-i.work:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", j.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(j.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Trace-Id", j.trace)
		h.Set("Lambda-Runtime-Invoked-Function-Arn", i.f.arn)
		w.Write(j.payload) //nolint:errcheck // reap notices a runtime that is gone
	case <-i.gone:
	}
}

// serveReply takes the function's reply to the current job. It refuses a second reply.
func (i *instance) serveReply(w http.ResponseWriter, r *http.Request, failed bool) {
	rep, err := readReply(w, r, failed)
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequest", err.Error())
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case r.PathValue("id") != i.current:
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "this is not the invocation at work")
	case i.reply != nil:
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "the invocation has a reply already")
	default:
		i.reply = rep
		if rep.errorType == tooLarge {
			refuse(w, http.StatusRequestEntityTooLarge, tooLarge, rep.errorMessage)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

func (i *instance) serveInitError(w http.ResponseWriter, r *http.Request) {
	rep, err := readReply(w, r, true)
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequest", err.Error())
		return
	}
	i.mu.Lock()
	i.initErr = rep
	i.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

const tooLarge = "Function.ResponseSizeTooLarge"

// readReply reads a body of at most 6 MB. A larger one is a failure of the invocation.
func readReply(w http.ResponseWriter, r *http.Request, failed bool) (*reply, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &reply{failed: true, errorType: tooLarge, errorMessage: "the response is larger than 6 MB"}, nil
	case err != nil:
		return nil, err
	}
	rep := &reply{failed: failed, body: body}
	if failed {
		rep.errorType, rep.errorMessage = describe(body)
	}
	return rep, nil
}

// describe reads the error that a runtime posts, a JSON object with errorType and errorMessage. It quotes any
// other body.
func describe(body []byte) (errorType, message string) {
	var e struct {
		ErrorType    string `json:"errorType"`
		ErrorMessage string `json:"errorMessage"`
	}
	if json.Unmarshal(body, &e) != nil {
		return "Runtime.Unknown", fmt.Sprintf("%.200q", body)
	}
	return e.ErrorType, e.ErrorMessage
}

func refuse(w http.ResponseWriter, status int, errorType, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"errorType": errorType, "errorMessage": message}) //nolint:errcheck // the status says it
}
