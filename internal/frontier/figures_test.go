//go:build unix

package frontier

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

var figures = flag.Bool("figures", false, "measure time and memory, each in a process of its own")

const figureEnv, stateEnv = "FRONTIER_FIGURE", "FRONTIER_STATE"

// Each figure is measured in a separate process, so that the peak of memory belongs to it alone.
var measures = []struct {
	name string
	run  func(m *measured)
}{
	{"store half", func(m *measured) { m.store(500_000, 500_000) }},
	{"load half", (*measured).load},
	{"store pending", func(m *measured) { m.store(0, 1_000_000) }},
	{"load pending", (*measured).load},
	{"add pending", (*measured).add},
	{"one host", (*measured).oneHost},
	{"hosts", (*measured).hosts},
	{"giant host, all in memory", func(m *measured) { m.giant(0, 0) }},
	{"giant host, parts of 1<<18", func(m *measured) { m.giant(1<<18, 1<<19) }},
	{"giant host, parts of 1<<17", func(m *measured) { m.giant(1<<17, 1<<19) }},
	{"giant host, parts of 1<<16", func(m *measured) { m.giant(1<<16, 1<<19) }},
	{"giant host, parts of 1<<15", func(m *measured) { m.giant(1<<15, 1<<19) }},
	{"crowd, one second", func(m *measured) { m.crowd(time.Second, 40_000) }},
	{"crowd, one second, little room", func(m *measured) { m.crowd(time.Second, 15_000) }},
	{"crowd, 20 seconds", func(m *measured) { m.crowd(20*time.Second, 40_000) }},
	{"crowd, 20 seconds, little room", func(m *measured) { m.crowd(20*time.Second, 15_000) }},
}

// measured collects the printed figures.
type measured struct {
	t     *testing.T
	state string // file for what is stored
}

// say prints a figure and its upper limit; 0 means no limit.
func (m *measured) say(what string, value, most float64, unit string) {
	verdict := ""
	switch {
	case most > 0 && value <= most:
		verdict = fmt.Sprintf("ok      %5.2f of %g", value/most, most)
	case most > 0:
		verdict = fmt.Sprintf("missed  %5.2f of %g", value/most, most)
	}
	fmt.Printf("  %-44s %10.2f %-10s %s\n", what, value, unit, verdict)
}

const mostRSS = 300 // MB, for 1,000,000 known URLs of 10,000 hosts

// memory prints the memory of the process, now and at its peak.
func (m *measured) memory(most float64, keep any) {
	m.t.Helper()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m.say("live heap", float64(s.HeapAlloc)/1e6, 0, "MB")
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				n, _ := strconv.ParseFloat(strings.Fields(kb)[0], 64)
				m.say("peak RSS of the process", n*1024/1e6, most, "MB")
			}
		}
	}
	runtime.KeepAlive(keep)
}

// TestFigures measures the frontier and prints the results.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("only with -figures")
	}
	if name := os.Getenv(figureEnv); name != "" {
		for _, f := range measures {
			if f.name == name {
				f.run(&measured{t, os.Getenv(stateEnv)})
			}
		}
		return
	}
	state := filepath.Join(t.TempDir(), "state")
	for _, f := range measures {
		fmt.Println(f.name)
		cmd := exec.Command(os.Args[0], "-test.run=^TestFigures$", "-figures")
		cmd.Env = append(os.Environ(), figureEnv+"="+f.name, stateEnv+"="+state)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.name, err, out)
		}
		fmt.Print(strings.TrimSuffix(strings.TrimSuffix(string(out), "PASS\n"), "ok\n"))
	}
}

var words = strings.Fields(`news article category product archive image video blog post tag user profile
	forum thread topic help about contact search result list detail view item shop cart world sport science
	health travel music culture opinion weather local market finance review guide recipe event calendar`)

// urls generates URLs of 60 to 100 bytes on 10,000 hosts, a few of them large.
type urls struct{ r *rand.Rand }

func (g urls) word() string { return words[g.r.IntN(len(words))] }

func (g urls) host() string {
	x := g.r.Float64()
	n := int(10_000 * x * x)
	return fmt.Sprintf("www.%s-%s%d.com", words[n%len(words)], words[n*7%len(words)], n)
}

func (g urls) url(host string) string {
	return fmt.Sprintf("https://%s/%s/%d/%02d/%s-%s-%s-%d.html", host, g.word(), 2015+g.r.IntN(11), 1+g.r.IntN(12), g.word(), g.word(), g.word(), g.r.IntN(1_000_000))
}

