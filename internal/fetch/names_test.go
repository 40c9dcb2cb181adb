package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// clock is a clock that is set by hand.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_700_000_000, c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

func addrs(s ...string) (out []netip.Addr) {
	for _, s := range s {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

var errNoName = &net.DNSError{Err: "no such host", IsNotFound: true}

func TestNamesKeep(t *testing.T) {
	var now clock
	asked := 0
	found := true
	n := newNames(func(context.Context, string) ([]netip.Addr, error) {
		asked++
		if !found {
			return nil, errNoName
		}
		return addrs("1.1.1.1"), nil
	}, time.Second, now.now)
	defer n.close()
	for i, step := range []struct {
		wait  time.Duration
		found bool
		asked int
	}{
		{0, true, 1},
		{foundFor - 1, true, 1},
		{1, false, 2},
		{notFoundFor - 1, false, 2},
		{1, true, 3},
		{notFoundFor, true, 3},
	} {
		now.advance(step.wait)
		found = step.found
		_, err := n.resolve(context.Background(), "example.org")
		if (err == nil) != step.found || asked != step.asked || err != nil && !isNotFound(err) {
			t.Errorf("step %d: error %v, asked %d times", i, err, asked)
		}
	}
	n.forget("example.org")
	n.resolve(context.Background(), "example.org")
	if asked != 4 {
		t.Errorf("asked %d times, want again after forget", asked)
	}
}

func TestNamesShareLookups(t *testing.T) {
	var asked atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	n := newNames(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		asked.Add(1)
		close(begun)
		<-release
		return addrs("1.1.1.1"), ctx.Err()
	}, time.Minute, time.Now)
	defer n.close()

	// The first caller gives up; the lookup continues for the others.
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := n.resolve(ctx, "example.org"); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled caller gets error %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := n.resolve(context.Background(), "example.org"); err != nil || len(got) != 1 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	close(release)
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestNamesBounded(t *testing.T) {
	n := newNames(func(context.Context, string) ([]netip.Addr, error) { return nil, nil }, time.Second, time.Now)
	defer n.close()
	for i := range namesKept + 100 {
		if _, err := n.resolve(context.Background(), fmt.Sprintf("h%d.example.org", i)); !isNotFound(err) {
			t.Fatalf("error %v for a name without address", err)
		}
	}
	if len(n.m) > namesKept {
		t.Errorf("%d names kept", len(n.m))
	}
}

func TestNamesClose(t *testing.T) {
	begun, done := make(chan struct{}), make(chan error)
	n := newNames(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}, time.Hour, time.Now)
	go func() {
		_, err := n.resolve(context.Background(), "example.org")
		done <- err
	}()
	<-begun
	n.close()
	if err := <-done; err == nil {
		t.Error("no error of a look-up that was ended")
	}
}

func TestNamesPrefer(t *testing.T) {
	n := newNames(func(context.Context, string) ([]netip.Addr, error) {
		return addrs("2606::1", "1.1.1.1", "2606::2"), nil
	}, time.Second, time.Now)
	defer n.close()
	n.prefer("example.org", netip.MustParseAddr("1.1.1.1")) // unknown: nothing happens
	before, _ := n.resolve(context.Background(), "example.org")
	n.prefer("example.org", netip.MustParseAddr("1.1.1.1"))
	after, _ := n.resolve(context.Background(), "example.org")
	same := cmpopts.EquateComparable(netip.Addr{})
	if diff := cmp.Diff(addrs("2606::1", "1.1.1.1", "2606::2"), before, same); diff != "" {
		t.Errorf("the slice handed out changed (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(addrs("1.1.1.1", "2606::1", "2606::2"), after, same); diff != "" {
		t.Errorf("after prefer (-want +got)\n%s", diff)
	}
}

func TestInterleave(t *testing.T) {
	for _, tt := range []struct{ in, want []netip.Addr }{
		{nil, nil},
		{addrs("1.0.0.1", "1.0.0.2"), addrs("1.0.0.1", "1.0.0.2")},
		{addrs("2606::1", "2606::2", "2606::3", "1.0.0.1"), addrs("2606::1", "1.0.0.1", "2606::2", "2606::3")},
		{addrs("::ffff:1.0.0.1", "2606::1", "1.0.0.2"), addrs("1.0.0.1", "2606::1", "1.0.0.2")},
		{
			addrs("1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7", "1.0.0.8", "1.0.0.9", "2606::1"),
			addrs("1.0.0.1", "2606::1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7"),
		},
		{ // the same addresses, rotated
			addrs("1.0.0.9", "1.0.0.2", "1.0.0.1", "1.0.0.4", "1.0.0.5", "1.0.0.3", "1.0.0.7", "1.0.0.8", "1.0.0.6", "2606::1"),
			addrs("1.0.0.1", "2606::1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7"),
		},
	} {
		if diff := cmp.Diff(tt.want, interleave(tt.in), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("interleave(%v) (-want +got)\n%s", tt.in, diff)
		}
	}
}
