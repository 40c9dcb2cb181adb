//go:build gcp

package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// pushPause is the time between two looks into a queue.
const pushPause = 10 * time.Millisecond

// Pusher sends requests with tokens of an identity.
type Pusher struct {
	Client   *http.Client // leads the addresses of targets to their handlers
	Identity *Identity
}

// post reports whether the target has answered with a 2xx status. The end of a push does not end its requests.
func (p *Pusher) post(url string, headers map[string]string, body []byte, email, audience string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Authorization", "Bearer "+p.Identity.Token(Claim(email, audience)))
	answer, err := p.Client.Do(r)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode >= 200 && answer.StatusCode < 300
}

// Subscriber returns a client of the fake of Pub/Sub.
func (c *Cloud) Subscriber(ctx context.Context) (*pubsub.SubscriptionAdminClient, error) {
	return pubsub.NewSubscriptionAdminClient(ctx, option.WithEndpoint(c.queues.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
}

// Push posts the messages of a push subscription one at a time until ctx ends, and retries those that fail. Google's fake only
// stores where a subscription pushes to.
func (c *Cloud) Push(ctx context.Context, p *Pusher, subscription string) error {
	client, err := c.Subscriber(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	s, err := client.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: subscription})
	if err != nil {
		return err
	}
	target := s.PushConfig
	for wait(ctx, pushPause) {
		call := context.WithoutCancel(ctx)
		got, err := client.Pull(call, &pubsubpb.PullRequest{
			Subscription: subscription, MaxMessages: 1,
			ReturnImmediately: true, //nolint:staticcheck // deprecated; the push ends between two pulls
		})
		if err != nil {
			return fmt.Errorf("pull %s: %w", subscription, err)
		}
		for _, m := range got.ReceivedMessages {
			body, err := json.Marshal(map[string]any{
				"message": map[string]any{
					"data": m.Message.Data, "attributes": m.Message.Attributes, "messageId": m.Message.MessageId, "message_id": m.Message.MessageId,
					"publishTime": m.Message.PublishTime.AsTime().Format(time.RFC3339Nano),
				},
				"subscription": subscription,
			})
			if err != nil {
				return err
			}
			token, ids := target.GetOidcToken(), []string{m.AckId}
			if p.post(target.PushEndpoint, map[string]string{"Content-Type": "application/json"}, body, token.GetServiceAccountEmail(), token.GetAudience(),
				time.Duration(s.AckDeadlineSeconds)*time.Second) {
				err = client.Acknowledge(call, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: ids})
			} else {
				err = client.ModifyAckDeadline(call, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subscription, AckIds: ids})
			}
			if err != nil {
				return fmt.Errorf("acknowledge a message of %s: %w", subscription, err)
			}
		}
	}
	return nil
}

// wait waits, and reports whether ctx has not ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
