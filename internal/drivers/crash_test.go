package drivers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/platform"
)

// crashDir is the variable that names the folder to work in to a test binary started by TestKill.
const crashDir = "ORBWEAVER_CRASH_DIR"

// TestKill repeatedly kills a process that sends, receives, acknowledges and writes in the same folder. Each
// time it checks that the folder is free, that everything confirmed is there, and nothing that was not
// requested.
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

// runAndKill runs the child until it has written that many lines, and kills it.
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
		if err != nil { // lines written before the kill took effect count too
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

// crashChild works until it is killed. It writes what it is about to do and what was confirmed.
func crashChild(t *testing.T, dir string) {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	ctx := context.Background()
	s, err := openStore(dir, options{lazySync: 2 * time.Millisecond})
	must(t, err)
	must(t, s.createQueues(ctx, time.Hour, "q"))
	topic, p := s.openTopic("q"), s.platform()
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
		sub := s.openSubscription("q", pollTime)
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
		wg.Go(func() { crashWriter(ctx, p, g, say, fatal) })
	}
	wg.Wait()
}

// crashWriter counts up in a record.
func crashWriter(ctx context.Context, p *platform.Platform, g int, say func(string, ...any), fatal func(error)) {
	key := fmt.Sprint("head", g)
	recs, err := p.ReadRecords(ctx, []string{key})
	fatal(err)
	n, rev := int64(0), recs[0].Revision
	if recs[0].Found {
		n, err = strconv.ParseInt(string(recs[0].Value), 10, 64)
		fatal(err)
	}
	for {
		n++
		say("writing %d %d", g, n)
		rev, err = p.WriteRecord(ctx, key, strconv.AppendInt(nil, n, 10), rev)
		fatal(err)
		say("wrote %d %d", g, n)
	}
}

// witness holds what the children wrote.
type witness struct {
	asked, sent, acked map[string]bool
	attempt            map[int]int64 // by writer
	wrote              map[int]int64
	again              int
	writes             int64
}

func newWitness() *witness {
	return &witness{
		asked: map[string]bool{}, sent: map[string]bool{}, acked: map[string]bool{},
		attempt: map[int]int64{}, wrote: map[int]int64{},
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
	}
}

func (w *witness) check(t *testing.T, dir string) {
	t.Helper()
	s, err := openStore(dir, options{lock: 10 * time.Second}) // until the dying process releases it
	must(t, err)
	defer func() { must(t, s.Close()) }()
	left := map[string]bool{}
	sub := newSubscription(s, "q", time.Nanosecond)
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
	for g, n := range w.wrote {
		recs, err := s.Read(t.Context(), []string{fmt.Sprint("head", g)})
		must(t, err)
		got, err := strconv.ParseInt(string(recs[0].Value), 10, 64)
		must(t, err)
		if got < n || got > w.attempt[g] {
			t.Errorf("writer %d: %d is there, %d was confirmed, %d requested", g, got, n, w.attempt[g])
		}
	}
}
