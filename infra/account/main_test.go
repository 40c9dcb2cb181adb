package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fake answers this program's calls about aliases and one policy as Lambda does.
type fake struct {
	aliases map[string]string // version by function
	policy  map[string]string // statement by id
	old     bool              // the API lacks InvokedViaFunctionUrl
	calls   []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.calls = append(f.calls, r.Method+" "+r.URL.RequestURI())
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/2015-03-31/functions/"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	var in map[string]any
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	switch {
	case path[1] == "aliases" && f.aliases[path[0]] == "":
		http.Error(w, "no such function", http.StatusNotFound)
	case path[1] == "aliases":
		if r.Method == http.MethodPut {
			f.aliases[path[0]] = in["FunctionVersion"].(string)
		}
		fmt.Fprintf(w, `{"FunctionVersion": %q}`, f.aliases[path[0]])
	case r.Method == http.MethodPost && f.policy[in["StatementId"].(string)] != "":
		http.Error(w, "it exists", http.StatusConflict)
	case r.Method == http.MethodPost:
		if statement := `{"Action": "lambda:InvokeFunction"}`; f.old {
			f.policy[in["StatementId"].(string)] = statement
		} else if in["InvokedViaFunctionUrl"] == true {
			f.policy[in["StatementId"].(string)] = `{"Condition": {"Bool": {"lambda:InvokedViaFunctionUrl": "true"}}}`
		}
		fmt.Fprintf(w, `{"Statement": %q}`, f.policy[in["StatementId"].(string)])
	case f.policy[path[2]] == "":
		http.Error(w, "no such statement", http.StatusNotFound)
	default:
		delete(f.policy, path[2])
		w.WriteHeader(http.StatusNoContent)
	}
}

// run runs the program against the fake.
func (f *fake) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	s := httptest.NewServer(f)
	defer s.Close()
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL": s.URL, "AWS_ENDPOINT_URL_LAMBDA": "", "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(k, v)
	}
	var out bytes.Buffer
	err := run(t.Context(), args, &out)
	return out.String(), err
}

// TestRollback rolls back release by release. Functions that a release did not change stay.
func TestRollback(t *testing.T) {
	const releases = `[{"fetch": "5", "query": "2"}, {"fetch": "4", "query": "2"}, {"fetch": "3", "query": "1"}]`
	f := &fake{aliases: map[string]string{"name-fetch": "5", "name-query": "2"}}
	for _, want := range []map[string]string{{"name-fetch": "4", "name-query": "2"}, {"name-fetch": "3", "name-query": "1"}} {
		out, err := f.run(t, "rollback", "name", releases)
		if d := cmp.Diff(want, f.aliases); err != nil || d != "" || !strings.Contains(out, "name-fetch: version "+want["name-fetch"]+" instead of ") {
			t.Fatalf("%v, %q\n%s", err, out, d)
		}
	}
	if _, err := f.run(t, "rollback", "name", releases); err == nil || !strings.Contains(err.Error(), "the oldest of the 3 releases") {
		t.Errorf("back from the oldest: %v", err)
	}
	// An interrupted rollback is completed, and no release is skipped.
	f.aliases = map[string]string{"name-fetch": "3", "name-query": "2"}
	if _, err := f.run(t, "rollback", "name", releases); err != nil || f.aliases["name-query"] != "1" || f.aliases["name-fetch"] != "3" {
		t.Errorf("%v, %v", err, f.aliases)
	}
	for _, bad := range []string{`[]`, `{}`, `[{"gone": "1"}]`} {
		if _, err := f.run(t, "rollback", "name", bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// TestGrant adds and removes the grant several times. No grant may stay without its condition.
func TestGrant(t *testing.T) {
	f := &fake{policy: map[string]string{}}
	for _, who := range []string{"none", "public", "public", "none", "none"} {
		_, err := f.run(t, "grant", "name-query", who)
		if open := len(f.policy) == 1; err != nil || open != (who == "public") {
			t.Errorf("%s: %v, %v", who, err, f.policy)
		}
	}
	for _, c := range f.calls {
		if !strings.Contains(c, "name-query/policy") || !strings.HasSuffix(c, "?Qualifier=live") {
			t.Errorf("%s is not about the alias", c)
		}
	}
	f.old = true
	if _, err := f.run(t, "grant", "name-query", "public"); err == nil || !strings.Contains(err.Error(), "SEARCH=iam") || len(f.policy) > 0 {
		t.Errorf("%v, %v", err, f.policy)
	}
}

func TestContents(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 7, 19, 0, time.UTC)
	entries := []entry{
		{key: "kept", version: "1", time: at.Add(-time.Hour)},
		{key: "swept", version: "2", time: at.Add(time.Hour), deleted: true},
		{key: "swept", version: "1", time: at.Add(-time.Hour)},
		{key: "swept at once", version: "2", time: at.Add(time.Second), deleted: true},
		{key: "swept at once", version: "1", time: at.Add(-time.Hour)},
		{key: "gone", version: "2", time: at.Add(-time.Minute), deleted: true},
		{key: "gone", version: "1", time: at.Add(-time.Hour)},
		{key: "back", version: "3", time: at.Add(-time.Second)},
		{key: "back", version: "2", time: at.Add(-time.Minute), deleted: true},
		{key: "back", version: "1", time: at.Add(-time.Hour)},
		{key: "replaced", version: "3", time: at.Add(2 * time.Minute)},
		{key: "replaced", version: "2", time: at.Add(-time.Minute)},
		{key: "replaced", version: "1", time: at.Add(-time.Hour)},
		{key: "by another clock", version: "1", time: at.Add(30 * time.Second)},
		{key: "later", version: "1", time: at.Add(2 * time.Minute)},
	}
	got := map[string]string{}
	for _, e := range contents(entries, at) {
		got[e.key] = e.version
	}
	want := map[string]string{"kept": "1", "swept": "1", "swept at once": "1", "back": "3", "replaced": "2", "by another clock": "1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWrongUse(t *testing.T) {
	f := &fake{}
	for args, want := range map[string]string{
		"": "wrong use", "state": "wrong use", "grant name-query everybody": "wrong use", "restore-table a b": "wrong use",
		"restore-table a b yesterday":             "write it as 2026-",
		"restore-bucket a b 2999-01-01T00:00:00Z": "not in the past",
	} {
		if _, err := f.run(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	if err := run(t.Context(), []string{"whoami"}, io.Discard); err == nil || !strings.Contains(err.Error(), "REGION=eu-central-1") {
		t.Errorf("no region: %v", err)
	}
	if len(f.calls) > 0 {
		t.Errorf("wrong use called %v", f.calls)
	}
}
