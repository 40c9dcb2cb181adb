package crawl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/partition"
)

// TickConfig says what a tick looks after.
type TickConfig struct {
	Crawl     string // id
	Process   string // as in StepConfig
	Exclusive bool   // as in StepConfig
	// WakeAgain is after how long a wake that no step has answered is sent again, and twice as
	// long each further time, up to 15 minutes: it may be lost, or wait for a free function.
	// Default 1 min, 3 s with a TickMemory.
	WakeAgain   time.Duration
	ResendAfter time.Duration // how often mail that is not applied is sent again at most, and how old it is then where a step is at work; default 10 min
	SweepEvery  time.Duration // how often runs that were merged are looked for, to be deleted; default 10 min
	// Settle has index and ranks follow at once, as if the crawl were over.
	Settle     bool
	HostsEvery time.Duration // how often host estimates are copied to the hosts table; default 1 min
	// Where the crawl's settings let ticks change the number of partitions: how often they look,
	// default 2 min; how many pages one partition may fetch in ten minutes, default 20,000; and
	// how many mailboxes there are, 0 for as many as it takes.
	PlanEvery time.Duration
	Capacity  float64
	Mailboxes int
	// DailyCalls limits the function calls of a day; the coordinator pauses a crawl that exceeds it. 0: no limit.
	DailyCalls int64
	Policy     frontier.Policy // as in StepConfig
	// Spent is what the process was billed for since the tick began; nil: that is not counted.
	Spent func() blobschema.Calls
}

// TickMemory is what one process's ticks remember from one to the next. Losing it
// costs a few wakes and index jobs, and a tick at the end. The zero value is ready for use.
type TickMemory struct{ notes blobschema.TickNotes }

// Report is what a tick found.
type Report struct {
	Crawl    blobschema.Crawl
	Wish     blobschema.Wish
	Heads    []blobschema.Head // of the partitions that have one
	Totals   blobschema.Totals // over all heads, as of their last commits
	Woken    []partition.ID
	Leased   int
	Finished bool // nothing is left to do
	Quiet    bool // it would be finished if the next tick finds the same
	Limited  bool // the page limit is reached
	// Idle says that nothing was left to do at an earlier tick, and that nothing has come
	// since that could change it: the partitions were not looked at, and Heads is empty.
	Idle     bool
	Requests blobschema.Requests
	Map      blobschema.MapRecord
	// Indexing is how many partitions have commits, or texts of links, that are not in the index yet,
	// where there is to be one. WantsRanks says that a rank job should be begun, Ranking that one is under way.
	Indexing            int
	WantsRanks, Ranking bool
}

// Partitions is how many partitions there are, or ever were.
func (r *Report) Partitions() int { return max(r.Crawl.Partitions, r.Map.Partitions) }

// Tick is one run of the coordinator: it reads the heads and does what follows from
// them. Every action is idempotent: two ticks at once do no harm, and a tick that dies
// is made up for by the next. It is an [actor.Actor].
type Tick struct {
	actor.Procedure
	cfg    TickConfig
	mem    *TickMemory
	report Report
	first  *partition.Map // of epoch 1
	grants blobschema.Grants
	ranks  ranks.Job // of a crawl with an index, once it was read
	heads  map[partition.ID]*blobschema.Head
	record blobschema.TickRecord
	notes  *blobschema.TickNotes          // in mem, or in record
	learnt []func(*blobschema.TickRecord) // changes of the record, made at the end
	told   blobschema.Calls               // of cfg.Spent, what the record has
	// indexCalls are the function calls of all index steps, as far as this run read their records.
	indexCalls int64
}

