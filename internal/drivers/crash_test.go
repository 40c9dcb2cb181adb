package drivers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/docstore"
	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// crashDir names, to a test binary started by TestKill, the folder to work in.
const crashDir = "ORBWEAVER_CRASH_DIR"

// TestKill kills a process that sends, receives, acknowledges and writes, again
// and again in the same folder, and checks each time that the folder is free, that
// everything confirmed is there, and nothing that was not asked for.
func TestKill(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(t, dir)
		return
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed ", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWitness()
	for range 10 {
		runAndKill(t, dir, 50+rng.IntN(1500), w)
		w.check(t, dir)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d sends confirmed, %d acknowledged, %d came back; %d table writes", len(w.sent), len(w.acked), w.again, w.writes)
}

// runAndKill runs the child until it has said so many lines.
func runAndKill(t *testing.T, dir string, lines int, w *witness) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	r := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil { // what was said before the kill took effect counts too
			if err != io.EOF || n < lines {
				t.Errorf("the child ended by itself: %v after %q", err, line)
			}
			break
		}
		w.hear(line)
		if n == lines {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // "signal: killed"
}

// crashChild works until it is killed and says what it is about to do and what
// was confirmed.
func crashChild(t *testing.T, dir string) {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	ctx := context.Background()
	s, err := openStore(dir, Options{LazySync: 2 * time.Millisecond})
	must(t, err)
	must(t, s.CreateQueue(ctx, "q", embedded.QueueConfig{Visibility: time.Hour}))
	topic, coll := s.Topic("q"), s.Collection("c", "k")
	var wg sync.WaitGroup
	fatal := func(err error) {
		if err != nil {
			say("failed %v", err)
			os.Exit(1)
		}
	}
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
				say("sending %s", id)
				fatal(topic.Send(ctx, &pubsub.Message{Body: []byte(id)}))
				say("sent %s", id)
			}
		})
	}
	for range 2 {
		sub := s.Subscription("q", SubscriptionOptions{})
		wg.Go(func() {
			for i := 0; ; i++ {
				m, err := sub.Receive(ctx)
				fatal(err)
				if i%3 == 0 {
					m.Nack()
					continue
				}
				say("acking %s", m.Body)
				m.Ack()
			}
		})
	}
	for g := range 3 {
		wg.Go(func() { crashWriter(ctx, coll, g, say, fatal) })
	}
	wg.Wait()
}

// crashWriter counts in a document, by revisions, and in a pair of documents that
// are written together.
func crashWriter(ctx context.Context, coll *docstore.Collection, g int, say func(string, ...any), fatal func(error)) {
	head := doc{"k": fmt.Sprint("head", g), "n": 0, "DocstoreRevision": nil}
	if coll.Get(ctx, head) != nil {
		fatal(coll.Create(ctx, head))
	}
	n, _ := head["n"].(int64)
	for {
		n++
		head["n"] = n
		say("writing %d %d", g, n)
		fatal(coll.Replace(ctx, head))
		say("wrote %d %d", g, n)
		fatal(coll.Actions().AtomicWrites().
			Put(doc{"k": fmt.Sprint("left", g), "n": n}).Put(doc{"k": fmt.Sprint("right", g), "n": n}).Do(ctx))
		say("paired %d %d", g, n)
	}
}

// witness knows what the children said.
type witness struct {
	asked, sent, acked map[string]bool
	attempt            map[int]int64 // by writer
	wrote, paired      map[int]int64
	again              int
	writes             int64
}

func newWitness() *witness {
	return &witness{
		asked: map[string]bool{}, sent: map[string]bool{}, acked: map[string]bool{},
		attempt: map[int]int64{}, wrote: map[int]int64{}, paired: map[int]int64{},
	}
}

func (w *witness) hear(line string) {
	verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	var g int
	var n int64
	_, _ = fmt.Sscan(rest, &g, &n)
	switch verb {
	case "sending":
		w.asked[rest] = true
	case "sent":
		w.sent[rest] = true
	case "acking":
		w.acked[rest] = true
	case "writing":
		w.attempt[g] = n
	case "wrote":
		w.wrote[g] = n
		w.writes++
	case "paired":
		w.paired[g] = n
	}
}

func (w *witness) check(t *testing.T, dir string) {
	t.Helper()
	s, err := openStore(dir, Options{LockWait: 10 * time.Second}) // the dying process lets go of it
	must(t, err)
	defer func() { must(t, s.Close()) }()
	left := map[string]bool{}
	sub := newSubscription(s, "q", SubscriptionOptions{Wait: time.Nanosecond})
	for {
		ms, err := sub.ReceiveBatch(t.Context(), 10)
		must(t, err)
		if len(ms) == 0 {
			break
		}
		for _, m := range ms {
			body := string(m.Body)
			switch {
			case left[body]:
				t.Errorf("message %s is there twice", body)
			case !w.asked[body]:
				t.Errorf("message %s was never sent", body)
			case w.acked[body]:
				w.again++
			}
			left[body] = true
		}
	}
	for body := range w.sent {
		if !left[body] && !w.acked[body] {
			t.Errorf("message %s was confirmed and is lost", body)
		}
	}
	coll := collectionOf(t, s, "c", "k")
	count := func(key string) int64 {
		d := doc{"k": key}
		if coll.Get(t.Context(), d) != nil {
			return 0
		}
		return d["n"].(int64)
	}
	for g, n := range w.wrote {
		if got := count(fmt.Sprint("head", g)); got < n || got > w.attempt[g] {
			t.Errorf("writer %d: %d is there, %d was confirmed, %d asked for", g, got, n, w.attempt[g])
		}
		left, right := count(fmt.Sprint("left", g)), count(fmt.Sprint("right", g))
		if left != right || left < w.paired[g] || left > w.wrote[g] {
			t.Errorf("writer %d: pair %d and %d, %d was confirmed", g, left, right, w.paired[g])
		}
	}
}
