package ledger

import (
	"fmt"
	"math"
)

// Deployment is the input of an [Estimate]: the size of a deployment and the expected crawl.
// [DefaultDeployment] returns the defaults.
type Deployment struct {
	Partitions         int     `json:"partitions"`
	MaxConcurrency     int     `json:"max_concurrency"` // most steps at a time
	MemoryMB           int     `json:"memory_mb"`       // of the fetch function
	TimeoutS           float64 `json:"timeout_s"`       // of the fetch function, in seconds
	ReadyHosts         int     `json:"ready_hosts"`     // of each partition at any time
	DelayS             float64 `json:"delay_s"`         // between two requests to a host, in seconds
	CPUMillis          float64 `json:"cpu_ms"`          // of a page, without its connection
	PagesPerWARC       int     `json:"pages_per_warc"`
	StoredBytes        float64 `json:"stored_bytes"` // of a page, compressed
	SentBytes          float64 `json:"sent_bytes"`   // to get a page on an open connection
	PagesPerConnection float64 `json:"pages_per_connection"`
	Alarms             int     `json:"alarms"`                // besides those of an index
	Index              bool    `json:"index"`                 // pages are made searchable, and ranked
	IndexMillis        float64 `json:"index_ms,omitempty"`    // of CPU for a page, merges too
	IndexBytes         float64 `json:"index_bytes,omitempty"` // of a page in the index, its text too
}

// DefaultDeployment returns the defaults of infra/live/aws and a crawl of many hosts.
func DefaultDeployment() Deployment {
	return Deployment{
		Partitions: 16, MaxConcurrency: 8, MemoryMB: 512, TimeoutS: 300, ReadyHosts: 30, DelayS: 1, CPUMillis: 4,
		PagesPerWARC: 1000, StoredBytes: 40_000, SentBytes: 1_270, PagesPerConnection: 10, Alarms: 12,
		IndexMillis: 2, IndexBytes: 5_000,
	}
}

// Assumptions of the estimate. The figures of steps are those of internal/function and internal/crawl.
const (
	minTimeoutS   = 60.0
	maxTimeoutS   = 900.0  // of AWS Lambda
	maxTaskS      = 1800.0 // of Cloud Tasks
	commitS       = 60.0   // between commits
	commitPages   = 4000.0
	mailS         = 300.0    // between mails to the same partition
	linkBytes     = 190.0    // of a page's links, compressed
	wakeCalls     = 3.0      // to send, receive and delete a message
	taskCalls     = 2.0      // to create and start a task
	minMailBytes  = 1000.0   // billed for a call that publishes or pulls
	wakeS         = 60.0     // from the end of a step without due pages to the next wake
	wokenS        = 2.0      // duration of a step that requests each host once
	drainS        = 10 / 3.0 // between two polls of the mailbox by a step that waits
	headBytes     = 1100.0   // of a head without the part for mail
	headSentBytes = 6.0      // of a head for each partition that gets mail
	connectMillis = 2.0      // of CPU for a TLS connection: 1.4 to 2 were measured
	connectBytes  = 1700.0   // sent for a TLS connection: 1,550 to 1,850 were measured
	stepReads     = 10.0     // read units to begin a step, one of them for a small head
	commitReads   = 2.0      // heads read
	stepGets      = 10.0     // objects read to begin a step whose state is not in memory
	runsPerCommit = 0.25     // merged
	tickS         = 60.0     // between ticks
	tickReads     = 8.0      // read units of an idle tick, without the job of ranks
	tickRunS      = 0.1      // duration of an idle tick
	tickGB        = 0.25     // memory of the coordinator, where it is a function of its own
	logBytes      = 600.0    // of an invocation
	logMonths     = 14 / 30.4375
	pollers       = 5 // of each event source mapping, if it has a maximum concurrency
	pollS         = 20.0
	monthS        = 30.4375 * 24 * 3600
	indexS        = 120.0 // between two index jobs of a partition that crawls
	indexRunS     = 0.3   // duration of an index step without its pages
	jobReads      = 10.0  // read units to begin an index or rank step
	indexUnits    = 1.0   // write units of an index head
	mergedBy      = 8.0   // segments of one size
	rangeBytes    = 8 << 20
	rankRounds    = 90.0 // of a job, to a change of 1e-8
	rankRunS      = 0.25 // duration of a rank step without its links
	rankUnits     = 3.0  // write units of a rank head, which grows with the rounds
	rankLinks     = 20.0 // of a page, within the crawl
	rankLinkNanos = 15.0 // of CPU for a link in a round
	jobGB         = 1.0  // memory of the functions index, rank and query
	searchS       = 0.1  // seconds that a search takes
	searchGets    = 6.0  // reads of a search, besides what is in memory
	indexAlarms   = 8
	million       = 1e6
	gb            = 1 << 30
)

