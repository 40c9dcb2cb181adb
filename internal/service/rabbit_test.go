package service_test

import (
	"errors"
	"net/url"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/servers"
	"github.com/orbweaver/orbweaver/platform"
	"github.com/orbweaver/orbweaver/platform/conformance"
)

// TestRabbit runs the suite and a whole crawl on gocloud's driver of RabbitMQ, where it is installed. The table and the
// bucket are in memory.
func TestRabbit(t *testing.T) {
	s, err := servers.NewRabbit(t.Context(), t.TempDir())
	if errors.Is(err, servers.ErrNoRabbit) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	t.Setenv("RABBIT_SERVER_URL", s.URL())
	location := declare(t, s.URL(), "suite", conformance.Partitions)
	conformance.Run(t, func(t *testing.T, m platform.Meter) *platform.Platform {
		p, err := drivers.Open(t.Context(), location, m)
		return conformance.Opened(t, p, err)
	}, conformance.Traits{Visibility: time.Hour, Batches: true, NoDelay: true, NoCounts: true, Unmetered: true})
	led := &ledger.Ledger{}
	p, err := drivers.Open(t.Context(), declare(t, s.URL(), "crawl", 4), led)
	crawlDemo(t, conformance.Opened(t, p, err), led)
}

// declare creates the exchanges and queues of a platform, and returns its URL.
func declare(t *testing.T, server, name string, partitions int) string {
	t.Helper()
	conn, err := amqp.Dial(server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range append(naming.Queues(partitions), naming.DeadLettersQueue) {
		q = name + "/" + q
		err := ch.ExchangeDeclare(q, "fanout", true, false, false, false, nil)
		if err == nil {
			_, err = ch.QueueDeclare(q, true, false, false, false, nil)
		}
		if err == nil {
			err = ch.QueueBind(q, "", q, false, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	v := url.Values{
		"topic": {"rabbit://" + name + "/{queue}"}, "subscription": {"rabbit://" + name + "/{queue}"},
		"table": {"mem://" + name + "/key"}, "bucket": {"mem://"}, "partitions": {strconv.Itoa(partitions)},
	}
	return "gocloud://" + name + "?" + v.Encode()
}