func (g urls) depth() uint16 { return uint16(1 + g.r.IntN(6)) }

func figureHash() partition.Hash {
	h, err := partition.NewHash([16]byte{7}, partition.DefaultSlots)
	if err != nil {
		panic(err)
	}
	return h
}

// stateFile is a stored run: JSON, a newline, then the bytes of the run.
type stateFile struct {
	Ref   blobschema.RunRef
	Slots map[partition.Slot]blobschema.SlotSummary
}

func (m *measured) store(settled, pending int) {
	g, h := urls{rand.New(rand.NewPCG(1, 1))}, figureHash()
	run := &blobschema.Run{}
	slots := map[partition.Slot]blobschema.SlotSummary{}
	count := func(slot partition.Slot, pending uint32) {
		s := slots[slot]
		s.Slot, s.Known, s.Pending = slot, s.Known+1, s.Pending+pending
		if pending > 0 {
			s.Due = 1
		}
		slots[slot] = s
	}
	hosts, text := map[string]uint64{}, 0
	for i := range settled + pending {
		host := g.host()
		slot, url, depth := h.Slot(host), g.url(host), g.depth()
		text += len(url)
		if i < settled {
			hosts[host]++
			run.Settled = append(run.Settled, blobschema.Settled{
				Slot: slot, Fingerprint: h.Fingerprint(url), State: blobschema.Fetched, Record: blobschema.RecordRef{Seq: uint32(1 + i/4000)},
			})
			count(slot, 0)
			continue
		}
		run.Queued = append(run.Queued, blobschema.Queued{Slot: slot, Key: host, URL: url, Depth: depth, Rank: 1 + uint32(depth)})
		count(slot, 1)
	}
	for host, n := range hosts {
		pace := polite.NewPace()
		pace.Start(epoch, time.Second)
		rules := polite.ForStatus(200, []byte("User-agent: *\nDisallow: /search\nDisallow: /cart\n"), "bot")
		data := encodedHost(m.t, map[int]any{1: &pace, 2: [2][]any{
			{nil, 0, "", 0, 0, 0}, {rules.Encode(), epoch.Add(1e6 * time.Hour).UnixMilli(), "", 0, 0, 0},
		}, 3: n, 6: n})
		run.Keys = append(run.Keys, blobschema.KeyState{Slot: h.Slot(host), Key: host, Version: 1, Data: data})
	}
	run.Sort()
	blobschema.Join(h, run)
	m.say("mean URL", float64(text)/float64(settled+pending), 0, "B")
	m.say("hosts", float64(len(hosts)), 0, "")
	data, ref := blobschema.EncodeRun(run, h)
	m.say("stored, index and filter and hosts included", float64(len(data))/float64(settled+pending), 25, "B/URL")
	head, err := json.Marshal(stateFile{ref, slots})
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.state, slices.Concat(head, []byte("\n"), data), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// load decodes and joins parts of the state on all processors, as a step does, and loads them on one processor meanwhile.
func (m *measured) load() {
	all, err := os.ReadFile(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	var sf stateFile
	end := slices.Index(all, '\n')
	if err := json.Unmarshal(all[:end], &sf); err != nil {
		m.t.Fatal(err)
	}
	data := all[end+1:]
	var slots []blobschema.SlotSummary
	for _, s := range sf.Slots {
		slots = append(slots, s)
	}
	sf.Slots = nil
	slices.SortFunc(slots, func(a, b blobschema.SlotSummary) int { return int(a.Slot) - int(b.Slot) })
	h := figureHash()
	f := New(Config{Hash: h, Token: "bot", Delay: time.Second})
	f.Restore(slots)

	const parts = 32
	type part struct {
		run   *blobschema.Run
		slots []blobschema.SlotSummary
	}
	began, worked := time.Now(), ledger.Processor()
	index, err := blobschema.OpenRun(data[sf.Ref.Index:], sf.Ref)
	if err != nil {
		m.t.Fatal(err)
	}
	jobs, results := make(chan []blobschema.SlotSummary, parts), make(chan part, 1)
	for i := range parts {
		jobs <- slots[len(slots)*i/parts : len(slots)*(i+1)/parts]
	}
	close(jobs)
	var work sync.WaitGroup
	var mu sync.Mutex
	var decoding time.Duration
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for list := range jobs {
				start := time.Now()
				run := slotsOf(data, index, list[0].Slot, list[len(list)-1].Slot)
				blobschema.Join(h, run)
				mu.Lock()
				decoding += time.Since(start)
				mu.Unlock()
				results <- part{run, list}
			}
		})
	}
	go func() { work.Wait(); close(results) }()
	loading := time.Duration(0)
	for p := range results {
		start := time.Now()
		for _, s := range p.slots {
			if err := f.Load(epoch, PartID{Slot: s.Slot}, cut(p.run, s.Slot)); err != nil {
				m.t.Fatal(err)
			}
		}
		loading += time.Since(start)
	}
	m.say("decoded, joined and loaded in", time.Since(began).Seconds(), 0.5, "s")
	m.say("CPU time of that, on all processors", (ledger.Processor() - worked).Seconds(), 0, "s")
	m.say("of that decoding and joining, all processors", decoding.Seconds(), 0, "s")
	m.say("of that Load, on the loop", loading.Seconds(), 0, "s")
	n := f.Counts()
	m.say("known", float64(n.Known), 0, "URLs")
	m.say("pending", float64(n.Pending), 0, "URLs")
	all, data = nil, nil
	m.memory(mostRSS, f)
}

