package drivers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gocloud.dev/docstore"
	docdriver "gocloud.dev/docstore/driver"
	doctest "gocloud.dev/docstore/drivertest"
	"gocloud.dev/pubsub/driver"
	"gocloud.dev/pubsub/drivertest"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// stores are the ways to open a Store; what is tested of one is tested of both.
func stores() map[string]func(testing.TB, Options) *Store {
	return map[string]func(testing.TB, Options) *Store{
		"memory": func(t testing.TB, opts Options) *Store {
			s := OpenMemory(opts)
			t.Cleanup(func() { closeStore(t, s) })
			return s
		},
		"file": func(t testing.TB, opts Options) *Store { return openDir(t, t.TempDir(), opts) },
	}
}

func openDir(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := openStore(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPubsubConformance(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			drivertest.RunConformanceTests(t, func(_ context.Context, t *testing.T) (drivertest.Harness, error) {
				return &queueHarness{store: open(t, Options{})}, nil
			}, nil)
		})
	}
}

type queueHarness struct {
	store *Store
	n     int
}

func (h *queueHarness) CreateTopic(ctx context.Context, testName string) (driver.Topic, func(), error) {
	h.n++
	name := fmt.Sprintf("%s/%d", testName, h.n)
	err := h.store.CreateQueue(ctx, name, embedded.QueueConfig{Visibility: 10 * time.Second})
	return &topic{h.store, name}, func() {}, err
}

func (h *queueHarness) MakeNonexistentTopic(context.Context) (driver.Topic, error) {
	return &topic{h.store, "none"}, nil
}

func (h *queueHarness) CreateSubscription(_ context.Context, dt driver.Topic, _ string) (driver.Subscription, func(), error) {
	return newSubscription(h.store, dt.(*topic).name, SubscriptionOptions{Wait: time.Second}), func() {}, nil
}

func (h *queueHarness) MakeNonexistentSubscription(context.Context) (driver.Subscription, func(), error) {
	return newSubscription(h.store, "none", SubscriptionOptions{Wait: time.Second}), func() {}, nil
}

func (h *queueHarness) Close()                              {}
func (h *queueHarness) MaxBatchSizes() (int, int)           { return 0, 0 }
func (h *queueHarness) SupportsMultipleSubscriptions() bool { return false } // they compete

func TestDocstoreConformance(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			doctest.RunConformanceTests(t, func(_ context.Context, t *testing.T) (doctest.Harness, error) {
				return &tableHarness{open(t, Options{})}, nil
			}, codecTester{newCodec()}, nil)
		})
	}
}

type tableHarness struct{ store *Store }

func (h *tableHarness) MakeCollection(_ context.Context, kind doctest.CollectionKind) (docdriver.Collection, error) {
	key, revField := collectionKey{field: doctest.KeyField}, docstore.DefaultRevisionField
	switch kind {
	case doctest.TwoKey:
		key = collectionKey{of: doctest.HighScoreKey}
	case doctest.AltRev:
		revField = doctest.AlternateRevisionField
	}
	return newCollection(h.store, fmt.Sprint("test", kind), key, revField), nil
}

func (h *tableHarness) BeforeDoTypes() []any         { return nil }
func (h *tableHarness) BeforeQueryTypes() []any      { return nil }
func (h *tableHarness) RevisionsEqual(a, b any) bool { return a == b }
func (h *tableHarness) Close()                       {}

func (h *tableHarness) AtomicWritesKind() doctest.AtomicWritesSupportKind {
	return doctest.MultiplePartitions
}

// codecTester has no native codec beside ours: both go through the stored bytes.
type codecTester struct{ c codec }

func (codecTester) UnsupportedTypes() []doctest.UnsupportedType { return nil }

func (ct codecTester) DocstoreEncode(x any) (any, error) {
	doc, err := docdriver.NewDocument(x)
	if err != nil {
		return nil, err
	}
	tree, err := encodeDocument(doc)
	if err != nil {
		return nil, err
	}
	return ct.c.marshal(tree)
}

func (ct codecTester) DocstoreDecode(value, dest any) error {
	tree, err := ct.c.unmarshal(value.([]byte))
	if err != nil {
		return err
	}
	doc, err := docdriver.NewDocument(dest)
	if err != nil {
		return err
	}
	return doc.Decode(decoder{tree})
}

func (ct codecTester) NativeEncode(x any) (any, error)    { return ct.DocstoreEncode(x) }
func (ct codecTester) NativeDecode(value, dest any) error { return ct.DocstoreDecode(value, dest) }
