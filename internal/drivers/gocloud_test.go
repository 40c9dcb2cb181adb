package drivers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gocloud.dev/pubsub/driver"
	"gocloud.dev/pubsub/drivertest"
)

// stores returns the ways to open a store. Tests run with each.
func stores() map[string]func(testing.TB, options) *store {
	return map[string]func(testing.TB, options) *store{
		"memory": func(t testing.TB, opts options) *store {
			s := openMemory(opts)
			t.Cleanup(func() { closeStore(t, s) })
			return s
		},
		"file": func(t testing.TB, opts options) *store { return openDir(t, t.TempDir(), opts) },
	}
}

func openDir(t testing.TB, dir string, opts options) *store {
	t.Helper()
	s, err := openStore(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPubsubConformance(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			drivertest.RunConformanceTests(t, func(_ context.Context, t *testing.T) (drivertest.Harness, error) {
				return &queueHarness{store: open(t, options{})}, nil
			}, nil)
		})
	}
}

type queueHarness struct {
	store *store
	n     int
}

func (h *queueHarness) CreateTopic(ctx context.Context, testName string) (driver.Topic, func(), error) {
	h.n++
	name := fmt.Sprintf("%s/%d", testName, h.n)
	err := h.store.createQueues(ctx, 10*time.Second, name)
	return &topic{h.store, name}, func() {}, err
}

func (h *queueHarness) MakeNonexistentTopic(context.Context) (driver.Topic, error) {
	return &topic{h.store, "none"}, nil
}

func (h *queueHarness) CreateSubscription(_ context.Context, dt driver.Topic, _ string) (driver.Subscription, func(), error) {
	return newSubscription(h.store, dt.(*topic).name, time.Second), func() {}, nil
}

func (h *queueHarness) MakeNonexistentSubscription(context.Context) (driver.Subscription, func(), error) {
	return newSubscription(h.store, "none", time.Second), func() {}, nil
}

func (h *queueHarness) Close()                              {}
func (h *queueHarness) MaxBatchSizes() (int, int)           { return 0, 0 }
func (h *queueHarness) SupportsMultipleSubscriptions() bool { return false } // they compete