// slotsOf decodes the blocks of a range of slots.
func slotsOf(data []byte, index *blobschema.RunIndex, first, last partition.Slot) *blobschema.Run {
	run := &blobschema.Run{}
	blocks, n := index.Blocks(first, last), map[blobschema.BlockKind]int{}
	for _, b := range blocks {
		n[b.Kind] += int(b.Entries)
	}
	run.Settled, run.Queued = make([]blobschema.Settled, 0, n[blobschema.SettledBlock]), make([]blobschema.Queued, 0, n[blobschema.QueuedBlock])
	for _, b := range blocks {
		if err := blobschema.DecodeBlock(data[b.Offset:b.Offset+b.Length], b, run, first, last); err != nil {
			panic(err)
		}
	}
	return run
}

// cut removes the first slot from a joined run and returns it.
func cut(run *blobschema.Run, slot partition.Slot) *blobschema.Run {
	out := &blobschema.Run{}
	n := 0
	for n < len(run.Settled) && run.Settled[n].Slot == slot {
		n++
	}
	out.Settled, run.Settled = run.Settled[:n], run.Settled[n:]
	for n = 0; n < len(run.Queued) && run.Queued[n].Slot == slot; n++ {
	}
	out.Queued, run.Queued = run.Queued[:n], run.Queued[n:]
	for n = 0; n < len(run.Keys) && run.Keys[n].Slot == slot; n++ {
	}
	out.Keys, run.Keys = run.Keys[:n], run.Keys[n:]
	return out
}

// add adds 1,000,000 URLs one by one, with a commit every 30,000.
func (m *measured) add() {
	g, h := urls{rand.New(rand.NewPCG(1, 1))}, figureHash()
	f := New(Config{Hash: h, Token: "bot", Delay: time.Second})
	adding, n, mallocs := time.Duration(0), 0, uint64(0)
	batch := make([]Link, 0, 30_000)
	var before, after runtime.MemStats
	pass := func() {
		runtime.ReadMemStats(&before)
		start := ledger.Processor()
		for i := range batch {
			f.Add(epoch, batch[i])
		}
		adding += ledger.Processor() - start
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		n += len(batch)
	}
	for f.Counts().Known < 1_000_000 {
		batch = batch[:0]
		for len(batch) < cap(batch) {
			host := g.host()
			u, err := weburl.Parse(g.url(host))
			if err != nil {
				m.t.Fatal(err)
			}
			depth := g.depth()
			batch = append(batch, linkOf(h, u, blobschema.Queued{Key: host, Depth: depth, Rank: uint32(depth) + 1}))
		}
		pass()
		f.Delta(1)
		f.Committed()
	}
	m.say("Add of a new URL", float64(adding.Nanoseconds())/float64(n), 0, "ns CPU")
	m.say("Add of a new URL", float64(mallocs)/float64(n), 0, "allocs")
	adding, n, mallocs = 0, 0, 0
	for range 10 {
		pass()
	}
	m.say("Add of a known URL", float64(adding.Nanoseconds())/float64(n), 0, "ns CPU")
	m.say("Add of a known URL", float64(mallocs)/float64(n), 0, "allocs")
	batch = nil
	m.memory(mostRSS, f)
}