// NewTick returns a tick. mem is shared by the ticks of a process, one at a time. It is
// nil where each tick may run in another process: then what it would hold is in the
// table, and a tick of an idle crawl reads a few records only.
func NewTick(cfg TickConfig, mem *TickMemory) *Tick {
	if cfg.WakeAgain == 0 {
		cfg.WakeAgain = time.Minute
		if mem != nil {
			cfg.WakeAgain = 3 * time.Second
		}
	}
	if cfg.ResendAfter == 0 {
		cfg.ResendAfter = 10 * time.Minute
	}
	if cfg.HostsEvery == 0 {
		cfg.HostsEvery = time.Minute
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = 10 * time.Minute
	}
	if cfg.PlanEvery == 0 {
		cfg.PlanEvery = 2 * time.Minute
	}
	if cfg.Capacity == 0 {
		cfg.Capacity = 20_000
	}
	k := &Tick{cfg: cfg, mem: mem, heads: map[partition.ID]*blobschema.Head{}}
	k.Body = k.run
	return k
}

// Report returns what the tick found, once it has ended well.
func (k *Tick) Report() Report { return k.report }

func (k *Tick) run(t *actor.Task) error {
	if err := k.readAll(t); err != nil || k.report.Idle {
		return err
	}
	if err := k.publishSeeds(t); err != nil {
		return err
	}
	if err := k.changeWish(t); err != nil {
		return err
	}
	if err := k.watchTopics(t); err != nil {
		return err
	}
	if err := k.steerLooks(t); err != nil {
		return err
	}
	if err := k.moves(t); err != nil {
		return err
	}
	if err := k.wake(t); err != nil {
		return err
	}
	k.finished()
	if err := k.follow(t); err != nil {
		return err
	}
	if err := k.limitCalls(t); err != nil {
		return err
	}
	if err := k.pruneRequests(t); err != nil {
		return err
	}
	if err := k.resend(t); err != nil {
		return err
	}
	// Last, since nothing waits for it, and it reads more the more partitions there are. What
	// went before is kept even if it fails.
	all, err := k.copyHosts(t)
	if err == nil {
		err = k.sweep(t)
	}
	err = errors.Join(err, k.planElastic(t))
	if all {
		k.idle()
	}
	return errors.Join(err, k.remember(t))
}

func (k *Tick) readAll(t *actor.Task) error {
	id := k.cfg.Crawl
	keys := []string{
		naming.CrawlKey(id), naming.WishKey(id), naming.GrantsKey(id), naming.RequestsKey(id), naming.TickKey(id),
		naming.MapKey(id), // before the heads: what it says of moves is true of them
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return err
	}
	if !recs[0].Found {
		return fmt.Errorf("crawl %s has no record", id)
	}
	for i, into := range []any{&k.report.Crawl, &k.report.Wish, &k.grants, &k.report.Requests, &k.record} {
		if err := recs[i].Into(into, keys[i]); err != nil {
			return err
		}
	}
	c := &k.report.Crawl
	if k.report.Map, err = mapRecord(c, recs[5]); err != nil {
		return err
	}
	if k.notes = &k.record.TickNotes; k.mem != nil {
		k.notes = &k.mem.notes
	} else if was := k.record.Idle; was != nil {
		if k.report.Crawl.Settings.Index {
			if err := k.readRankJob(t); err != nil {
				return err
			}
		}
		now := k.whatMatters()
		if now.Finished, now.Limited = was.Finished, was.Limited; now == *was {
			k.report.Idle, k.report.Finished, k.report.Limited = true, was.Finished, was.Limited
			return nil
		}
	}
	if k.first, err = partition.NewMap(c.Slots, c.Partitions); err != nil {
		return err
	}
	keys = make([]string, k.report.Partitions())
	for p := range keys {
		keys[p] = naming.HeadKey(id, partition.ID(p))
	}
	if recs, err = t.Records(keys...); err != nil {
		return err
	}
	k.report.Heads = make([]blobschema.Head, 0, len(recs)) // k.heads points into it
	for p, rec := range recs {
		if !rec.Found {
			continue
		}
		h, err := actor.Decode[blobschema.Head](rec, "head")
		if err != nil {
			return err
		}
		k.report.Heads = append(k.report.Heads, h)
		k.heads[partition.ID(p)] = &k.report.Heads[len(k.report.Heads)-1]
		k.report.Totals.Add(&h.Totals)
		if k.leased(&h) {
			k.report.Leased++
		}
	}
	return nil
}