// stepS returns the longest working time of a step in seconds, which leaves time for its last commit.
func (d *Deployment) stepS() float64 { return d.TimeoutS - min(30, max(3, d.TimeoutS/6)) }

// atWork returns the average number of partitions with a running step, while there is enough to do.
func (d *Deployment) atWork() float64 { return float64(min(d.Partitions, d.MaxConcurrency)) }

// cpuMillis returns the CPU time of a page, with its share of a connection.
func (d *Deployment) cpuMillis() float64 { return d.CPUMillis + connectMillis/d.PagesPerConnection }

// sentBytes returns the bytes sent for a page, with its share of a connection.
func (d *Deployment) sentBytes() float64 { return d.SentBytes + connectBytes/d.PagesPerConnection }

// mappings returns the number of queues that Lambda polls all month.
func (d *Deployment) mappings() float64 {
	if d.Index {
		return 4 // wakes, intake, index, rank
	}
	return 2
}

// tickReads returns the read units of an idle tick.
func (d *Deployment) tickReads() float64 {
	if d.Index {
		return tickReads + 1
	}
	return tickReads
}

// Item is a line of an estimate.
type Item struct {
	What     string  `json:"what"`
	Quantity float64 `json:"quantity"`
	Unit     string  `json:"unit"`
	Free     float64 `json:"free_per_month,omitempty"` // of the same unit, for the account
	Dollars  float64 `json:"dollars"`                  // free or not
	rest     float64 // dollars beyond the free quota
}

func item(what string, quantity float64, unit string, price, free float64) Item {
	return Item{
		What: what, Quantity: quantity, Unit: unit, Free: free,
		Dollars: quantity * price, rest: max(0, quantity-free) * price,
	}
}

// Estimate is the expected cost of a deployment, in dollars.
type Estimate struct {
	Prices     string     `json:"price_list"`
	Deployment Deployment `json:"deployment"`
	// BoundBy names the bottleneck of the crawl: "CPU"; "hosts", for which steps wait; or "wakes", if ending
	// and being woken is cheaper than waiting.
	BoundBy      string  `json:"bound_by"`
	Rate         float64 `json:"pages_per_second"` // of all partitions
	PagesPerStep float64 `json:"pages_per_step"`
	StepS        float64 `json:"step_s"` // time of a step, in seconds

	PerMillion      []Item   `json:"per_million_pages"`
	PerMillionTotal float64  `json:"per_million_pages_total"`           // without retention
	Retention       float64  `json:"retention_per_month"`               // of a million pages
	Indexed         []Item   `json:"index_per_million_pages,omitempty"` // on top, where pages are made searchable
	IndexedTotal    float64  `json:"index_per_million_pages_total,omitempty"`
	Searches        []Item   `json:"per_million_searches,omitempty"`
	SearchesTotal   float64  `json:"per_million_searches_total,omitempty"`
	IndexRetention  float64  `json:"index_retention_per_month,omitempty"` // of a million pages
	Idle            []Item   `json:"idle_month"`                          // on top, whether it crawls or not
	IdleTotal       float64  `json:"idle_month_total"`                    // free quotas not subtracted
	IdleRest        float64  `json:"idle_month_beyond_free"`              // if nothing else in the account uses the free quotas
	Assumptions     []string `json:"assumptions"`
}

