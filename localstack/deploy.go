package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/orbweaver/orbweaver/internal/lambdalocal"
)

// deployment describes the deployment under test.
type deployment struct {
	name, bucket, platform string
	terraform              bool
	work                   string // folder of its state
}

const (
	partitions  = 4
	mailboxes   = 8 // room to grow
	concurrency = 3 // fewer than partitions: some wait for a free function
	tickEvery   = 2 * time.Second
	stepTime    = 24 * time.Second // less than deployed, so that steps end because their time is up; 4 s of it are for the last commit
	indexTime   = 30 * time.Second // likewise; longer, because a process of a busy machine may pause for ten seconds
	visibility  = "15"             // of mail, in seconds: how long the mail of a killed step waits
)

// deployed lists the functions that Terraform deploys.
var deployed = []string{"fetch", "coordinate", "intake", "index", "rank", "query"}

// forTests are variables of the functions that make the scenario short.
var forTests = map[string]string{"ORBWEAVER_RETRY_WAIT": "200ms", "ORBWEAVER_LEASE": "12s"}

// build makes bin/orbweaver and the functions' zips with the targets that users call.
func build(ctx context.Context, w *world) (map[string]any, error) {
	if _, err := w.command(ctx, nil, "make", "build", "functions", "ARCH="+runtime.GOARCH); err != nil {
		return nil, err
	}
	figures := map[string]any{}
	for _, f := range deployed {
		info, err := os.Stat(filepath.Join(w.root, "bin", "functions", f+".zip"))
		if err != nil {
			return nil, err
		}
		figures[f+"_zip_mb"] = float64(info.Size()>>10) / 1024
	}
	return figures, nil
}

// function is the configuration of a function.
type function struct {
	timeout time.Duration
	memory  int
	env     map[string]string
	loop    string // setting for recursive loops; "": Lambda's default
}

// deploy deploys to the emulators with Terraform, or with the SDK if there is no Terraform, and starts the
// triggers of the functions.
func deploy(ctx context.Context, w *world) (map[string]any, error) {
	w.deployed = deployment{name: fmt.Sprintf("e2e-%x", time.Now().Unix()), work: filepath.Join(w.dir, "terraform")}
	d := &w.deployed
	var functions map[string]function
	var err error
	how := "by Terraform"
	if w.set.Moto == "" {
		w.skip("Terraform: no moto runs, which holds the functions")
	} else {
		functions, err = w.apply(ctx)
		var exit *exec.ExitError
		if d.terraform = err == nil; errors.As(err, &exit) && exit.ExitCode() == 3 {
			w.skip("Terraform: %v", err) // Terraform is not installed
		} else if err != nil {
			return nil, err
		}
	}
	if !d.terraform {
		how = "by the SDK"
		if functions, err = w.create(ctx); err != nil {
			return nil, err
		}
	}
	for name, f := range functions {
		maps.Copy(f.env, forTests)
		switch name {
		case "index":
			f.timeout = indexTime
		case "fetch", "rank":
			f.timeout = stepTime
		}
		functions[name] = f
	}
	return map[string]any{"how": how, "platform": d.platform}, w.drive(ctx, functions)
}

// drive starts the triggers of the functions as in the cloud, with a faster schedule. The mappings' settings
// are those of the Terraform files.
func (w *world) drive(ctx context.Context, functions map[string]function) (err error) {
	opened := map[string]*lambdalocal.Function{}
	for name, f := range functions {
		opened[name], err = w.open(lambdalocal.Config{
			Name: name, Bootstrap: filepath.Join(w.root, "bin", "functions", name, "bootstrap"), MemoryMB: f.memory, Timeout: f.timeout, Env: f.env, Concurrency: 20, RecursiveLoop: f.loop,
		})
		if err != nil {
			return err
		}
	}
	address, done := page(lambdalocal.URL{Function: opened["query"]})
	w.searchURL, w.opened = address, append(w.opened, done)
	return w.begin(ctx, map[string]lambdalocal.Mapping{
		"wakes":  {QueueURL: w.queueURL("wakes"), Function: opened["fetch"], BatchSize: 1, MaximumConcurrency: concurrency},
		"intake": {QueueURL: w.queueURL("intake"), Function: opened["intake"], BatchSize: 10, MaximumConcurrency: 2, ReportBatchItemFailures: true},
		"index":  {QueueURL: w.queueURL("index"), Function: opened["index"], BatchSize: 1, MaximumConcurrency: 2},
		"rank":   {QueueURL: w.queueURL("rank"), Function: opened["rank"], BatchSize: 1, MaximumConcurrency: 2},
	}, lambdalocal.Schedule{Function: opened["coordinate"], Every: tickEvery})
}

// page serves a handler on loopback.
func page(h http.Handler) (address string, done func()) {
	s := httptest.NewServer(h)
	return s.URL, s.Close
}

func (w *world) queueURL(queue string) string {
	return w.set.AWS + "/000000000000/" + w.deployed.name + "-" + queue
}

