package function

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// TestEach handles messages in order, and decodes marked ones, until one fails.
func TestEach(t *testing.T) {
	wrong := errors.New("wrong")
	var did []string
	handler := Each(func(_ context.Context, body []byte) error {
		if did = append(did, string(body)); string(body) == "bad" {
			return wrong
		}
		return nil
	})
	e := events.SQSEvent{Records: []events.SQSMessage{
		{Body: "b25l", MessageAttributes: map[string]events.SQSMessageAttribute{encoded: {}}}, {Body: "bad"}, {Body: "never"},
	}}
	if err := handler(t.Context(), e); !errors.Is(err, wrong) || !slices.Equal(did, []string{"one", "bad"}) {
		t.Errorf("did %q: %v", did, err)
	}
}
