package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// alias is the alias of a function that all triggers start: see infra/aws/functions.
const alias = "live"

// lambda calls Lambda's API and returns the HTTP status. A status other than 2xx is an error unless also lists
// it. The four calls of this program are not worth another package of the SDK.
func (a *account) lambda(ctx context.Context, method, path string, in, out any, also ...int) (int, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	if in == nil {
		body = nil
	}
	req, err := http.NewRequestWithContext(ctx, method, lambdaEndpoint(a.cfg.Region)+"/2015-03-31/functions/"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	keys, err := a.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return 0, fmt.Errorf("credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hex.EncodeToString(sum[:]), "lambda", a.cfg.Region, time.Now()); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if slices.Contains(also, resp.StatusCode) {
		return resp.StatusCode, nil
	}
	if resp.StatusCode/100 != 2 {
		return 0, fmt.Errorf("%s: %.500s", resp.Status, answer)
	}
	if out == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(answer, out)
}

func lambdaEndpoint(region string) string {
	for _, name := range []string{"AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL"} {
		if e := os.Getenv(name); e != "" {
			return strings.TrimSuffix(e, "/")
		}
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	return "https://lambda." + region + "." + domain
}

// grant adds or removes the second of the two grants that a public address needs: to invoke the function
// through its address only. Terraform manages the first one.
func (a *account) grant(ctx context.Context, function string, public bool) error {
	const id, condition = "OrbweaverPublicSearch", "lambda:InvokedViaFunctionUrl"
	remove := func() error {
		_, err := a.lambda(ctx, http.MethodDelete, function+"/policy/"+id+"?Qualifier="+alias, nil, nil, http.StatusNotFound)
		if err != nil {
			return fmt.Errorf("remove the grant %s of %s: %w", id, function, err)
		}
		return nil
	}
	if !public {
		return remove()
	}
	var got struct{ Statement string }
	status, err := a.lambda(ctx, http.MethodPost, function+"/policy?Qualifier="+alias, map[string]any{
		"StatementId": id, "Action": "lambda:InvokeFunction", "Principal": "*", "InvokedViaFunctionUrl": true,
	}, &got, http.StatusConflict)
	if err != nil {
		return fmt.Errorf("add the grant %s to %s: %w", id, function, err)
	}
	// Without the condition everybody could invoke the function through Lambda's API.
	if status != http.StatusConflict && !strings.Contains(got.Statement, condition) {
		err := fmt.Errorf("this region does not know the condition %s: the page cannot be public, use SEARCH=iam", condition)
		if failed := remove(); failed != nil {
			err = fmt.Errorf("%w; and, which leaves the function open to everybody, %w", err, failed)
		}
		return err
	}
	return nil
}

// rollback points the alias of each function to its version in the release before the
// current one. Releases are the JSON of Terraform's output of that name, newest first.
func (a *account) rollback(ctx context.Context, name, releases string) error {
	var list []map[string]string
	if err := json.Unmarshal([]byte(releases), &list); err != nil {
		return fmt.Errorf("releases: %w", err)
	}
	if len(list) == 0 {
		return fmt.Errorf("no release of %s is known", name)
	}
	current := map[string]string{}
	for f := range list[0] {
		var got struct{ FunctionVersion string }
		if _, err := a.lambda(ctx, http.MethodGet, name+"-"+f+"/aliases/"+alias, nil, &got); err != nil {
			return fmt.Errorf("version of %s-%s: %w", name, f, err)
		}
		current[f] = got.FunctionVersion
	}
	target, err := before(list, current)
	if err != nil {
		return fmt.Errorf("roll back %s: %w", name, err)
	}
	for f, version := range current {
		to := list[target][f]
		if to == "" || to == version {
			continue // the release did not have it, or it did not change
		}
		if _, err := a.lambda(ctx, http.MethodPut, name+"-"+f+"/aliases/"+alias, map[string]string{"FunctionVersion": to}, nil); err != nil {
			return fmt.Errorf("roll back %s-%s to version %s: %w; repeat the rollback", name, f, to, err)
		}
		fmt.Fprintf(a.out, "%s-%s: version %s instead of %s\n", name, f, to, version)
	}
	return nil
}

// before returns the index of the release before the current one. If no release has the current versions,
// because a rollback was interrupted, it returns the target of that rollback.
func before(releases []map[string]string, current map[string]string) (int, error) {
	partial := 0
	for f, version := range current {
		if i := slices.IndexFunc(releases, func(r map[string]string) bool { return r[f] == version }); i > partial {
			partial = i
		}
	}
	for i, r := range releases {
		same := true
		for f, version := range current {
			same = same && (r[f] == version || r[f] == "")
		}
		if !same {
			continue
		}
		if i+1 == len(releases) {
			return 0, fmt.Errorf("the functions run the oldest of the %d releases that are known", len(releases))
		}
		return i + 1, nil
	}
	return partial, nil
}