// Estimate estimates the cost of a deployment at these prices. It returns an error if a figure of the
// deployment is out of range.
func (p Prices) Estimate(d Deployment) (Estimate, error) {
	longest := maxTimeoutS
	if p.google() {
		longest = maxTaskS
	}
	for _, c := range []struct {
		what        string
		n, min, max float64
	}{
		{"partitions", float64(d.Partitions), 1, 1000},
		{"steps at a time", float64(d.MaxConcurrency), 1, 1000},
		{"MB of memory", float64(d.MemoryMB), 128, 10240},
		{"seconds of timeout", d.TimeoutS, minTimeoutS, longest},
		{"ready hosts", float64(d.ReadyHosts), 1, 1e6},
		{"seconds of delay", d.DelayS, 0, 86400},
		{"ms of CPU", d.CPUMillis, 0.01, 10_000},
		{"pages per WARC", float64(d.PagesPerWARC), 1, 1e6},
		{"bytes stored", d.StoredBytes, 0, 1e9},
		{"bytes sent", d.SentBytes, 0, 1e9},
		{"pages per connection", d.PagesPerConnection, 1, 1e6},
		{"alarms", float64(d.Alarms), 0, 1e6},
		{"ms of CPU to index a page", d.IndexMillis, 0, 1e6},
		{"bytes of a page in the index", d.IndexBytes, 0, 1e9},
	} {
		if !(c.n >= c.min && c.n <= c.max) { // NaN is neither
			return Estimate{}, fmt.Errorf("%s: %g is not from %g to %g", c.what, c.n, c.min, c.max)
		}
	}
	e := Estimate{Prices: p.Name + ", " + p.Date, Deployment: d, Idle: p.idle(d), Assumptions: p.assumptions(d)}
	for _, w := range []way{p.through(d), p.woken(d)} {
		if w.billedS > d.stepS() {
			continue // its steps have too many hosts to end in time
		}
		items := p.perMillion(d, w)
		if total := sum(items); e.PerMillion == nil || total < e.PerMillionTotal {
			e.PerMillion, e.PerMillionTotal = items, total
			e.BoundBy, e.PagesPerStep, e.StepS, e.Rate = w.bound, w.pages, w.billedS, million/w.elapsedS
			if d.Index {
				e.Indexed = p.indexed(d, w)
			}
		}
	}
	e.Retention = million * d.StoredBytes / gb * p.BlobGBMonth
	if d.Index {
		e.IndexedTotal, e.Searches = sum(e.Indexed), p.searches()
		e.SearchesTotal, e.IndexRetention = sum(e.Searches), million*d.IndexBytes/gb*p.BlobGBMonth
	}
	e.IdleTotal = sum(e.Idle)
	for _, i := range e.Idle {
		e.IdleRest += i.rest
	}
	return e, nil
}

func sum(items []Item) (total float64) {
	for _, i := range items {
		total += i.Dollars
	}
	return total
}

// way is a way of working. It says how many pages a step fetches, how long the step is billed, how long all
// partitions together take for a million pages, and how many partitions fetch and send mail meanwhile.
type way struct {
	bound                            string
	pages, billedS, elapsedS, active float64
}

// through returns the way of steps that always have work or wait for it.
func (p Prices) through(d Deployment) way {
	rate := p.cpus(float64(d.MemoryMB)/1024) / (d.cpuMillis() / 1000)
	bound := "CPU"
	if byHosts := float64(d.ReadyHosts) / d.DelayS; byHosts < rate { // a delay of 0 gives infinity
		rate, bound = byHosts, "hosts"
	}
	run := d.stepS()
	return way{bound: bound, pages: rate * run, billedS: run, elapsedS: million / rate / d.atWork(), active: d.atWork()}
}

// woken returns the way of steps that request each ready host once, end, and are woken again. A partition runs
// at most one step a minute, and all partitions share MaxConcurrency functions.
func (p Prices) woken(d Deployment) way {
	pages := float64(d.ReadyHosts)
	run := max(wokenS, pages*d.cpuMillis()/1000/p.cpus(float64(d.MemoryMB)/1024))
	steps := min(float64(d.Partitions)/max(wakeS, d.DelayS), float64(d.MaxConcurrency)/run) // each second
	return way{bound: "wakes", pages: pages, billedS: run, elapsedS: million / pages / steps, active: float64(d.Partitions)}
}