// leased reports whether a step may be at work under h.
func (k *Tick) leased(h *blobschema.Head) bool {
	if h.Owner == "" || k.cfg.Exclusive && !ownedBy(h.Owner, k.cfg.Process) {
		return false
	}
	return k.Now().Wall.Before(h.LeaseUntil)
}

// batchesAtOnce is how many batches of seeds are sent before the record says so: as many
// as fit one request to a queue, and few enough that a function has time for it.
const batchesAtOnce = 10

// publishSeeds turns batches of seeds into mail: batch i is number i+1 from Intake to
// every partition, so that sending it again is harmless.
func (k *Tick) publishSeeds(t *actor.Task) error {
	c := &k.report.Crawl
	if c.Published >= len(c.SeedBatches) {
		return nil
	}
	links, err := mapping(c)
	if err != nil {
		return err
	}
	for c.Published < len(c.SeedBatches) {
		upTo := min(len(c.SeedBatches), c.Published+batchesAtOnce)
		mails := make([][][]byte, c.Partitions)
		for i := c.Published; i < upTo; i++ {
			batch, err := seedMail(t, c, k.first, links, i, k.cfg.Policy)
			if err != nil {
				return err
			}
			for p, body := range batch {
				mails[p] = append(mails[p], body)
			}
		}
		for p, bodies := range mails {
			if _, err := t.Do(actor.Send{Queue: naming.MailboxQueue(partition.ID(p)), Bodies: bodies}); err != nil {
				return fmt.Errorf("send seeds: %w", err)
			}
		}
		err := actor.Update(t, naming.CrawlKey(c.ID), func(rec *blobschema.Crawl) bool {
			if rec.Published >= upTo {
				return false
			}
			rec.Published = upTo
			return true
		})
		if err != nil {
			return err
		}
		c.Published = upTo
	}
	return nil
}

// seedMail makes the mail of one batch, by partition: always by the map of epoch 1, so
// that its content is the same however often it is sent.
func seedMail(t *actor.Task, c *blobschema.Crawl, pmap *partition.Map, links frontier.Mapping, i int, policy frontier.Policy) ([][]byte, error) {
	urls, err := stored.URLs(t.Object, c.SeedBatches[i])
	if err != nil {
		return nil, err
	}
	if policy, err = policyOf(c, policy); err != nil {
		return nil, err
	}
	shares := make([][]blobschema.Queued, c.Partitions)
	for i := range urls {
		l, ok := links.Stored(&urls[i])
		if !ok {
			continue
		}
		l.Flags |= blobschema.FlagSeed
		l.Rank = seedRank(policy, l)
		p := pmap.Owner(l.Slot)
		shares[p] = append(shares[p], l.Queued())
	}
	mails := make([][]byte, c.Partitions)
	for p, urls := range shares {
		m := blobschema.Mail{Crawl: c.ID, From: partition.Intake, To: partition.ID(p), Number: uint64(i + 1), Epoch: pmap.Epoch(), URLs: urls}
		if mails[p], err = blobschema.EncodeMail(m); err != nil {
			return nil, err
		}
	}
	return mails, nil
}

// changeWish adds to the wish, which all partitions read, what any of them has found:
// hosts that seeds redirected to, and domains that have too many URLs.
func (k *Tick) changeWish(t *actor.Task) error {
	change := func(w *blobschema.Wish) bool {
		hosts := missingIn(w.Scope, k.foundHosts())
		limit := k.report.Crawl.Settings.MaxDomainURLs
		full, half := missingIn(w.Capped, k.largeDomains(limit)), missingIn(w.HalfCapped, k.largeDomains(limit/2))
		full, half = full[:max(0, min(len(full), maxCapped-len(w.Capped)))], half[:max(0, min(len(half), maxCapped-len(w.HalfCapped)))]
		if len(hosts)+len(full)+len(half) == 0 {
			return false
		}
		w.Version++
		w.Scope, w.Capped, w.HalfCapped = append(w.Scope, hosts...), append(w.Capped, full...), append(w.HalfCapped, half...)
		return true
	}
	return k.tell(t, change)
}

