package aws

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Error codes of the services, grouped by their remedy. A cause has different codes in different services and
// protocols.
var (
	refusedCodes = []string{
		"AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "IncompleteSignatureException",
		"InvalidAccessKeyId", "InvalidClientTokenId", "InvalidSignatureException", "InvalidToken",
		"MissingAuthenticationTokenException", "RequestExpired", "SignatureDoesNotMatch", "UnrecognizedClientException",
	}
	deniedCodes  = []string{"AccessDenied", "AccessDeniedException", "Forbidden", "AllAccessDisabled"}
	noQueueCodes = []string{"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
	regionCodes  = []string{"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
)

// fault is an error of the deployment or its surroundings, not of one record or object. It does not unwrap to the
// SDK's error: gocloud would report a missing table or bucket as a missing record or object.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

// explain adds to the error of a call what is wrong and what to do. It leaves errors of one record or object,
// and temporary errors, as they are.
func (w *wire) explain(service string, input any, err error) error {
	l := w.location
	explained := func(format string, args ...any) error {
		return &fault{fmt.Sprintf(format, args...) + ": " + err.Error()}
	}
	var api smithy.APIError
	code := ""
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case slices.Contains(refusedCodes, code):
		return explained("AWS refuses the credentials; have they expired, are they of another account or endpoint, is the clock right?")
	case slices.Contains(deniedCodes, code):
		return explained("the credentials have no right to this; see the roles that make deploy sets up")
	case code == "ResourceNotFoundException" && service == dynamodb.ServiceID:
		return explained("there is no table %s in region %s of this account: is it another region or account, or not deployed yet (make deploy)?", l.Name, l.Region)
	case slices.Contains(noQueueCodes, code) && l.ofJobs(queueOf(input)):
		return explained("there is no queue %s in region %s: %s was deployed without an index; deploy it again with one (make deploy, variable index)",
			queueOf(input), l.Region, l.Name)
	case slices.Contains(noQueueCodes, code):
		return explained("there is no queue %s in region %s: deploy %s with as many mailboxes as the crawl has partitions (make deploy, variable mailboxes; it says %d now)",
			queueOf(input), l.Region, l.Name, l.Mailboxes)
	case code == "NoSuchBucket":
		return explained("there is no bucket %s: is its name right, is it deployed yet (make deploy)?", l.Bucket)
	case slices.Contains(regionCodes, code), service == s3.ServiceID && status(err) == http.StatusMovedPermanently:
		return explained("the bucket %s is in another region than %s", l.Bucket, l.Region)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%s cannot be reached; is there a network, is AWS_ENDPOINT_URL right? %w", service, err)
	}
	return err
}

func status(err error) int {
	var r *smithyhttp.ResponseError
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}

// queueOf returns the name of the queue that a call uses.
func queueOf(input any) string {
	var s *string
	switch p := input.(type) {
	case *sqs.GetQueueUrlInput:
		s = p.QueueName
	case *sqs.SendMessageBatchInput:
		s = p.QueueUrl
	case *sqs.ReceiveMessageInput:
		s = p.QueueUrl
	case *sqs.DeleteMessageBatchInput:
		s = p.QueueUrl
	case *sqs.ChangeMessageVisibilityBatchInput:
		s = p.QueueUrl
	}
	name := aws.ToString(s)
	return name[strings.LastIndexByte(name, '/')+1:]
}
