package crawl

import (
	"cmp"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// StepConfig configures a step. A duration of zero means its default.
type StepConfig struct {
	Crawl     blobschema.Crawl
	Partition partition.ID
	Process   string // unique name of the process
	// Exclusive means that no other process can work on this crawl, so that leases of other processes are void. It holds
	// for the embedded platform, where a folder has one owner.
	Exclusive   bool
	Connections int           // limit of requests under way; default 64
	Lease       time.Duration // default 2 min
	Margin      time.Duration // time before the end of the lease at which every request must have ended; default 5 s
	CommitEvery time.Duration // longest time that work stays uncommitted; default 30 s
	CommitMin   time.Duration // least time between two commits for a hungry or starving partition, unless all starve; default 100 ms
	CommitPages int           // settled URLs that make a commit; default 4,000
	MergeFanIn  int           // runs of one tier that are merged into one run of the next; default 8
	MailEvery   time.Duration // longest time that links for other partitions are buffered; default CommitEvery
	Linger      time.Duration // time that a step with nothing to do waits for mail; default 1 s
	SleepMax    time.Duration // longest time that it waits for a host that is not ready; default unlimited
	Deadline    time.Duration // time limit of the whole step; 0: none
	MaxResident int           // see frontier.Config
	MaxPart     int           // see frontier.Config; default 1<<17, or a quarter of MaxResident if that is less
	Retry       polite.Retry
	Policy      schedule.Policy // policy for experiments; nil: the policy of the crawl's settings
	// CrashesAllowed is the number of successive steps that may crash without a commit that settles a URL. After more
	// crashes, steps are careful for a while: they request one URL at a time and name it in a commit first. Default 2.
	CrashesAllowed int
	// SendsWakes means that coordinator runs are minutes apart, so the step itself sends urgent wakes: for later work of
	// its own partition, and to partitions to which it mails many links.
	SendsWakes bool
	// Follow reports whether to follow a link, in addition to the scope; nil: all links. It is a pure function of the
	// page and the link, and the same in all processes of a crawl: otherwise what is crawled depends on chance.
	Follow func(page, link weburl.URL) bool
	// Watch is called for each request that has ended and each URL that is refused, for a display; nil: nobody watches.
	// Steps call it concurrently. It must return at once, and it decides nothing.
	Watch func(Watched)
	// Spent returns the billed calls of the process since the step began; nil: calls are not counted.
	Spent      func() blobschema.Calls
	Token      string // product token for robots.txt
	Software   string // name and version for warcinfo records
	Compressed bool   // WARC records are gzip members
}

// Watched is a request that has ended, or a URL that is refused without one.
type Watched struct {
	Page  *blobschema.Page // valid during the call only
	Bytes int64            // received
	Took  time.Duration    // 0 without a request
	Again bool             // the request failed and will be repeated
}

func (c StepConfig) withDefaults() StepConfig {
	c.Lease = cmp.Or(c.Lease, 2*time.Minute)
	c.Margin = cmp.Or(c.Margin, 5*time.Second)
	c.CommitEvery = cmp.Or(c.CommitEvery, 30*time.Second)
	c.CommitMin = cmp.Or(c.CommitMin, 100*time.Millisecond)
	c.MailEvery = cmp.Or(c.MailEvery, c.CommitEvery)
	c.Linger = cmp.Or(c.Linger, time.Second)
	c.SleepMax = cmp.Or(c.SleepMax, 1<<62)
	c.Connections = cmp.Or(c.Connections, 64)
	c.CrashesAllowed = cmp.Or(c.CrashesAllowed, 2)
	c.MergeFanIn = cmp.Or(c.MergeFanIn, mergeFanIn)
	c.CommitPages = cmp.Or(c.CommitPages, 4000)
	if c.MaxPart == 0 {
		if c.MaxPart = 1 << 17; c.MaxResident > 0 {
			c.MaxPart = min(c.MaxPart, max(1, c.MaxResident/4))
		}
	}
	return c
}

// young returns a shorter interval between commits or mails while the crawl is young. It applies only where no process
// tells steps which partitions starve: the crawl spreads faster, and its progress shows earlier.
func (c *StepConfig) young(every time.Duration, now time.Time) time.Duration {
	if c.SendsWakes {
		every = min(every, max(youngCommit, now.Sub(c.Crawl.Created)/4))
	}
	return every
}
