package drivers

import (
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/drivers/gocloud"
)

// queue returns a queue that can delay messages and counts deliveries.
func (s *store) queue(name string) *gocloud.Queue {
	return &gocloud.Queue{
		Name: name, Topic: s.openTopic(name),
		Open: func() (*pubsub.Subscription, error) { return s.openSubscription(name, pollTime), nil },
		Delay: func(m *pubsub.Message, delay time.Duration) {
			m.BeforeSend = func(as func(any) bool) error {
				var how *sending
				if as(&how) {
					how.delay = min(delay, maxDelay)
				}
				return nil
			}
		},
		Receives: func(m *pubsub.Message) int {
			var d embedded.Delivery
			m.As(&d)
			return d.Receives
		},
	}
}
