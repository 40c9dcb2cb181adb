package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrNoOwner says that no process at work takes requests, orders and changes for a folder.
var ErrNoOwner = errors.New("no process takes requests or orders")

// told are the errors that whoever asks an owner tells apart, by the status of the answer.
type told map[int]error

// post asks the process that works on the view's folder for something: what is JSON, or becomes
// it. The error is [ErrNoOwner] if there is none, or if it is ending and takes no more.
func post[Out any](ctx context.Context, v *View, path string, what any, known told) (out Out, err error) {
	s, ok := v.store.(*folderStore)
	if !ok || s.live(ctx) == nil {
		return out, ErrNoOwner
	}
	body, ok := what.([]byte)
	if !ok {
		if body, err = json.Marshal(what); err != nil {
			return out, err
		}
	}
	status, body, err := s.owner.do(ctx, http.MethodPost, path, body)
	switch {
	case err != nil:
		return out, err
	case known[status] != nil:
		return out, known[status]
	case status == http.StatusServiceUnavailable:
		return out, fmt.Errorf("%w: %.200s", ErrNoOwner, bytes.TrimSpace(body))
	case status == http.StatusNoContent:
		return out, nil
	case status != http.StatusOK:
		return out, fmt.Errorf("ask the folder's owner: %s: %.200s", http.StatusText(status), bytes.TrimSpace(body))
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("ask the folder's owner: %w", err)
	}
	return out, nil
}

// nothing is the answer where there is nothing to say.
type nothing struct{}

// answer answers what post asks for, a body of so many bytes at most: decode takes it apart, and do, which
// is nil where that is not taken, does it.
func answer[In, Out any](w http.ResponseWriter, r *http.Request, most int64, decode func([]byte) (In, error), do func(context.Context, In) (Out, error), known told) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var what In
	if err == nil {
		what, err = decode(body)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case do == nil:
		http.Error(w, r.URL.Path+" is not taken here", http.StatusServiceUnavailable)
		return
	}
	out, err := do(r.Context(), what)
	if err != nil {
		status := http.StatusServiceUnavailable
		for s, e := range known {
			if errors.Is(err, e) {
				status = s
			}
		}
		http.Error(w, err.Error(), status)
		return
	}
	if any(out) == any(nothing{}) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // whoever asked may be gone
}

// decodeOne decodes one JSON value with no fields but those of T.
func decodeOne[T any](body []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more than one JSON value")
		}
	}
	return v, err
}
