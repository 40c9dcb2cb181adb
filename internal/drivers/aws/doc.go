// Package aws opens a deployment on Amazon Web Services: standard queues of SQS, a
// table of DynamoDB and a bucket of S3, through gocloud's drivers, and through their
// clients where those fall short. ADR 19 says where, and why.
//
// [Parse] reads the URL that names a deployment, and [Open] opens it. Credentials, endpoints and a region that
// the URL does not name come from the SDK's standard environment and files. Every try of every call goes through
// one layer (wire.go), which meters what it is billed as and adds to its error what an operator can do.
//
// The table has the name of the deployment. A queue has it as a prefix, as in NAME-mailbox-00000.
package aws