// oneHost fetches 500,000 URLs of one host, and compares the order with a sorted list.
func (m *measured) oneHost() {
	g, h := urls{rand.New(rand.NewPCG(1, 1))}, figureHash()
	f := New(Config{Hash: h, Token: "bot"})
	const host = "www.large.example"
	var ranks []uint32
	for f.Counts().Known < 500_000 {
		u, err := weburl.Parse(g.url(host))
		if err != nil {
			m.t.Fatal(err)
		}
		rank := 1 + g.r.Uint32N(100_000)
		if f.Add(epoch, linkOf(h, u, blobschema.Queued{Key: host, Rank: rank})) == Fresh {
			ranks = append(ranks, rank)
		}
	}
	m.memory(mostRSS, f)
	slices.Sort(ranks)
	m.tasks(f, len(ranks), func(i int, t schedule.Task) {
		if got := t.Rank(); got != ranks[i] {
			m.t.Fatalf("URL %d has rank %d, want %d", i, got, ranks[i])
		}
	})
	m.memory(mostRSS, f)
}

// hosts fetches 300,000 URLs from 10,000 hosts.
func (m *measured) hosts() {
	for _, name := range schedule.PolicyNames() {
		p, err := schedule.NewPolicy(name, schedule.Quality{})
		if err != nil {
			m.t.Fatal(err)
		}
		g, h := urls{rand.New(rand.NewPCG(1, 1))}, figureHash()
		f := New(Config{Hash: h, Token: "bot", Policy: p})
		for f.Counts().Known < 300_000 {
			host := g.host()
			u, err := weburl.Parse(g.url(host))
			if err != nil {
				m.t.Fatal(err)
			}
			f.Add(epoch, linkOf(h, u, blobschema.Queued{Key: host, Rank: p.URLRank(schedule.Candidate{Depth: g.depth()})}))
		}
		fmt.Println(" ", p.Name())
		m.tasks(f, 300_000, func(int, schedule.Task) {})
	}
}

// tasks fetches everything.
func (m *measured) tasks(f *Frontier, n int, revisit func(i int, t schedule.Task)) {
	now, done, asked := epoch, 0, 0
	worked := ledger.Processor()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for {
		t, ok := f.Next(now, false)
		if !ok {
			at := f.NextAt()
			if at.IsZero() {
				break
			}
			now = at
			continue
		}
		o := &actor.Outcome{Page: blobschema.Page{Outcome: blobschema.OutcomeOK, Status: 200}, Started: now, Response: time.Millisecond}
		asked++
		if !t.Request.Robots {
			revisit(done, t)
			done++
		}
		f.Done(now, t, o)
		if asked%30_000 == 0 {
			f.Delta(uint64(asked))
			f.Committed()
		}
	}
	took := ledger.Processor() - worked
	runtime.ReadMemStats(&after)
	if done != n {
		m.t.Fatalf("%d of %d URLs were requested", done, n)
	}
	m.say("Next and Done", float64(took.Nanoseconds())/float64(asked), 0, "ns CPU")
	m.say("Next and Done", float64(after.Mallocs-before.Mallocs)/float64(asked), 0, "allocs")
}