// perMillion prices a million pages. The idle month includes ticks, except for the heads that they read while
// partitions are at work.
func (p Prices) perMillion(d Deployment, w way) []Item {
	partitions := float64(d.Partitions)
	steps := million / w.pages
	commits := steps * max(math.Ceil(w.billedS/commitS), math.Ceil(w.pages/commitPages))
	mails := w.active * (partitions - 1) * w.elapsedS / mailS // each active partition to all others
	headWrite, headRead := p.headUnits(&d)
	drains := steps * max(1, w.billedS/drainS)
	return append(p.time("function time", steps*w.billedS, 0, float64(d.MemoryMB)/1024),
		item("function calls", steps, "calls", p.FunctionRequest/million, p.Free.FunctionRequests),
		p.mail(&d, million*linkBytes, mails/10, drains), // ten mails a call to send, and to delete
		p.hints("wakes", steps),
		p.written((commits+2*steps)*headWrite),
		p.read(steps*(stepReads-1)+(steps+commits*commitReads+w.elapsedS/tickS*partitions)*headRead),
		item("objects put", max(million/float64(d.PagesPerWARC), steps)+commits*(1+runsPerCommit), "puts", p.BlobPut/million, 0),
		item("objects got", steps*stepGets+commits, "gets", p.BlobGet/million, 0),
		item("sent to hosts", million*d.sentBytes()/gb, "GB", p.TrafficOutGB, p.Free.TrafficOutGB),
		item("logs", steps*logBytes/gb, "GB", p.LogGB, p.Free.LogGB),
	)
}

// indexed prices indexing a million pages while they are crawled, and ranking them once.
func (p Prices) indexed(d Deployment, w way) []Item {
	partitions := float64(d.Partitions)
	index := max(partitions, w.elapsedS/indexS*w.active)
	manifests := index * (1 + 1/(mergedBy-1)) // merges of merges too
	commits := max(w.elapsedS/commitS*w.active, million/w.pages)
	_, headRead := p.headUnits(&d)
	rank := partitions * rankRounds
	if d.Partitions == 1 {
		rank = 1 // all rounds in one step
	}
	rankCPU := million * rankLinks * rankRounds * rankLinkNanos / 1e9
	memory := p.memoryGB(&d, jobGB)
	return append(append(p.time("index time", index*indexRunS, million*d.IndexMillis/1000, memory),
		p.time("rank time", rank*rankRunS, rankCPU, memory)...),
		item("function calls", index+rank, "calls", p.FunctionRequest/million, p.Free.FunctionRequests),
		p.hints("jobs", index+rank),
		p.written(manifests*indexUnits+rank*p.rankUnits()),
		p.read(index*jobReads+rank*(jobReads+partitions)+w.elapsedS/tickS*partitions*headRead),
		item("objects put", 2*manifests+rank, "puts", p.BlobPut/million, 0),
		item("objects got", commits+million*d.StoredBytes/rangeBytes+2*index+manifests*mergedBy/(mergedBy-1)+commits+rank*partitions, "gets", p.BlobGet/million, 0),
	)
}

// searches prices a million searches.
func (p Prices) searches() []Item {
	return append(p.time("function time", million*searchS, 0, jobGB),
		item("function calls", million, "calls", p.FunctionRequest/million, p.Free.FunctionRequests),
		item("objects got", million*searchGets, "gets", p.BlobGet/million, 0),
		item("logs", million*logBytes/gb, "GB", p.LogGB, p.Free.LogGB),
	)
}

// idle prices a month in which nothing is crawled.
func (p Prices) idle(d Deployment) []Item {
	ticks := math.Round(monthS / tickS)
	logs := ticks * logBytes / gb
	calls := item("function calls", ticks, "calls", p.FunctionRequest/million, p.Free.FunctionRequests)
	run := p.time("function time", ticks*tickRunS, 0, p.memoryGB(&d, tickGB))
	if p.google() { // nothing polls, and logs are kept for a month without a price
		return append(append([]Item{item("schedule", 1, "jobs", p.ScheduleMonth, p.Free.Schedules), calls}, run...),
			p.read(ticks*d.tickReads()),
			item("logs received", logs, "GB", p.LogGB, p.Free.LogGB),
		)
	}
	return append(append([]Item{item("schedule", ticks, "ticks", p.Schedule/million, p.Free.Schedules), calls}, run...),
		p.read(ticks*d.tickReads()),
		item("polls of queues", d.mappings()*pollers*monthS/pollS, "requests", p.QueueRequest/million, p.Free.QueueRequests),
		item("alarms", float64(d.alarms()), "alarms", p.AlarmMonth, p.Free.Alarms),
		item("logs received", logs, "GB", p.LogGB, p.Free.LogGB),
		item("logs stored", logs*logMonths, "GB-months", p.LogGBMonth, p.Free.LogGB),
	)
}

