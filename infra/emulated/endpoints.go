package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// services lists the services that the deployment uses, by the last part of the environment variable that names
// the endpoint.
var services = []string{
	"BUDGETS", "CLOUDWATCH", "CLOUDWATCH_LOGS", "DYNAMODB", "IAM", "LAMBDA", "S3", "SCHEDULER", "SNS", "SQS", "STS",
}

// environment returns the environment of Terraform: env without the variables that could lead to an account.
// ORBWEAVER_MOTO_URL is the endpoint of the services that only moto has. If a service has no endpoint on
// loopback, environment returns an error.
func environment(env []string) ([]string, error) {
	drop := []string{
		"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TF_DATA_DIR", "TF_WORKSPACE",
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.Contains(drop, key)
	})
	if moto := get(env, "ORBWEAVER_MOTO_URL"); moto != "" {
		for _, s := range []string{"BUDGETS", "CLOUDWATCH", "LAMBDA", "SCHEDULER", "SNS"} {
			if get(env, "AWS_ENDPOINT_URL_"+s) == "" {
				env = append(env, "AWS_ENDPOINT_URL_"+s+"="+moto)
			}
		}
	}
	for _, s := range services {
		e := endpoint(env, s)
		if e == "" {
			return nil, fmt.Errorf("%w: neither AWS_ENDPOINT_URL_%s nor AWS_ENDPOINT_URL is set", errUsage, s)
		}
		u, err := url.Parse(e)
		if err != nil || !loopback(u.Hostname()) {
			return nil, fmt.Errorf("%w: the endpoint of %s is %q, which is no address of loopback", errUsage, s, e)
		}
	}
	return append(env,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION="+cmp.Or(get(env, "AWS_REGION"), "us-east-1"),
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true",
		"TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"), nil
}

// get returns the value of a variable. If there are several, the last one counts, as for a process.
func get(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

func endpoint(env []string, service string) string {
	return cmp.Or(get(env, "AWS_ENDPOINT_URL_"+service), get(env, "AWS_ENDPOINT_URL"))
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// functions lists the deployed functions, and triggers the queues that start some of them.
var (
	functions = []string{"fetch", "coordinate", "intake", "index", "rank", "query"}
	triggers  = []string{"wakes", "intake", "index", "rank"}
)

// account is the account to which LocalStack maps the key "test".
const account = "000000000000"

// shadow creates the queues and roles without which moto refuses mappings and functions. They are empty and
// have the names of the real ones, which are in another emulator. Nothing may ever be sent to those queues:
// moto would call Docker to run the function.
func (d *deployment) shadow(ctx context.Context) error {
	if d.moto == endpoint(d.env, "SQS") {
		return nil // one emulator holds both
	}
	for _, q := range triggers {
		got, err := d.ask(ctx, "sqs", url.Values{"Action": {"CreateQueue"}, "Version": {"2012-11-05"}, "QueueName": {d.name + "-" + q}})
		if err != nil {
			return err
		}
		if !strings.Contains(got, "/"+account+"/") {
			return fmt.Errorf("the emulator of Lambda answers for another account than %s: start moto with MOTO_ACCOUNT_ID=%[1]s", account)
		}
	}
	for _, r := range functions {
		_, err := d.ask(ctx, "iam", url.Values{"Action": {"CreateRole"}, "Version": {"2010-05-08"}, "RoleName": {d.role(r)}, "AssumeRolePolicyDocument": {"{}"}})
		if err != nil && !strings.Contains(err.Error(), "EntityAlreadyExists") {
			return err
		}
	}
	return nil
}

// unshadow deletes the queues and roles that shadow created.
func (d *deployment) unshadow(ctx context.Context) error {
	if d.moto == endpoint(d.env, "SQS") {
		return nil
	}
	for _, q := range triggers {
		_, err := d.ask(ctx, "sqs", url.Values{"Action": {"DeleteQueue"}, "Version": {"2012-11-05"}, "QueueUrl": {d.moto + "/" + account + "/" + d.name + "-" + q}})
		if err != nil {
			return err
		}
	}
	for _, r := range functions {
		if _, err := d.ask(ctx, "iam", url.Values{"Action": {"DeleteRole"}, "Version": {"2010-05-08"}, "RoleName": {d.role(r)}}); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) role(function string) string { return d.name + "-" + d.region + "-" + function }

// ask calls moto, which chooses the service by the signature's scope and does not check the signature.
func (d *deployment) ask(ctx context.Context, service string, form url.Values) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.moto+"/", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+d.region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=none")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("shadows in the emulator of Lambda: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("shadows in the emulator of Lambda: %s: %s: %.300s", form.Get("Action"), resp.Status, b)
	}
	return string(b), err
}
