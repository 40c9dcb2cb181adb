package postgres

import (
	"context"
	"sync"
	"time"
)

// Pauses between two questions to the server.
const (
	askFirst = 20 * time.Millisecond
	askMost  = 500 * time.Millisecond
)

// bell wakes receivers when their queues have messages. One goroutine asks the server about all queues with receivers in
// one statement, so the number of statements does not grow with the number of queues. A send of this process rings
// at once. NOTIFY would be faster between processes, but the server runs the commits of notifying transactions one after another.
type bell struct {
	due  func(ctx context.Context, queues []string) ([]string, error) // the queues with messages
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	waiting map[string]*waiters
	came    chan struct{} // receives when somebody begins to wait
}

// waiters are the receivers of a queue. rung is closed when it has messages.
type waiters struct {
	n    int
	rung chan struct{}
}

func newBell(due func(context.Context, []string) ([]string, error)) *bell {
	ctx, stop := context.WithCancel(context.Background())
	b := &bell{due: due, stop: stop, done: make(chan struct{}), waiting: map[string]*waiters{}, came: make(chan struct{}, 1)}
	go b.run(ctx)
	return b
}

func (b *bell) close() {
	b.stop()
	<-b.done
}

// listen returns a channel that is closed when the queue may have messages. The caller calls done afterwards.
func (b *bell) listen(queue string) (rung <-chan struct{}, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiting[queue]
	if w == nil {
		w = &waiters{rung: make(chan struct{})}
		b.waiting[queue] = w
	}
	w.n++
	select {
	case b.came <- struct{}{}:
	default:
	}
	return w.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.n--; w.n == 0 && b.waiting[queue] == w {
			delete(b.waiting, queue)
		}
	}
}

func (b *bell) ring(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.waiting[queue]; w != nil {
		close(w.rung)
		delete(b.waiting, queue)
	}
}

// run asks the server while there are receivers. The pause between two questions doubles until a queue has messages.
func (b *bell) run(ctx context.Context) {
	defer close(b.done)
	pause := askFirst
	for {
		b.mu.Lock()
		var queues []string
		for name := range b.waiting {
			queues = append(queues, name)
		}
		b.mu.Unlock()
		if len(queues) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-b.came:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		due, err := b.due(ctx, queues)
		for _, name := range due {
			b.ring(name)
		}
		if pause = min(2*pause, askMost); len(due) > 0 && err == nil {
			pause = askFirst
		}
	}
}