// tell changes the wish, which all steps read, if there is anything to change.
func (k *Tick) tell(t *actor.Task, change func(w *blobschema.Wish) bool) error {
	if w := k.report.Wish; !change(&w) {
		return nil
	}
	return actor.Update(t, naming.WishKey(k.report.Crawl.ID), func(w *blobschema.Wish) bool {
		changed := change(w)
		k.report.Wish = *w
		return changed
	})
}

// missingIn returns what of names is not in have, each once.
func missingIn(have, names []string) (out []string) {
	for _, n := range names {
		if !slices.Contains(have, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (k *Tick) foundHosts() (out []string) {
	for i := range k.report.Heads {
		out = append(out, k.report.Heads[i].Scope...)
	}
	return out
}

// largeDomains are the registrable domains of which the partitions together know at least
// limit URLs; none if that is 0.
func (k *Tick) largeDomains(limit int64) (out []string) {
	if limit <= 0 {
		return nil
	}
	sums := map[string]int64{}
	for i := range k.report.Heads {
		for d, n := range k.report.Heads[i].Domains {
			sums[d] += n
		}
	}
	for _, d := range slices.Sorted(maps.Keys(sums)) {
		if sums[d] >= limit {
			out = append(out, d)
		}
	}
	return out
}

// maxCapped bounds the domains that a wish names: what one partition knows too many URLs
// of it leaves out by itself.
const maxCapped = 1000

// expected is the mail that a partition should apply in the end.
func (k *Tick) expected(p partition.ID) uint64 {
	n := k.report.Requests.Sent[p]
	if int(p) < k.report.Crawl.Partitions { // seeds are dealt by the map of epoch 1
		n += uint64(len(k.report.Crawl.SeedBatches))
	}
	for i := range k.report.Heads {
		if sent := k.report.Heads[i].Sent; int(p) < len(sent) {
			n += sent[p]
		}
	}
	return n
}

// answered reports whether nothing is left of requests from outside: none is pending, or on
// its way. While there were none, what mail is under way does not matter.
func (k *Tick) answered() bool {
	if len(k.report.Requests.Sent) == 0 {
		return true
	}
	for p := range partition.ID(k.report.Partitions()) {
		if k.expected(p) != k.applied(p) {
			return false
		}
	}
	return k.report.Totals.Urgent+k.report.Totals.Held == 0
}

func (k *Tick) applied(p partition.ID) uint64 {
	if h := k.heads[p]; h != nil {
		return h.Applied
	}
	return 0
}

// free is how many pages of the limit are granted to nobody; -1 for no limit.
func (k *Tick) free() int64 {
	if k.report.Crawl.Settings.MaxPages == 0 {
		return -1
	}
	free := k.grants.Limit
	for _, n := range k.grants.Granted {
		free -= n
	}
	return free
}

// wake sends a wake to every partition that has something to do and no step.
func (k *Tick) wake(t *actor.Task) error {
	now := k.Now().Wall
	woken := map[partition.ID]blobschema.Waking{}
	var bodies [][]byte
	for p := range partition.ID(k.report.Partitions()) {
		if !k.needsStep(p) {
			continue
		}
		fence := uint64(0)
		if h := k.heads[p]; h != nil {
			fence = h.Fence
		}
		times := 0
		if last, ok := k.notes.Woken[p]; ok && last.Fence == fence {
			wait := min(maxDelay, k.cfg.WakeAgain<<min(max(last.Times, 1)-1, 10))
			if now.Sub(last.At) < wait && !now.Before(last.At) {
				woken[p] = last
				continue // the wake is on its way
			}
			times = last.Times
		}
		woken[p] = blobschema.Waking{Fence: fence, At: now.UTC(), Times: times + 1}
		k.report.Woken = append(k.report.Woken, p)
		bodies = append(bodies, blobschema.EncodeWake(k.report.Crawl.ID, p))
	}
	sent := len(bodies) > 0
	for len(bodies) > 0 {
		n := min(10, len(bodies))
		if _, err := t.Do(actor.Send{Queue: naming.WakesQueue, Bodies: bodies[:n]}); err != nil {
			return fmt.Errorf("send wakes: %w", err)
		}
		bodies = bodies[n:]
	}
	if sent {
		k.note(func(n *blobschema.TickNotes) { n.Woken = woken })
	}
	return nil
}

// note changes what the next tick remembers.
func (k *Tick) note(change func(*blobschema.TickNotes)) {
	change(k.notes)
	if k.mem == nil {
		k.learn(func(r *blobschema.TickRecord) { change(&r.TickNotes) })
	}
}

func (k *Tick) needsStep(p partition.ID) bool {
	h := k.heads[p]
	if h != nil && k.leased(h) || k.report.Wish.Stop {
		return false
	}
	mail := k.expected(p) > k.applied(p)
	if k.hasMoves(p) || h == nil {
		return mail || k.hasMoves(p)
	}
	behind := h.Wish != k.report.Wish.Version || h.Published < h.Seq || h.Totals.Held > 0 || h.Owner != ""
	if mail || behind || looks(&k.report.Crawl.Settings) && stale(h, k.report.Wish.Threshold) && !k.report.Wish.Pause {
		return true
	}
	if k.free() == 0 && k.grants.Granted[p] > h.Totals.Pages {
		return true // it was granted what others may need, and will use it or give it back
	}
	due := !h.Due.IsZero() && !h.Due.After(k.Now().Wall) || h.Totals.Unexamined > 0 && h.Awaits == 0
	switch {
	case !due || k.report.Wish.Pause:
		return false
	case k.free() != 0 || h.Totals.Urgent > 0:
		return true
	}
	return looks(&k.report.Crawl.Settings) && !h.LooksDue.After(k.Now().Wall)
}

// finished applies the rule for the end: every seed applied, nothing pending, all
// mail sent has been applied, seen in two ticks between which no head named a new
// commit.
func (k *Tick) finished() {
	c := &k.report.Crawl
	seqs := map[partition.ID]uint64{}
	quiet := c.Published == len(c.SeedBatches) && len(k.report.Map.Moving) == 0 && k.report.Map.Target == ""
	for p := range partition.ID(k.report.Partitions()) {
		if k.expected(p) != k.applied(p) {
			quiet = false
		}
		h := k.heads[p]
		if h == nil {
			continue
		}
		seqs[p] = h.Seq
		if h.Totals.Pending+h.Totals.Unexamined+h.Totals.Held > 0 || h.Wish != k.report.Wish.Version {
			quiet = false
		}
	}
	k.report.Quiet = quiet
	k.report.Finished = quiet && k.notes.Quiet != nil && maps.Equal(k.notes.Quiet, seqs)
	if quiet && !k.report.Finished {
		k.note(func(n *blobschema.TickNotes) { n.Quiet = seqs })
	}
	k.report.Limited = c.Settings.MaxPages > 0 && !looks(&c.Settings) && k.report.Totals.Pages >= c.Settings.MaxPages && k.answered()
}

// whatMatters is all that can make an idle crawl go on, as it is now.
func (k *Tick) whatMatters() blobschema.Idle {
	w := &k.report.Wish
	now := blobschema.Idle{Batches: len(k.report.Crawl.SeedBatches), Limit: k.grants.Limit, Wish: w.Version, Orders: w.Orders, Map: k.report.Map.Version, Index: k.report.Crawl.Settings.Index}
	if done := k.ranks.Finished(); done != nil {
		now.Ranks = done.Number
	}
	for _, n := range k.report.Requests.Sent {
		now.Requests += n
	}
	return now
}

// over reports whether no step is at work, nor will be for its own sake.
func (k *Tick) over() bool {
	r := &k.report
	return r.Leased == 0 && (r.Finished || r.Limited || r.Wish.Stop || r.Wish.Pause)
}

// idle takes note of it if nothing is to do, so that the next ticks need not look.
func (k *Tick) idle() {
	if k.mem != nil || !k.over() || len(k.record.Sweep) > 0 || k.report.Following() {
		return
	}
	for p := range partition.ID(k.report.Partitions()) {
		if k.needsStep(p) {
			return
		}
	}
	now := k.whatMatters()
	now.Finished, now.Limited = k.report.Finished, k.report.Limited
	k.learn(func(r *blobschema.TickRecord) { r.Idle = &now })
}
