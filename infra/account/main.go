// Command account does the work in an AWS account that infra/cloud needs and Terraform does not do:
//
//	account whoami                         print the account and the region
//	account state BUCKET                   create the bucket of Terraform's state, unless it exists
//	account grant FUNCTION public|none     let everybody invoke a function through its address, or nobody
//	account rollback NAME RELEASES         let the functions run the release before the current one
//	account restore-table FROM TO TIME     restore a table of that moment under another name
//	account restore-bucket FROM TO TIME    copy what a bucket contained at that moment to another bucket
//
// Credentials, region and endpoints come from the SDK's standard environment and files. Every verb can be
// repeated: it completes an interrupted run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "usage: account whoami | state BUCKET | grant FUNCTION public|none | rollback NAME RELEASES |\n"+
			"  restore-table FROM TO TIME | restore-bucket FROM TO TIME")
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "account: "+err.Error())
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong use")

// account is the AWS account of the credentials.
type account struct {
	cfg aws.Config
	out io.Writer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if cfg.Region == "" {
		return errors.New("no region is set: give REGION=eu-central-1, or set AWS_REGION, or a region in the profile")
	}
	a := &account{cfg: cfg, out: out}
	switch {
	case len(args) == 1 && args[0] == "whoami":
		return a.whoami(ctx)
	case len(args) == 2 && args[0] == "state":
		return a.state(ctx, args[1])
	case len(args) == 3 && args[0] == "grant" && (args[2] == "public" || args[2] == "none"):
		return a.grant(ctx, args[1], args[2] == "public")
	case len(args) == 3 && args[0] == "rollback":
		return a.rollback(ctx, args[1], args[2])
	case len(args) != 4:
		return errUsage
	}
	restore, ok := map[string]func(ctx context.Context, from, to string, at time.Time) error{
		"restore-table": a.restoreTable, "restore-bucket": a.restoreBucket,
	}[args[0]]
	if !ok {
		return errUsage
	}
	at, err := moment(args[3], time.Now())
	if err != nil {
		return err
	}
	return restore(ctx, args[1], args[2], at)
}

// moment reads a time of the past.
func moment(text string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return at, fmt.Errorf("time %q: write it as 2026-11-21T09:07:19Z", text)
	case !at.Before(now):
		return at, fmt.Errorf("time %s is not in the past", text)
	}
	return at, nil
}

func (a *account) whoami(ctx context.Context) error {
	got, err := sts.NewFromConfig(a.cfg).GetCallerIdentity(ctx, nil)
	if err != nil {
		return fmt.Errorf("AWS accepts no credentials from here: set AWS_PROFILE, or sign in (aws sso login, aws configure): %w", err)
	}
	fmt.Fprintln(a.out, aws.ToString(got.Account), a.cfg.Region)
	return nil
}

// bucket returns a client of S3. If an endpoint is set, as for emulators, the bucket is in the path.
func (a *account) bucket() *s3.Client {
	return s3.NewFromConfig(a.cfg, func(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
}

func (a *account) table() *dynamodb.Client { return dynamodb.NewFromConfig(a.cfg) }