// crowd crawls 500 hosts of 5 to 800 URLs, a few of them large, for 15 minutes: at most 20 pages per second, each with eight
// links to its host and four to others, and a commit every 30 seconds.
func (m *measured) crowd(delay time.Duration, room int) {
	const hosts = 500
	r, h := rand.New(rand.NewPCG(1, 2)), figureHash()
	size := make([]int, hosts)
	for i := range size {
		x := r.Float64()
		size[i] = 5 + int(800*x*x*x)
	}
	f, d, now := New(Config{Hash: h, Token: "bot", MaxResident: room, Delay: delay}), newDisk(h), epoch
	add := func(host, i int) {
		name := fmt.Sprintf("www.h%d.example", host)
		f.Add(now, linkOf(h, mustParse(m.t, fmt.Sprintf("https://%s/%d.html", name, i)), blobschema.Queued{Key: name, Rank: 1 + r.Uint32N(6)}))
	}
	for range 50 {
		add(r.IntN(hosts), 0)
	}
	c, pages := committing{f: f, d: d, t: m.t}, 0
	start := ledger.Processor()
	for second := range 900 {
		now = now.Add(time.Second)
		c.load(now)
		for range 20 {
			task, ok := f.Next(now, false)
			if !ok {
				break
			}
			f.Done(now, task, &actor.Outcome{Page: blobschema.Page{Outcome: blobschema.OutcomeOK, Status: 200}, Response: time.Millisecond, Started: now})
			if task.Request.Robots {
				continue
			}
			pages++
			host := 0
			if _, err := fmt.Sscanf(task.KeyName(), "www.h%d.example", &host); err != nil {
				m.t.Fatal(err)
			}
			for range 8 {
				add(host, r.IntN(size[host]))
			}
			for range 4 {
				x := r.Float64()
				other := int(hosts * x * x)
				add(other, min(r.IntN(size[other]), r.IntN(size[other]), r.IntN(size[other])))
			}
		}
		if second%30 == 29 {
			c.commit(now)
		}
	}
	all, n := ledger.Processor()-start, f.Counts()
	m.say("pages", float64(pages), 0, "")
	m.say("known", float64(n.Known), 0, "URLs")
	m.say("entries in memory, at most", float64(c.most), 0, "")
	m.say("URLs that came for a part in memory", 100*float64(n.Hits)/float64(n.Hits+n.Misses), 0, "%")
	m.say("loads", float64(c.loads), 0, "")
	m.say("entries loaded, per page", float64(c.loaded)/float64(pages), 0, "")
	m.say("entries stored, per page", float64(c.stored)/float64(pages), 0, "")
	m.say("CPU of all, the test's own work included", all.Seconds(), 0, "s")
}

// disk replaces the runs: stored entries per slot, by the first eight bits of their fingerprints.
type disk struct {
	hash    partition.Hash
	buckets map[bucket]*blobschema.Run
	hosts   map[partition.Slot][]blobschema.KeyState
}

type bucket struct {
	slot partition.Slot
	bits uint64
}

func newDisk(h partition.Hash) *disk {
	return &disk{h, map[bucket]*blobschema.Run{}, map[partition.Slot][]blobschema.KeyState{}}
}

func (d *disk) of(slot partition.Slot, fp uint64) *blobschema.Run {
	at := bucket{slot, fp >> 56}
	if d.buckets[at] == nil {
		d.buckets[at] = &blobschema.Run{}
	}
	return d.buckets[at]
}

func (d *disk) store(run *blobschema.Run) {
	for _, e := range run.Settled {
		b := d.of(e.Slot, e.Fingerprint)
		b.Settled = append(b.Settled, e)
	}
	for _, q := range run.Queued {
		b := d.of(q.Slot, d.hash.Fingerprint(q.URL))
		b.Queued = append(b.Queued, q)
	}
	for _, s := range run.Keys {
		d.hosts[s.Slot] = append(d.hosts[s.Slot], s)
	}
}

// read joins the stored entries of a part, whose prefix has at most eight bits.
func (d *disk) read(id PartID) *blobschema.Run {
	n := uint64(256) >> id.Part.Depth
	out := &blobschema.Run{Keys: slices.Clone(d.hosts[id.Slot])}
	for i := range n {
		if b := d.buckets[bucket{id.Slot, uint64(id.Part.Prefix)*n + i}]; b != nil {
			blobschema.Join(d.hash, b)
			out.Settled, out.Queued = append(out.Settled, b.Settled...), append(out.Queued, b.Queued...)
		}
	}
	blobschema.Join(d.hash, out)
	return out
}

// bytes returns the memory that the loaded URLs of a frontier take.
func (f *Frontier) bytes() (n int) {
	const queued = int(unsafe.Sizeof(blobschema.Queued{})) + 90 // and its URL
	for p := range f.slots.parts {
		for _, name := range []string{"items", "text", "dirty"} {
			list := peek(&p.Pool, name)
			n += list.Cap() * int(list.Type().Elem().Size())
		}
		n += cap(p.marks)*int(unsafe.Sizeof(mark{})) + cap(p.index.cells)*5 + (len(p.fresh)+len(p.taken))*queued
		for i := range peek(&p.Pool, "lanes").Len() {
			n += peek(&p.Pool, "lanes").Index(i).Elem().FieldByName("queue").Cap() * 4
		}
	}
	return n
}

