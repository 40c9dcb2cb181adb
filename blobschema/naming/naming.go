// Package naming makes and parses the names of everything that is stored and sent: objects, keys of
// the table, queues, and the files of a crawl's folder.
//
// No other package makes or parses a name. All names of objects and keys contain the crawl's id, except
// [ActiveKey]. Objects sort by partition and time. Partition, number and fence, or a hash of the content, make
// them unique (I6).
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/orbweaver/orbweaver/partition"
)

// The queues.
const (
	WakesQueue       = "wakes"
	IntakeQueue      = "intake"
	DeadLettersQueue = "dead-letters"
	IndexQueue       = "index" // of jobs for partitions with commits that are not indexed
	RankQueue        = "rank"  // of jobs for partitions with a round of a rank job
)

const (
	// ActiveKey is the key that names the deployment's active crawl.
	ActiveKey = "active"
	// MarkerPrefix and the id of a platform name the empty object that shows to which platform a bucket belongs. No
	// crawl id contains an underscore.
	MarkerPrefix = "_platform/"
)

// MaxCrawlID is the longest crawl id, in bytes.
const MaxCrawlID = 32

// CheckCrawlID returns an error unless id is a crawl id: 1 to 32 of a-z, 0-9 and
// the hyphen, so that keys, paths and names need no escapes.
func CheckCrawlID(id string) error {
	if len(id) < 1 || len(id) > MaxCrawlID {
		return fmt.Errorf("crawl id %.40q has not 1 to %d bytes", id, MaxCrawlID)
	}
	if strings.Trim(id, letters+digits+"-") != "" {
		return fmt.Errorf("crawl id %q has characters other than a-z, 0-9 and the hyphen", id)
	}
	return nil
}

// Characters of names.
const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyz"
)

// parser parses a name from its front. It accepts only names as the functions
// of this package write them: a name and its parts determine each other.
type parser struct {
	name, rest string
	bad        bool
}

// parse removes the crawl's id from the front of a name.
func parse(name string) (crawl string, p parser) {
	i := max(strings.IndexByte(name, '/'), 0)
	return name[:i], parser{name: name, rest: name[i:], bad: CheckCrawlID(name[:i]) != nil}
}

func (p *parser) text(s string) {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest, p.bad = rest, p.bad || !ok
}

// number removes a text and the number after it, which has leading zeros up to a width.
func (p *parser) number(before string, width int) uint64 {
	p.text(before)
	end := len(p.rest) - len(strings.TrimLeft(p.rest, digits))
	s := p.rest[:end]
	n, err := strconv.ParseUint(s, 10, 64)
	p.rest, p.bad = p.rest[end:], p.bad || err != nil || end < width || end > width && s[0] == '0'
	return n
}

func (p *parser) partition(before string) partition.ID {
	n := p.number(before, 5)
	p.bad = p.bad || n > math.MaxUint32
	return partition.ID(n)
}

// hash removes the first digits of a [contentHash].
func (p *parser) hash() {
	const size = 16
	s := p.rest[:min(size, len(p.rest))]
	p.rest, p.bad = p.rest[len(s):], p.bad || len(s) < size || strings.Trim(s, digits+letters[:6]) != ""
}

// end returns an error unless the whole name was parsed; what describes the expected object.
func (p *parser) end(what string) error {
	if p.bad || p.rest != "" {
		return fmt.Errorf("parse name: %.100q is not a name of %s", p.name, what)
	}
	return nil
}

// Commit names a commit object. The name contains the fence, so that two steps
// that both believe they own the partition never write the same object (I4, I6).
func Commit(crawl string, p partition.ID, seq, fence uint64) string {
	return fmt.Sprintf("%s/p%05d/c%010d-f%08d", crawl, p, seq, fence)
}

// ParseCommit returns the arguments of Commit.
func ParseCommit(name string) (p partition.ID, seq, fence uint64, err error) {
	_, n := parse(name)
	p, seq, fence = n.partition("/p"), n.number("/c", 10), n.number("-f", 8)
	return p, seq, fence, n.end("a commit")
}

// Run names the object of a merged run, written after the commit seq.
func Run(crawl string, p partition.ID, seq, fence uint64, tier uint8) string {
	return fmt.Sprintf("%s/p%05d/r%010d-f%08d-t%d", crawl, p, seq, fence, tier)
}

// ParseRun returns the arguments of Run.
func ParseRun(name string) (p partition.ID, seq, fence uint64, tier uint8, err error) {
	_, n := parse(name)
	p, seq, fence = n.partition("/p"), n.number("/r", 10), n.number("-f", 8)
	t := n.number("-t", 1)
	n.bad = n.bad || t > math.MaxUint8
	return p, seq, fence, uint8(t), n.end("a run")
}

