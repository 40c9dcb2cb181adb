//go:build gcp

// Command google is the deployable function of Google Cloud: a server of HTTP for Cloud Run, in a container image of its own. Its
// argument selects what it serves:
//
//	google work    POST /fetch /index /rank: messages of Cloud Tasks
//	               POST /intake: messages that Pub/Sub pushes
//	               POST /coordinate: Cloud Scheduler, once a minute
//	google query   GET / and /search.json: searches, as a service of its own because it may be public
//
// It reads the environment of package function, and PORT. It does one piece of work at a time, so the service needs a
// concurrency of 1. Requests for work have a token of the account in the platform's URL, which the function itself
// verifies. So the service should not check callers by IAM, because Cloud Run may then remove the signatures of tokens.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"google.golang.org/api/idtoken"

	"github.com/orbweaver/orbweaver/internal/drivers/gcp"
	"github.com/orbweaver/orbweaver/internal/function"
)

// The file is not main.go: "make functions" builds each main.go for AWS.
func main() {
	log.SetFlags(0)
	log.Fatal(serve(os.Args[1:]))
}

func serve(args []string) error {
	var h http.Handler
	switch {
	case len(args) == 1 && args[0] == "query":
		h = queries(function.New(gcp.Open))
	case len(args) == 1 && args[0] == "work":
		keys, err := idtoken.NewValidator(context.Background())
		if err != nil {
			return fmt.Errorf("prepare the validation of tokens: %w", err)
		}
		w := &worker{keys: keys, log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
		if w.audience, w.account, err = gcp.Caller(os.Getenv("ORBWEAVER_PLATFORM")); err != nil {
			return err
		}
		w.function = function.New(gcp.Open, w.prepare)
		h = w.handler()
	default:
		return errors.New("usage: google work | google query")
	}
	// Cloud Run ends requests at their time limit. It ends the process between requests, when nothing is at work.
	s := &http.Server{Addr: ":" + cmp.Or(os.Getenv("PORT"), "8080"), Handler: h, ReadHeaderTimeout: 10 * time.Second}
	return s.ListenAndServe()
}
