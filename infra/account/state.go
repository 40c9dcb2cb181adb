package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// state creates the bucket of Terraform's state, closed to the public. It keeps versions, because without its
// state Terraform does not know what it created.
func (a *account) state(ctx context.Context, name string) error {
	client := a.bucket()
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	var missing *types.NotFound
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &missing):
		return fmt.Errorf("look for the bucket of the state, %s: %w", name, err)
	}
	in := &s3.CreateBucketInput{Bucket: &name}
	if a.cfg.Region != "us-east-1" { // S3 refuses its default as an argument
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(a.cfg.Region)}
	}
	if _, err := client.CreateBucket(ctx, in); err != nil {
		return fmt.Errorf("create the bucket of the state, %s: %w", name, err)
	}
	if _, err := client.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{Bucket: &name, PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
		BlockPublicAcls: aws.Bool(true), BlockPublicPolicy: aws.Bool(true), IgnorePublicAcls: aws.Bool(true), RestrictPublicBuckets: aws.Bool(true),
	}}); err != nil {
		return fmt.Errorf("close %s to the public: %w", name, err)
	}
	if _, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{
		Status: types.BucketVersioningStatusEnabled,
	}}); err != nil {
		return fmt.Errorf("let %s keep versions: %w", name, err)
	}
	fmt.Fprintln(a.out, "created "+name+", which keeps the state of Terraform")
	return nil
}