// WARCPrefix begins the names of a crawl's WARC objects.
func WARCPrefix(crawl string) string { return crawl + "/warc/" }

// WARC names a WARC object: number serial of a partition under a
// fence. Its last part repeats the others, for files outside of the store.
func WARC(crawl string, p partition.ID, fence, serial uint64, gzipped bool) string {
	ext := "warc"
	if gzipped {
		ext = "warc.gz"
	}
	return fmt.Sprintf("%s/warc/orbweaver-%s-p%05d-f%08d-%06d.%s", crawl, crawl, p, fence, serial, ext)
}

// ParseWARC returns the arguments of WARC.
func ParseWARC(name string) (p partition.ID, fence, serial uint64, err error) {
	crawl, n := parse(name)
	n.text("/warc/orbweaver-" + crawl)
	p, fence, serial = n.partition("-p"), n.number("-f", 8), n.number("-", 6)
	n.text(".warc")
	n.rest = strings.TrimSuffix(n.rest, ".gz")
	return p, fence, serial, n.end("a WARC object")
}

// Seeds names a batch of seeds by its content, so that the same batch given twice has no
// effect.
func Seeds(crawl string, content []byte) string {
	return SeedsPrefix(crawl) + contentHash(content)[:12]
}

// SeedsPrefix begins the names of a crawl's batches of seeds.
func SeedsPrefix(crawl string) string { return crawl + "/seeds/" }

// Ranks names a table of host scores by its content.
func Ranks(crawl string, content []byte) string {
	return RanksPrefix(crawl) + contentHash(content)[:16]
}

// RanksPrefix begins the names of a crawl's tables of host scores.
func RanksPrefix(crawl string) string { return crawl + "/ranks/" }