// giant crawls a host of 2,000,000 URLs with room for some of them. Each page has ten new links and ten links to random known
// pages, and takes a millisecond. Without splits, a slot larger than the room would be loaded as a whole after each commit.
func (m *measured) giant(maxPart, room int) {
	const known, pages = 2_000_000, 200_000
	g, h := urls{rand.New(rand.NewPCG(1, 1))}, figureHash()
	f := New(Config{Hash: h, Token: "bot", MaxPart: maxPart, MaxResident: room})
	const host = "www.large.example"
	d := newDisk(h)
	now := epoch
	made, add := 0, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 2))
		u, err := weburl.Parse(fmt.Sprintf("https://%s/%s/%s-%s-%s-%d.html", host, words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))], words[r.IntN(len(words))], i))
		if err != nil {
			m.t.Fatal(err)
		}
		f.Add(now, linkOf(h, u, blobschema.Queued{Key: host, Rank: 1 + uint32(r.IntN(6))}))
	}
	for ; made < 1000; made++ {
		add(made)
	}
	c, idle := committing{f: f, d: d, t: m.t}, 0
	start := ledger.Processor()
	for done := 0; done < pages; {
		t, ok := f.Next(now, false)
		if !ok {
			if idle++; idle > 10_000 {
				m.t.Fatalf("more than 10,000 commits without a request: %+v", f.Counts())
			}
			c.commit(now)
			continue
		}
		o := &actor.Outcome{Page: blobschema.Page{Outcome: blobschema.OutcomeOK, Status: 200}, Response: time.Millisecond, Started: now}
		now = now.Add(time.Millisecond)
		f.Done(now, t, o)
		if t.Request.Robots {
			continue
		}
		done++
		for range 10 {
			if made < known {
				add(made)
				made++
			}
			add(g.r.IntN(made))
		}
		if done%2500 == 0 {
			c.commit(now)
		}
	}
	all := ledger.Processor() - start
	n := f.Counts()
	parts := 0
	for _, s := range f.slots.byID {
		for range s.parts {
			parts++
		}
	}
	m.say("parts, of one slot", float64(parts), 0, "")
	m.say("entries in memory, at most", float64(c.most), 0, "")
	m.say("bytes of them, at most", float64(c.peak)/1e6, 0, "MB")
	m.say("URLs that came for a part in memory", 100*float64(n.Hits)/float64(n.Hits+n.Misses), 0, "%")
	m.say("halvings", float64(n.Halved), 0, "")
	m.say("CPU of a commit with halvings, at most", float64(c.longest.Microseconds())/1e3, 0, "ms")
	m.say("CPU per halving", float64(c.halving.Microseconds())/1e3/float64(max(1, n.Halved)), 0, "ms")
	m.say("loads", float64(c.loads), 0, "")
	m.say("CPU of a Load", float64(c.loading.Microseconds())/1e3/float64(max(1, c.loads)), 0, "ms")
	m.say("entries loaded, per page", float64(c.loaded)/pages, 0, "")
	m.say("CPU of Load, per page", float64(c.loading.Microseconds())/pages, 0, "us")
	m.say("entries stored, per page", float64(c.stored)/pages, 0, "")
	m.say("commits", float64(c.commits), 0, "")
	m.say("commits with nothing to ask for", float64(idle), 0, "")
	m.say("CPU of all, the test's own work included", all.Seconds(), 0, "s")
	sums, err := cbor.Marshal(f.Summaries())
	if err != nil {
		m.t.Fatal(err)
	}
	m.say("summaries in a manifest", float64(len(sums)), 0, "B")
}

// committing is a frontier that commits to a disk, with the time that this takes.
type committing struct {
	f *Frontier
	d *disk
	t testing.TB

	halving, longest, loading                  time.Duration
	loads, loaded, stored, commits, peak, most int
}

func (c *committing) commit(now time.Time) {
	run, _ := c.f.Delta(uint64(c.commits))
	c.commits++
	c.stored += run.Len()
	c.d.store(run)
	before, start := c.f.Counts().Halved, ledger.Processor()
	c.f.Committed()
	took := ledger.Processor() - start
	if n := c.f.Counts().Halved - before; n > 0 {
		c.halving += took
		c.longest = max(c.longest, took)
	}
	c.load(now)
	c.peak, c.most = max(c.peak, c.f.bytes()), max(c.most, c.f.slots.resident)
}

func (c *committing) load(now time.Time) {
	for _, id := range c.f.Wanted(now, false) {
		run := c.d.read(id)
		start := ledger.Processor()
		if err := c.f.Load(now, id, run); err != nil {
			c.t.Fatal(err)
		}
		c.loading += ledger.Processor() - start
		c.loads++
		c.loaded += len(run.Settled) + len(run.Queued)
	}
}
