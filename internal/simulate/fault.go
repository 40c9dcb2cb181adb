package simulate

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
)

// Kind is a sort of thing that goes wrong.
type Kind uint8

// The kinds of fault. Those of an effect are decided each time it is issued.
const (
	CrashBefore   Kind = iota // the process dies before the effect is carried out, or while it waits for it
	CrashAfter                // after it was carried out, and before the process hears of it
	CrashReceived             // with messages that nobody else can see for a while
	CrashAsking               // as it asks a host
	Lost                      // nothing happens, and the reply is an error
	Doubt                     // it happens, and the reply is an error
	Slow                      // it takes up to four minutes
	Throttle                  // all effects on the table, the queues or the objects fail for some seconds
	SentInPart                // of several messages some are sent, and the reply is an error
	MailDropped               // a message is accepted, and gone
	MailRepeated              // a message is delivered twice
	MailLate                  // a message is delivered up to 20 s late
	MailReordered             // messages received at once are in another order
	MailDamaged               // a copy with a broken bit is delivered too
	MailVersion               // likewise a copy of an unknown version
	MailForeign               // likewise one of another crawl
	MailMisled                // likewise one that goes to another partition
	MailHuge                  // likewise 256 KiB that mean nothing
	MailEmpty                 // likewise nothing
	WakeDropped               // a wake is gone
	Freeze                    // the process stands still for one to six minutes, mostly longer than its lease
	Stop                      // the step is told to end
	Skew                      // the clock of a process is wrong by up to maxSkew
	Jump                      // the clock of a process is set, within the same bound
	TwoTicks                  // a second tick begins with the first
	HostDown                  // a host gives no answer, or only errors, for up to ten minutes
	HostSlow                  // a host takes up to a hundred times as long as before, likewise
	HostChanged               // the page asked for is another one from now on
	RequestJunk               // what nobody can read comes to the intake

	// What an operator does is decided by the rest of the scenario.
	Halt      // the crawl is paused or stopped, and resumed
	LateSeeds // seeds are given while the crawl runs, or after it
	Recrawl   // a URL is asked for once more
	ScaleUp   // partitions are added
	ScaleDown // partitions are left without slots
	MoveSlots // a few slots go to other partitions, perhaps to new ones
	RollBack  // the map becomes what it was before the last change
	TwoMaps   // a second change comes before the first is carried out

	// What comes of it.
	TakenOver  // a step takes the lease of one that crashed, or stood still
	LeaseLost  // a step finds that another has taken its lease
	SlotsGiven // a commit that gives slots away
	SlotsTaken // a commit that takes slots over
	MapMade    // a tick changes the number of partitions, or evens their load
	RunDeleted // a tick deletes a run that was merged into another

	CrashMoving // all processes die just after slots were ordered to move (last: what is drawn goes by the number)

	kinds
)

var kindNames = [kinds]string{
	"crash before", "crash after", "crash received", "crash asking", "lost", "doubt", "slow", "throttle", "sent in part",
	"mail dropped", "mail repeated", "mail late", "mail reordered", "mail damaged", "mail version", "mail foreign",
	"mail misled", "mail huge", "mail empty", "wake dropped", "freeze", "stop", "skew", "jump", "two ticks",
	"host down", "host slow", "host changed", "request junk", "halt", "late seeds", "recrawl",
	"scale up", "scale down", "move slots", "roll back", "two maps",
	"taken over", "lease lost", "slots given", "slots taken", "map made", "run deleted", "crash moving",
}

// String is the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Kinds are all kinds, in the order of their declaration.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// harmless faults happen all the time, and count for no bound.
func (k Kind) harmless() bool { return k == MailLate || k == MailReordered || k == Skew }

// maxSkew bounds how far a clock is from the true time, so that two of them differ by less
// than half of the margin that leases have.
const maxSkew = time.Second

// Faults says what goes wrong. The zero value is a world without faults.
type Faults struct {
	Chances map[Kind]float64 // of a fault each time it can happen; 0 never, 1 always
	Max     int              // after so many the world is kind, so that a run ends; harmless ones do not count
	// Only are the faults that happen, if it is not nil, whatever Chances and Max say.
	Only []Fault
}

// Fault is one thing that goes wrong. Whether it does hangs on nothing but the seed and
// this, so that a fault left out moves no other, unless a process does something else for it.
type Fault struct {
	Kind Kind
	Who  string // the process, "step 3/7" for the seventh of partition 3
	N    int    // how often it was decided before whether this process has a fault of this kind
}

// identity is what a process decides and draws with.
type identity struct {
	name    string
	key     uint64
	decided [kinds]int
	rng     *rand.Rand // for all that is no fault
}

func newIdentity(seed uint64, name string) identity {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	key := mix(seed ^ mix(h.Sum64()))
	return identity{name: name, key: key, rng: rand.New(rand.NewPCG(key, 0x0b))}
}

// between draws a time.
func (id *identity) between(lo, hi time.Duration) time.Duration { return between(id.rng, lo, hi) }

func between(r *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.Int64N(int64(hi-lo)+1))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fault decides whether a fault of a kind happens now, and takes note of it.
func (w *world) fault(id *identity, k Kind) bool {
	f := Fault{Kind: k, Who: id.name, N: id.decided[k]}
	id.decided[k]++
	if w.only != nil {
		if !w.only[f] {
			return false
		}
	} else {
		if w.odds[k] <= 0 || !k.harmless() && w.suffered >= w.cfg.Faults.Max {
			return false
		}
		if float64(id.draw(k, f.N)>>11)*0x1p-53 >= w.odds[k] {
			return false
		}
	}
	if !k.harmless() {
		w.suffered++
	}
	w.result.Fired = append(w.result.Fired, f)
	w.count(k)
	return true
}

// draw is the random number of a decision.
func (id *identity) draw(k Kind, n int) uint64 {
	return mix(id.key ^ mix(uint64(k)<<32|uint64(n)))
}

// detail draws what there is to draw about the fault that just happened.
func (id *identity) detail(k Kind) *rand.Rand {
	return rand.New(rand.NewPCG(id.draw(k, id.decided[k]-1), 0xde7a11))
}

// count takes note of something that happened.
func (w *world) count(k Kind) {
	w.result.Faults[k]++
	w.note("fault", k.String())
}

// identifier is the name of the constant.
func (k Kind) identifier() string {
	var b strings.Builder
	for _, word := range strings.Fields(k.String()) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
