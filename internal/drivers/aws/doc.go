// Package aws opens a deployment on Amazon Web Services: standard queues of SQS, a table of DynamoDB and a
// bucket of S3. It uses gocloud's drivers, and the AWS clients where those fall short; ADR 19 gives the
// reasons.
//
// [Parse] reads the URL that names a deployment, and [Open] opens it. Credentials, endpoints and a region that
// the URL does not name come from the SDK's standard environment and files. All calls go through one layer
// (wire.go). It meters each attempt as AWS bills it, and adds to an error what an operator can do.
//
// The table has the name of the deployment. A queue has it as a prefix, as in NAME-mailbox-00000.
package aws
