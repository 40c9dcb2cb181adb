// Package aws opens a deployment on Amazon Web Services: standard queues of SQS, a
// table of DynamoDB and a bucket of S3, through gocloud's drivers, and through their
// clients where those fall short. ADR 19 says where, and why.
//
// [Parse] reads the URL that names a deployment, [Open] opens it. Credentials, endpoints
// and a region that the URL leaves out come from the SDK's standard environment and files. Every try of every
// call goes through one layer (wire.go) that tells the meter what it will be billed as,
// and what a failure means to whoever has to mend it.
//
// Names that all parts of a deployment agree on: the table has the deployment's name;
// its queues have it before their own, as in NAME-mailbox-00000.
package aws
