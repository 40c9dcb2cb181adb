package blobschema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"

	"github.com/orbweaver/orbweaver/partition"
)

// The queues.
const (
	WakesQueue       = "wakes"
	IntakeQueue      = "intake"
	DeadLettersQueue = "dead-letters"
)

// ActiveKey is the KV key that names the deployment's active crawl.
const ActiveKey = "active"

// MaxCrawlID is the longest crawl id, in bytes.
const MaxCrawlID = 32

// CheckCrawlID says what is wrong with a crawl id: it is 1 to 32 of a-z, 0-9 and
// the hyphen, so that it may stand in any key, path or name unescaped.
func CheckCrawlID(id string) error {
	if len(id) < 1 || len(id) > MaxCrawlID {
		return fmt.Errorf("crawl id %.40q has not 1 to %d bytes", id, MaxCrawlID)
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("crawl id %q has characters other than a-z, 0-9 and the hyphen", id)
		}
	}
	return nil
}

// CommitName names a commit object. The fence is part of it, so that two steps
// that both believe they own the partition never write the same object (I4, I6).
func CommitName(crawl string, p partition.ID, seq, fence uint64) string {
	return fmt.Sprintf("%s/p%05d/c%010d-f%08d", crawl, p, seq, fence)
}

// ParseCommitName undoes CommitName.
func ParseCommitName(name string) (p partition.ID, seq, fence uint64, err error) {
	crawl, rest, _ := strings.Cut(name, "/")
	if _, scanErr := fmt.Sscanf(rest, "p%d/c%d-f%d", &p, &seq, &fence); scanErr != nil ||
		CheckCrawlID(crawl) != nil || CommitName(crawl, p, seq, fence) != name {
		return 0, 0, 0, fmt.Errorf("parse commit name: %.100q is none", name)
	}
	return p, seq, fence, nil
}

// RunName names the object of a merged run, written before the commit seq.
func RunName(crawl string, p partition.ID, seq, fence uint64, tier uint8) string {
	return fmt.Sprintf("%s/p%05d/r%010d-f%08d-t%d", crawl, p, seq, fence, tier)
}

// ParseRunName undoes RunName.
func ParseRunName(name string) (p partition.ID, seq, fence uint64, tier uint8, err error) {
	crawl, rest, _ := strings.Cut(name, "/")
	if _, scanErr := fmt.Sscanf(rest, "p%d/r%d-f%d-t%d", &p, &seq, &fence, &tier); scanErr != nil ||
		CheckCrawlID(crawl) != nil || RunName(crawl, p, seq, fence, tier) != name {
		return 0, 0, 0, 0, fmt.Errorf("parse run name: %.100q is none", name)
	}
	return p, seq, fence, tier, nil
}

// PartitionPrefix begins the names of a partition's commits and runs.
func PartitionPrefix(crawl string, p partition.ID) string { return fmt.Sprintf("%s/p%05d/", crawl, p) }

// WARCPrefix begins the names of a crawl's WARC objects.
func WARCPrefix(crawl string) string { return crawl + "/warc/" }

// WARCName names a WARC object: the serial-th that a partition wrote under a
// fence. Its last part says all the rest does, for files that leave the store.
func WARCName(crawl string, p partition.ID, fence, serial uint64, c Compression) string {
	ext := "warc.gz"
	if c == None {
		ext = "warc"
	}
	return fmt.Sprintf("%s/warc/orbweaver-%s-p%05d-f%08d-%06d.%s", crawl, crawl, p, fence, serial, ext)
}

// ParseWARCName undoes WARCName.
func ParseWARCName(name string) (p partition.ID, fence, serial uint64, err error) {
	crawl, _, _ := strings.Cut(name, "/")
	rest, _ := strings.CutPrefix(name, WARCPrefix(crawl)+"orbweaver-"+crawl+"-")
	c := GzipFast
	if strings.HasSuffix(name, ".warc") {
		c = None
	}
	if _, scanErr := fmt.Sscanf(rest, "p%d-f%d-%d.", &p, &fence, &serial); scanErr != nil ||
		CheckCrawlID(crawl) != nil || WARCName(crawl, p, fence, serial, c) != name {
		return 0, 0, 0, fmt.Errorf("parse WARC name: %.100q is none", name)
	}
	return p, fence, serial, nil
}

// SeedsName names a batch of seeds by its content, so that giving it twice is
// giving it once.
func SeedsName(crawl string, content []byte) string {
	return crawl + "/seeds/" + contentHash(content)[:12]
}

// RanksName names a table of what hosts are worth, by its content.
func RanksName(crawl string, content []byte) string {
	return crawl + "/ranks/" + contentHash(content)[:16]
}

// DeadName names a dead letter by its content, as it is stored: with its reason.
func DeadName(crawl string, content []byte) string {
	return DeadPrefix(crawl) + contentHash(content)[:32]
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// CDXJName names a sorted piece of the capture index: the pages of one partition's
// commits up to seq.
func CDXJName(crawl string, p partition.ID, seq uint64) string {
	return fmt.Sprintf("%s/cdxj/p%05d-c%010d.cdxj", crawl, p, seq)
}

// CDXJIndexName names the whole capture index.
func CDXJIndexName(crawl string) string { return crawl + "/cdxj/index.cdxj" }

// CrawlKey is the KV key of the [Crawl] record.
func CrawlKey(crawl string) string { return crawl + "/crawl" }

// HeadKey is the KV key of a partition's [Head].
func HeadKey(crawl string, p partition.ID) string { return fmt.Sprintf("%s/head/%05d", crawl, p) }

// WishKey is the KV key of the [Wish].
func WishKey(crawl string) string { return crawl + "/wish" }

// GrantsKey is the KV key of the [Grants].
func GrantsKey(crawl string) string { return crawl + "/grants" }

// HostsKey is the KV key of the n-th pack of a partition's host estimates.
func HostsKey(crawl string, p partition.ID, n int) string {
	return fmt.Sprintf("%s/hosts/%05d/%04d", crawl, p, n)
}

// MailboxQueue names the queue of the mail to a partition.
func MailboxQueue(p partition.ID) string { return fmt.Sprintf("mailbox-%05d", p) }

// CommitNames yields the names of all visible commit objects of a partition,
// oldest first, m's own last.
func CommitNames(m *Manifest) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range CommitsAfter(m, 0) {
			if !yield(name) {
				return
			}
		}
	}
}

// CommitsAfter yields the numbers and names of the visible commits of a partition that come after one
// of them, oldest first, m's own last. It takes no time for those before.
func CommitsAfter(m *Manifest, after uint64) iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		for _, r := range m.Commits {
			for seq := max(r.From, after+1); seq <= r.To && seq < m.Seq; seq++ {
				if !yield(seq, CommitName(m.Crawl, m.Partition, seq, r.Fence)) {
					return
				}
			}
		}
		if m.Seq > after {
			yield(m.Seq, CommitName(m.Crawl, m.Partition, m.Seq, m.Fence))
		}
	}
}