// emulated runs the program that applies the Terraform files to emulators.
func (w *world) emulated(ctx context.Context, verb string) (string, error) {
	program, err := w.program(ctx, "./infra/emulated")
	if err != nil {
		return "", err
	}
	return w.command(ctx, nil, program, "-name", w.deployed.name, "-work", w.deployed.work,
		"-var", fmt.Sprintf("partitions=%d", partitions), "-var", fmt.Sprintf("mailboxes=%d", mailboxes), "-var", fmt.Sprintf("max_concurrency=%d", concurrency),
		"-var", `allow_net=["127.0.0.0/8"]`, "-var", "timeout_s=60", "-var", "mailbox_visibility_s="+visibility, verb)
}

// apply deploys with Terraform, and reads back the configuration of the functions.
func (w *world) apply(ctx context.Context) (map[string]function, error) {
	for _, verb := range []string{"apply", "account"} {
		if _, err := w.emulated(ctx, verb); err != nil {
			return nil, err
		}
	}
	d := &w.deployed
	read := func(file string, to any) error {
		text, err := os.ReadFile(filepath.Join(d.work, file))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, to)
	}
	var profile struct{ Platform, Bucket string }
	var chains map[string]string
	if err := errors.Join(read(d.name+".json", &profile), read(d.name+".chains.json", &chains)); err != nil {
		return nil, err
	}
	d.platform, d.bucket = profile.Platform, profile.Bucket
	out := map[string]function{}
	for _, name := range deployed {
		var got struct {
			Timeout     int
			MemorySize  int
			Environment struct{ Variables map[string]string }
		}
		if err := w.askMoto(ctx, "/2015-03-31/functions/"+d.name+"-"+name+"/configuration", &got); err != nil {
			return nil, err
		}
		out[name] = function{time.Duration(got.Timeout) * time.Second, got.MemorySize, got.Environment.Variables, chains[d.name+"-"+name]}
	}
	return out, nil
}

// askMoto reads from the emulator of Lambda, which chooses the service by the signature's scope and does not
// check the signature.
func (w *world) askMoto(ctx context.Context, path string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.set.Moto+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+region+"/lambda/aws4_request, SignedHeaders=host, Signature=none")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(to)
}

// create creates the resources that the functions need with the SDK.
func (w *world) create(ctx context.Context) (map[string]function, error) {
	d := &w.deployed
	d.bucket = d.name + "-bucket"
	d.platform = fmt.Sprintf("aws://%s?bucket=%s&partitions=%d&mailboxes=%d&region=%s", d.name, d.bucket, partitions, mailboxes, region)
	queues := map[string]string{"wakes": "360", "intake": "360", "index": "360", "rank": "360", "dead-letters": "30"}
	for p := range mailboxes {
		queues[fmt.Sprintf("mailbox-%05d", p)] = visibility
	}
	for q, seconds := range queues {
		if _, err := w.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(d.name + "-" + q), Attributes: map[string]string{
			"VisibilityTimeout": seconds,
		}}); err != nil {
			return nil, err
		}
	}
	arn := "arn:aws:sqs:" + region + ":000000000000:" + d.name + "-"
	for _, q := range []string{"wakes", "intake", "index", "rank"} {
		if _, err := w.queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: aws.String(w.queueURL(q)), Attributes: map[string]string{
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%sdead-letters","maxReceiveCount":"5"}`, arn),
		}}); err != nil {
			return nil, err
		}
	}
	if _, err := w.bucket.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &d.bucket}); err != nil {
		return nil, err
	}
	if _, err := w.bucket.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{
		Bucket: &d.bucket,
		NotificationConfiguration: &s3types.NotificationConfiguration{QueueConfigurations: []s3types.QueueConfiguration{{
			QueueArn: aws.String(arn + "intake"), Events: []s3types.Event{"s3:ObjectCreated:*"},
			Filter: &s3types.NotificationConfigurationFilter{Key: &s3types.S3KeyFilter{FilterRules: []s3types.FilterRule{{
				Name: s3types.FilterRuleNamePrefix, Value: aws.String("lists/"),
			}}}},
		}}},
	}); err != nil {
		return nil, err
	}
	_, err := w.table.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &d.name, BillingMode: dynamotypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamotypes.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: dynamotypes.ScalarAttributeTypeS}},
		KeySchema:            []dynamotypes.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: dynamotypes.KeyTypeHash}},
	})
	if err != nil {
		return nil, err
	}
	out := map[string]function{}
	for _, name := range deployed {
		memory := 512
		if name == "index" || name == "rank" || name == "query" {
			memory = 1024
		}
		out[name] = function{time.Minute, memory, map[string]string{
			"ORBWEAVER_PLATFORM": d.platform, "ORBWEAVER_ALLOW_NET": "127.0.0.0/8",
		}, lambdalocal.Allow}
	}
	return out, nil
}

// destroy removes the deployment.
func destroy(ctx context.Context, w *world) (map[string]any, error) {
	w.halt()
	if !w.deployed.terraform {
		w.skip("terraform destroy: it was not deployed by Terraform")
		return nil, nil
	}
	_, err := w.emulated(ctx, "destroy")
	return nil, err
}