// Dead names a dead letter by its stored content, which includes the reason.
func Dead(crawl string, content []byte) string {
	return DeadPrefix(crawl) + contentHash(content)[:32]
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// CDXJIndex names the capture index.
func CDXJIndex(crawl string) string { return crawl + "/cdxj/index.cdxj" }

// CrawlKey is the key of the [Crawl] record.
func CrawlKey(crawl string) string { return crawl + "/crawl" }

// HeadKey is the key of a partition's [Head].
func HeadKey(crawl string, p partition.ID) string { return fmt.Sprintf("%s/head/%05d", crawl, p) }

// DesiredKey is the key of the [DesiredState].
func DesiredKey(crawl string) string { return crawl + "/wish" }

// GrantsKey is the key of the [Grants].
func GrantsKey(crawl string) string { return crawl + "/grants" }

// HostsKey is the key of the n-th pack of a partition's host estimates.
func HostsKey(crawl string, p partition.ID, n int) string {
	return fmt.Sprintf("%s/hosts/%05d/%04d", crawl, p, n)
}

// MailboxQueue names the queue of the mail to a partition.
func MailboxQueue(p partition.ID) string { return fmt.Sprintf("mailbox-%05d", p) }

// Queues returns the names of all queues of a crawl with that many partitions, without [DeadLettersQueue].
func Queues(partitions int) []string {
	names := []string{WakesQueue, IntakeQueue, IndexQueue, RankQueue}
	for p := range partitions {
		names = append(names, MailboxQueue(partition.ID(p)))
	}
	return names
}

// Segment names a segment made for the manifest of a number, by its content.
func Segment(crawl string, p partition.ID, number uint64, content []byte) string {
	return fmt.Sprintf("%s/index/p%05d/s%010d-%s", crawl, p, number, contentHash(content)[:16])
}

// ParseIndex returns the arguments of IndexManifest or Segment, except the content.
func ParseIndex(name string) (p partition.ID, number uint64, err error) {
	_, n := parse(name)
	n.text("/index")
	p = n.partition("/p")
	kind := "/m"
	if strings.HasPrefix(n.rest, "/s") {
		kind = "/s"
	}
	number = n.number(kind, 10)
	n.text("-")
	n.hash()
	return p, number, n.end("an index object")
}

// IndexPrefix begins the names of a crawl's index objects.
func IndexPrefix(crawl string) string { return crawl + "/index/" }

// IndexKey is the key of a partition's [IndexHead].
func IndexKey(crawl string, p partition.ID) string { return fmt.Sprintf("%s/index/%05d", crawl, p) }

// IndexManifest names the manifest of a number by its content, so that two steps that make one at the same
// time never write different bytes under one name (I6).
func IndexManifest(crawl string, p partition.ID, number uint64, content []byte) string {
	return fmt.Sprintf("%s/index/p%05d/m%010d-%s", crawl, p, number, contentHash(content)[:16])
}

// RankKey is the key of the [ranks.Job].
func RankKey(crawl string) string { return crawl + "/rank" }

// RankHeadKey is the key of a partition's [ranks.Head].
func RankHeadKey(crawl string, p partition.ID) string { return fmt.Sprintf("%s/rank/%05d", crawl, p) }

// RankPrefix begins the names of the objects that rank heads name.
func RankPrefix(crawl string) string { return crawl + "/rank/" }

// RankObject names an object that a rank job makes for a partition, by its kind, a word of a few
// letters, and its content, so that two steps that make it at the same time write equal bytes (I6).
func RankObject(crawl string, p partition.ID, job uint64, what string, content []byte) string {
	return fmt.Sprintf("%sp%05d/j%08d-%s-%s", RankPrefix(crawl), p, job, what, contentHash(content)[:16])
}

// ParseRankObject returns the arguments of RankObject, except the content.
func ParseRankObject(name string) (p partition.ID, job uint64, what string, err error) {
	_, n := parse(name)
	n.text("/rank")
	p, job = n.partition("/p"), n.number("/j", 8)
	n.text("-")
	what, n.rest, _ = strings.Cut(n.rest, "-")
	n.hash()
	n.bad = n.bad || what == "" || strings.Trim(what, digits+letters) != ""
	return p, job, what, n.end("a rank object")
}

// RequestsKey is the key of the [Requests].
func RequestsKey(crawl string) string { return crawl + "/requests" }

// ClaimsKey is the key of the record of submissions that wait for their key (internal/inbound).
func ClaimsKey(crawl string) string { return crawl + "/claims" }

// TickKey is the key of the [TickRecord].
func TickKey(crawl string) string { return crawl + "/tick" }

// Request names the URLs of one mail of a request by their content.
func Request(crawl string, content []byte) string {
	return RequestPrefix(crawl) + contentHash(content)[:24]
}

// RequestPrefix begins the names of the URLs of a crawl's requests.
func RequestPrefix(crawl string) string { return crawl + "/requests/" }

// MapKey is the key of the [MapRecord].
func MapKey(crawl string) string { return crawl + "/map" }

// replayed ends the names of [Replayed].
const replayed = ".replayed"

// DeadPrefix begins the names of a crawl's dead letters, and of the notes beside them.
func DeadPrefix(crawl string) string { return crawl + "/dead/" }

// Replayed names the empty object that records that the body of a dead letter was resent.
func Replayed(dead string) string { return dead + replayed }

// IsReplayed reports whether a name is a result of Replayed.
func IsReplayed(name string) bool { return strings.HasSuffix(name, replayed) }

// Map names the object of a map by its epoch and content.
func Map(crawl string, epoch partition.Epoch, content []byte) string {
	return fmt.Sprintf("%se%08d-%s", MapPrefix(crawl), epoch, contentHash(content)[:16])
}

// ParseMap returns the epoch of a name of Map.
func ParseMap(name string) (epoch partition.Epoch, err error) {
	_, n := parse(name)
	epoch = partition.Epoch(n.number("/maps/e", 8))
	n.text("-")
	n.hash()
	return epoch, n.end("a map")
}

// MapPrefix begins the names of a crawl's maps.
func MapPrefix(crawl string) string { return crawl + "/maps/" }

// Kind is a kind of stored data, by what can restore it.
type Kind uint8

// The kinds.
const (
	NoObject Kind = iota // not a name of an object
	State                // commits, runs, and their sources: seeds, requests, maps, dead letters
	Answers              // WARC files
	Derived              // index, ranks and capture index, which can be rebuilt
)

// KindOf returns the kind of the object of a name.
func KindOf(name string) Kind {
	crawl, _, _ := strings.Cut(name, "/")
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) && name != prefix }
	_, _, _, commitErr := ParseCommit(name)
	_, _, _, _, runErr := ParseRun(name)
	_, mapErr := ParseMap(name)
	_, _, _, warcErr := ParseWARC(name)
	_, _, indexErr := ParseIndex(name)
	_, _, _, rankErr := ParseRankObject(name)
	switch {
	case CheckCrawlID(crawl) != nil:
		return NoObject
	case warcErr == nil:
		return Answers
	case indexErr == nil, rankErr == nil, begins(RanksPrefix(crawl)), name == CDXJIndex(crawl):
		return Derived
	case commitErr == nil, runErr == nil, mapErr == nil, begins(SeedsPrefix(crawl)), begins(RequestPrefix(crawl)), begins(DeadPrefix(crawl)):
		return State
	}
	return NoObject
}
