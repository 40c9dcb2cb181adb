// Package ledger counts the calls of a crawl that a cloud bills, and prices them.
//
// Every call to a queue, the table or the bucket goes through one [Ledger], because cost is the measure of a
// serverless design. It counts in the units that clouds bill: queue requests per started 64 KB, read units of 4
// KB, write units of 1 KB, puts and gets. Prices are a data file with its date and sources.
package ledger

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

//go:embed prices.json
var awsPrices []byte

//go:embed prices-gcp.json
var googlePrices []byte

// Ledger counts calls. The zero value is empty and ready; it is safe for concurrent
// use. It is a platform.Meter.
type Ledger struct {
	queue, reads, writes, puts, gets, putBytes, getBytes, functions, mbMillis atomic.Int64
}

// QueueRequest counts one call of a queue with a payload of that many bytes.
func (l *Ledger) QueueRequest(_ string, bytes int) { l.queue.Add(units(bytes, 64<<10)) }

// KVRead counts one strongly consistent read.
func (l *Ledger) KVRead(bytes int) { l.reads.Add(units(bytes, 4<<10)) }

// KVWrite counts one write.
func (l *Ledger) KVWrite(bytes int) { l.writes.Add(units(bytes, 1<<10)) }

// BlobPut counts one put of an object.
func (l *Ledger) BlobPut(bytes int) {
	l.puts.Add(1)
	l.putBytes.Add(int64(bytes))
}

// BlobGet counts one get of an object or a part of it.
func (l *Ledger) BlobGet(bytes int) {
	l.gets.Add(1)
	l.getBytes.Add(int64(bytes))
}

// Invoked counts one function call.
func (l *Ledger) Invoked() { l.functions.Add(1) }

// Ran counts the time that a function with that much memory took.
func (l *Ledger) Ran(took time.Duration, memoryMB int) {
	l.mbMillis.Add((took.Milliseconds() + 1) * int64(memoryMB)) // billed by started milliseconds
}

func units(n, size int) int64 { return int64(max(1, (n+size-1)/size)) }

// Counts are the figures of a ledger at one time.
type Counts = blobschema.Calls

// Counts returns the current figures.
func (l *Ledger) Counts() Counts {
	return Counts{
		QueueRequests: l.queue.Load(), KVReadUnits: l.reads.Load(), KVWriteUnits: l.writes.Load(),
		BlobPuts: l.puts.Load(), BlobGets: l.gets.Load(), BlobPutBytes: l.putBytes.Load(),
		BlobGetBytes: l.getBytes.Load(), Functions: l.functions.Load(), FunctionMBMillis: l.mbMillis.Load(),
	}
}

// Prices is a price list. Google Cloud bills functions by CPU too, mail by bytes, records by document and a schedule by month;
// these prices are 0 for AWS.
type Prices struct {
	Name             string   `json:"name"`
	Date             string   `json:"date"`
	Currency         string   `json:"currency"`
	Sources          []string `json:"sources"`
	QueueRequest     float64  `json:"queue_request_per_million"`
	MailGB           float64  `json:"mail_gb"`                   // published or delivered
	KVWriteUnit      float64  `json:"kv_write_unit_per_million"` // or document
	KVReadUnit       float64  `json:"kv_read_unit_per_million"`
	BlobPut          float64  `json:"blob_put_per_million"`
	BlobGet          float64  `json:"blob_get_per_million"`
	FunctionRequest  float64  `json:"function_request_per_million"`
	FunctionGBSecond float64  `json:"function_gb_second"`
	VCPUSecond       float64  `json:"function_vcpu_second"`
	GBPerVCPU        float64  `json:"function_gb_per_vcpu"`
	BlobGBMonth      float64  `json:"blob_gb_month"`
	Schedule         float64  `json:"schedule_per_million"`
	ScheduleMonth    float64  `json:"schedule_month"`
	AlarmMonth       float64  `json:"alarm_month"`
	LogGB            float64  `json:"log_gb"`
	LogGBMonth       float64  `json:"log_gb_month"`
	TrafficOutGB     float64  `json:"traffic_out_gb"`
	Free             free     `json:"free_per_month"`
}

// free holds the monthly free quotas of every account, without the offers for new accounts.
type free struct {
	QueueRequests     float64 `json:"queue_requests"`
	MailGB            float64 `json:"mail_gb"`
	KVWrites          float64 `json:"kv_writes"` // of a month; the quota is daily
	KVReads           float64 `json:"kv_reads"`
	FunctionRequests  float64 `json:"function_requests"`
	FunctionGBSeconds float64 `json:"function_gb_seconds"`
	VCPUSeconds       float64 `json:"function_vcpu_seconds"`
	Schedules         float64 `json:"schedules"`
	Alarms            float64 `json:"alarms"`
	LogGB             float64 `json:"log_gb"` // received or stored, together
	TrafficOutGB      float64 `json:"traffic_out_gb"`
}

// DefaultPrices returns the built-in price list of AWS.
func DefaultPrices() (Prices, error) { return decode(awsPrices) }

// GooglePrices returns the built-in price list of Google Cloud. It is for estimates only: the counts of a ledger are in the
// units that AWS bills.
func GooglePrices() (Prices, error) { return decode(googlePrices) }

func decode(list []byte) (p Prices, err error) {
	if err := json.Unmarshal(list, &p); err != nil {
		return p, fmt.Errorf("read price list: %w", err)
	}
	return p, nil
}

// Bill is the cost of a crawl in dollars per million pages.
type Bill struct {
	Queue     float64 `json:"queue"`
	KV        float64 `json:"kv"`
	Blob      float64 `json:"blob"`
	Functions float64 `json:"functions"` // their time, or the CPU time at the price of a fully used function
	Total     float64 `json:"total"`     // without retention
	Retention float64 `json:"retention_per_month"`
}

// Dollars returns the price of counts.
func (p Prices) Dollars(c Counts) float64 { return p.PerMillion(c, 1e6, 0).Total }

// PerMillion prices the counts of a crawl of that many pages. If no functions ran, cpuSeconds replaces their time.
func (p Prices) PerMillion(c Counts, pages int64, cpuSeconds float64) Bill {
	if pages <= 0 {
		return Bill{}
	}
	n := float64(pages)
	gbSeconds := cpuSeconds * p.GBPerVCPU
	if c.FunctionMBMillis > 0 { // functions ran, and are billed for their time
		gbSeconds = float64(c.FunctionMBMillis) / 1024 / 1000
	}
	b := Bill{
		Queue:     float64(c.QueueRequests) * p.QueueRequest / n,
		KV:        (float64(c.KVWriteUnits)*p.KVWriteUnit + float64(c.KVReadUnits)*p.KVReadUnit) / n,
		Blob:      (float64(c.BlobPuts)*p.BlobPut + float64(c.BlobGets)*p.BlobGet) / n,
		Functions: (gbSeconds*p.FunctionGBSecond*1e6 + float64(c.Functions)*p.FunctionRequest) / n,
		Retention: float64(c.BlobPutBytes) / (1 << 30) * p.BlobGBMonth * 1e6 / n,
	}
	b.Total = b.Queue + b.KV + b.Blob + b.Functions
	return b
}
