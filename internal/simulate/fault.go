package simulate

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault or of another rare event.
type Kind uint8

// These are the kinds of fault. A fault of an effect is decided each time the effect is issued.
const (
	CrashBefore   Kind = iota // the process dies before the effect is applied, or while it waits for it
	CrashAfter                // the process dies after the effect is applied, before it gets the reply
	CrashReceived             // the process dies with messages that are invisible to others for a while
	CrashAsking               // the process dies as it requests a URL
	Lost                      // the effect is not applied, and the reply is an error
	Doubt                     // the effect is applied, and the reply is an error
	Slow                      // the effect takes up to four minutes
	Throttle                  // all effects on the table, the queues or the objects fail for some seconds
	SentInPart                // only some of several messages are sent, and the reply is an error
	MailDropped               // a message is accepted and lost
	MailRepeated              // a message is delivered twice
	MailLate                  // a message is delivered up to 20 s late
	MailReordered             // messages received together are in another order
	MailDamaged               // a copy with a flipped bit is delivered too
	MailVersion               // a copy with an unknown version is delivered too
	MailForeign               // a copy for another crawl is delivered too
	MailMisled                // a copy goes to another partition
	MailHuge                  // 256 KiB of nonsense are delivered too
	MailEmpty                 // an empty message is delivered too
	WakeDropped               // a wake is lost
	Freeze                    // the process stands still for one to six minutes, usually longer than its lease
	Stop                      // the step gets a Stop
	Skew                      // the clock of a process is wrong by up to maxSkew
	Jump                      // the clock of a process is set, within the same bound
	TwoTicks                  // a second coordinator run begins together with the first
	HostDown                  // a host does not answer, or only with errors, for up to ten minutes
	HostSlow                  // a host takes up to a hundred times as long, for up to ten minutes
	HostChanged               // the requested page changes
	RequestJunk               // an unreadable message reaches the intake

	// The rest of the scenario decides these actions of an operator.
	Halt      // the crawl is paused or stopped, and resumed
	LateSeeds // seeds are added while the crawl runs, or after its end
	Recrawl   // a URL is requested again
	ScaleUp   // partitions are added
	ScaleDown // partitions lose all their slots
	MoveSlots // a few slots move to other partitions, perhaps new ones
	RollBack  // the map becomes the one before the last change
	TwoMaps   // a second change comes before the first one is carried out

	// These are consequences.
	TakenOver  // a step takes the lease of one that crashed or stood still
	LeaseLost  // a step finds that another has taken its lease
	SlotsGiven // a commit gives slots away
	SlotsTaken // a commit takes slots over
	MapMade    // a coordinator run changes the number of partitions, or balances their load
	RunDeleted // a coordinator run deletes a merged run

	CrashMoving // all processes die just after slots were ordered to move

	// Faults are drawn by number, so new kinds come last.

	MailHidden // the answer to a receive is lost: it fails, and its messages are hidden from all until their visibility ends

	kinds
)

var kindNames = [kinds]string{
	"crash before", "crash after", "crash received", "crash asking", "lost", "doubt", "slow", "throttle", "sent in part",
	"mail dropped", "mail repeated", "mail late", "mail reordered", "mail damaged", "mail version", "mail foreign",
	"mail misled", "mail huge", "mail empty", "wake dropped", "freeze", "stop", "skew", "jump", "two ticks",
	"host down", "host slow", "host changed", "request junk", "halt", "late seeds", "recrawl",
	"scale up", "scale down", "move slots", "roll back", "two maps",
	"taken over", "lease lost", "slots given", "slots taken", "map made", "run deleted", "crash moving", "mail hidden",
}

// String returns the name of the kind.
func (k Kind) String() string { return kindNames[k] }

// Kinds returns all kinds, in order of declaration.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// harmless reports whether faults of this kind happen all the time and do not count towards the bound.
func (k Kind) harmless() bool { return k == MailLate || k == MailReordered || k == Skew }

// maxSkew bounds the error of a clock, so that two clocks differ by less than half of the margin of leases.
const maxSkew = time.Second

// Faults configures what goes wrong. The zero value is a world without faults.
type Faults struct {
	Chances map[Kind]float64 // chance of each fault each time it can happen, from 0 to 1
	Max     int              // number of faults after which no more happen, so that a run ends; harmless ones do not count
	// Only lists the faults that happen, if it is not nil, whatever Chances and Max say.
	Only []Fault
}

// Fault is one fault. Whether it happens depends only on the seed and these fields. So leaving one fault out moves no
// other, unless a process acts differently because of it.
type Fault struct {
	Kind Kind
	Who  string // the process: "step 3/7" is the seventh step of partition 3
	N    int    // number of earlier decisions about this kind for this process
}

// identity is the source of the decisions and random numbers of a process.
type identity struct {
	name    string
	key     uint64
	decided [kinds]int
	rng     *rand.Rand // source for everything that is not a fault
}

func newIdentity(seed uint64, name string) identity {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	key := mix(seed ^ mix(h.Sum64()))
	return identity{name: name, key: key, rng: rand.New(rand.NewPCG(key, 0x0b))}
}

// between draws a duration.
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

// fault decides whether a fault of a kind happens now, and records it.
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

// draw returns the random number of a decision.
func (id *identity) draw(k Kind, n int) uint64 {
	return mix(id.key ^ mix(uint64(k)<<32|uint64(n)))
}

// detail returns a random source for the details of the fault that just happened.
func (id *identity) detail(k Kind) *rand.Rand {
	return rand.New(rand.NewPCG(id.draw(k, id.decided[k]-1), 0xde7a11))
}

// count records that something happened.
func (w *world) count(k Kind) {
	w.result.Faults[k]++
	w.note("fault", k.String())
}