// alarms returns the number of alarms, with those of an index.
func (d *Deployment) alarms() int {
	if d.Index && d.Alarms > 0 {
		return d.Alarms + indexAlarms
	}
	return d.Alarms
}

// assumptions returns the assumptions behind the figures as texts.
func (p Prices) assumptions(d Deployment) []string {
	headWrite, headRead := p.headUnits(&d)
	billed := fmt.Sprintf("%g write units, %g read units", headWrite, headRead)
	tick := fmt.Sprintf("; %d pollers of each of %g event source mappings poll for %g s", pollers, d.mappings(), pollS)
	region := "prices are those of us-east-1; other regions cost up to a third more"
	if p.google() {
		billed, tick = "a document, billed once", ", rounded up to 100 ms; nothing polls"
		region = "prices are those of us-west1; other regions cost more, and a database of several regions twice as much"
	}
	list := []string{
		fmt.Sprintf("each partition has %d hosts ready at any time and requests each every %g s; fewer or slower hosts make functions wait, and waiting is billed", d.ReadyHosts, d.DelayS),
		fmt.Sprintf("at most %d steps run at a time (max_concurrency), one for each partition", d.MaxConcurrency),
		fmt.Sprintf("a page takes %g ms of CPU (the target for pages of 190 KB), and a TLS connection %g ms (measured: 1.4 to 2); %d MB have a share of %.2f CPUs", d.CPUMillis, connectMillis, d.MemoryMB, p.cpus(float64(d.MemoryMB)/1024)),
		fmt.Sprintf("a connection serves %g pages: hosts that are requested seldom, or close connections, make it fewer", d.PagesPerConnection),
		fmt.Sprintf("a page sends %g bytes (a request of 270 and, not measured, TCP/IP headers and acknowledgements), and a TLS connection %g (measured: 1,550 to 1,850)", d.SentBytes, connectBytes),
		fmt.Sprintf("a step works for its timeout of %g s less %g s, and commits every %g s or %g pages", d.TimeoutS, d.TimeoutS-d.stepS(), commitS, commitPages),
		fmt.Sprintf("where it is cheaper than to wait for hosts, a step requests each ready host once, in %g s, ends, and is woken after %g s", wokenS, wakeS),
		fmt.Sprintf("a commit is a put and a head, and every fourth merges a run; beginning a step reads %g %s and %g objects", stepReads, p.unit(), stepGets),
		fmt.Sprintf("a head has %g bytes and %g for each partition: %s; each tick reads all heads while the crawl runs", headBytes, headSentBytes, billed),
		fmt.Sprintf("a WARC file has %d pages; a page is stored in %g bytes with all that belongs to it", d.PagesPerWARC, d.StoredBytes),
		fmt.Sprintf("links take %g bytes a page; each partition mails every other every %g s, ten mails a call, and polls its mailbox every %.1f s", linkBytes, mailS, drainS),
		fmt.Sprintf("an idle tick reads %g %s and takes %g ms%s", d.tickReads(), p.unit(), tickRunS*1000, tick),
		"traffic from the hosts, and between functions, queues, table and bucket of one region, is free",
		region,
		"no taxes, no support plan; backups of the table, storage of its records and deleted objects that are kept for a restore (cents) are left out",
	}
	if p.google() {
		list = append(list,
			fmt.Sprintf("a publish and a pull are billed %g bytes or more, also a pull that finds nothing; a wake or a job is %g operations of Cloud Tasks", minMailBytes, taskCalls),
			"one service does all but searches, with the memory of a step; the image (cents), builds and alerts are left out",
			"the free quota of documents is daily, and that of traffic is for North America",
		)
	}
	if d.Index {
		list = append(list,
			fmt.Sprintf("index: a page takes %g ms of CPU, and %g bytes in the index; its partition has an index job every %g s, and %g segments are merged at a time", d.IndexMillis, d.IndexBytes, indexS, mergedBy),
			fmt.Sprintf("ranks: computed once, in %g rounds, by %g links of a page", rankRounds, rankLinks),
			fmt.Sprintf("a search takes %g ms of %g GB, and %g reads of what is not in memory", searchS*1000, jobGB, searchGets),
		)
	}
	return list
}
