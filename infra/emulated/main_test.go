package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestOnlyLoopback checks that nothing runs without endpoints, or with one that is not on loopback.
func TestOnlyLoopback(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string // in the error; "" for none
	}{
		{nil, "is set"},
		{[]string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566"}, ""},
		{[]string{"AWS_ENDPOINT_URL=http://localhost:4566", "AWS_ENDPOINT_URL_DYNAMODB=http://[::1]:8000"}, ""},
		{[]string{"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:4566"}, "AWS_ENDPOINT_URL_BUDGETS"},
		{[]string{"AWS_ENDPOINT_URL=http://127.0.0.1:4566", "AWS_ENDPOINT_URL_SQS=https://sqs.us-east-1.amazonaws.com"}, "SQS"},
		{[]string{"AWS_ENDPOINT_URL=http://127.0.0.1.example.org"}, "no address of loopback"},
		{[]string{"AWS_ENDPOINT_URL=127.0.0.1:4566"}, "no address of loopback"},
	} {
		_, err := environment(c.env)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.env, err, c.want)
		}
	}
}

// TestMotoURL checks that one variable is enough for moto, and that more specific ones take precedence.
func TestMotoURL(t *testing.T) {
	env, err := environment([]string{
		"AWS_ENDPOINT_URL=http://127.0.0.1:1", "ORBWEAVER_MOTO_URL=http://127.0.0.1:2", "AWS_ENDPOINT_URL_SNS=http://127.0.0.1:3",
	})
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]string{"SQS": "1", "LAMBDA": "2", "SCHEDULER": "2", "SNS": "3"} {
		if got := endpoint(env, service); got != "http://127.0.0.1:"+want {
			t.Errorf("%s is at %s", service, got)
		}
	}
}

// TestNoWayToAnAccount checks that variables that lead to credentials or past the endpoints are dropped.
func TestNoWayToAnAccount(t *testing.T) {
	env, err := environment([]string{
		"PATH=/bin", "AWS_PROFILE=work", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", "AWS_ACCESS_KEY_ID=AKIA",
		"AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_REGION=eu-west-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"PATH": "/bin", "AWS_PROFILE": "", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "", "AWS_ACCESS_KEY_ID": "test",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_REGION": "eu-west-1",
	} {
		if got := get(env, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

const table = `{"address": "module.storage.aws_dynamodb_table.records", "mode": "managed", "change": {"actions": ["update"],
  "before": {"name": "a", "tags_all": {}}, "after": {"name": "a", "tags_all": {"orbweaver": "a"}}, "after_unknown": {"ttl": [{}]}}}`

// TestJudge checks that only listed differences are accepted.
func TestJudge(t *testing.T) {
	for _, c := range []struct{ resources, want string }{
		{table, ""},
		{`{"address": "a", "mode": "managed", "change": {"actions": ["no-op"]}}`, ""},
		{`{"address": "data.a", "mode": "data", "change": {"actions": ["read"]}}`, ""},
		{strings.Replace(table, `"name": "a"`, `"name": "b"`, 1), "would update module.storage.aws_dynamodb_table.records (name,tags_all)"},
		{strings.Replace(table, `"update"`, `"delete", "create"`, 1), "would delete and create module.storage.aws_dynamodb_table.records (tags_all)"},
		{strings.Replace(table, `"ttl": [{}]`, `"arn": true`, 1), "would update module.storage.aws_dynamodb_table.records (arn,tags_all)"},
		{table + `, {"address": "b", "mode": "managed", "change": {"actions": ["create"], "after": {"x": 1}}}`, "would create b (x)"},
	} {
		found, err := changes([]byte(`{"format_version": "1.2", "resource_changes": [` + c.resources + `]}`))
		if err != nil {
			t.Errorf("%s: %v", c.resources, err)
			continue
		}
		if got := strings.Join(judge(io.Discard, found), "; "); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.resources, got, c.want)
		}
	}
	for _, bad := range []string{"", "{}", `{"format_version": "1.2"}`, `{"format_version": "2.0", "resource_changes": [` + table + `]}`} {
		if _, err := changes([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a plan", bad)
		}
	}
}

// TestRecursion reads the settings for recursive loops from a plan.
func TestRecursion(t *testing.T) {
	const chains = `{"address": "module.functions.aws_lambda_function_recursion_config.chains[\"%[1]s\"]", "mode": "managed",
		"change": {"actions": ["create"], "after": {"function_name": "n-%[1]s", "recursive_loop": "Allow"}}}, `
	found, err := changes(fmt.Appendf(nil, `{"format_version": "1.2", "resource_changes": [`+chains+`%s]}`, "fetch", table))
	if err != nil {
		t.Fatal(err)
	}
	if got := recursion(found); len(got) != 1 || got["n-fetch"] != "Allow" {
		t.Errorf("%v", got)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"plan"}, {"apply", "destroy"}, {"-var", "a=b", "apply"}} {
		if err := run(context.Background(), args, io.Discard); err == nil || !strings.Contains(err.Error(), errUsage.Error()) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
