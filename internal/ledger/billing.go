package ledger

import "math"

// What the two clouds bill differently. AWS bills functions by memory alone, and its table by size.

// google reports whether the prices are those of Google Cloud.
func (p *Prices) google() bool { return p.VCPUSecond > 0 }

// cpus returns the CPUs of a function with that much memory, as infra/live/gcp chooses them for Google Cloud.
func (p *Prices) cpus(memoryGB float64) float64 {
	share := memoryGB / p.GBPerVCPU
	switch {
	case !p.google():
		return share
	case memoryGB <= 0.5:
		return max(0.08, share)
	case memoryGB <= 1:
		return max(0.5, share)
	case memoryGB <= 4:
		return 1
	case memoryGB <= 8:
		return 2
	}
	return 4
}

// time prices the seconds that functions with that much memory take. With work, the CPU time in it, the seconds grow by the
// time that it takes.
func (p *Prices) time(what string, seconds, work, memoryGB float64) []Item {
	seconds += work / p.cpus(memoryGB)
	memory := item(what, seconds*memoryGB, "GB-seconds", p.FunctionGBSecond, p.Free.FunctionGBSeconds)
	if !p.google() {
		return []Item{memory}
	}
	memory.What += ": GB"
	return []Item{item(what+": CPU", seconds*p.cpus(memoryGB), "CPU-seconds", p.VCPUSecond, p.Free.VCPUSeconds), memory}
}

// memoryGB returns the memory of a function that has that much on AWS. Google Cloud has one service for all but searches.
func (p *Prices) memoryGB(d *Deployment, aws float64) float64 {
	if p.google() {
		return float64(d.MemoryMB) / 1024
	}
	return aws
}

// mail prices mail of that many bytes, sent by some calls, and received by others, which may find none.
func (p *Prices) mail(d *Deployment, bytes, sends, polls float64) Item {
	if p.google() {
		if d.Partitions == 1 {
			bytes = 0
		}
		return item("mail", (max(bytes, sends*minMailBytes)+max(bytes, polls*minMailBytes))/gb, "GB", p.MailGB, p.Free.MailGB)
	}
	chunks := 0.0 // billed units of calls that carry mail
	if d.Partitions > 1 {
		chunks = max(sends, bytes/(64<<10))
	}
	return item("mail", 2*chunks+sends+polls, "requests", p.QueueRequest/million, p.Free.QueueRequests)
}

// hints prices messages that start functions: wakes and jobs.
func (p *Prices) hints(what string, n float64) Item {
	calls := wakeCalls
	if p.google() {
		calls = taskCalls
	}
	return item(what, calls*n, "requests", p.QueueRequest/million, p.Free.QueueRequests)
}

// unit is what a read or a write of records is billed by.
func (p *Prices) unit() string {
	if p.google() {
		return "documents"
	}
	return "units"
}

func (p *Prices) written(n float64) Item {
	return item("records written", n, p.unit(), p.KVWriteUnit/million, p.Free.KVWrites)
}

func (p *Prices) read(n float64) Item {
	return item("records read", n, p.unit(), p.KVReadUnit/million, p.Free.KVReads)
}

// headUnits returns the billed units of a write and a read of a head. A head grows with the number of
// partitions, because it counts the mail to each of them. A document is billed once, whatever its size.
func (p *Prices) headUnits(d *Deployment) (write, read float64) {
	if p.google() {
		return 1, 1
	}
	size := headBytes + headSentBytes*float64(d.Partitions)
	return math.Ceil(size / (1 << 10)), math.Ceil(size / (4 << 10))
}

// rankUnits returns the billed units of a write of a rank head.
func (p *Prices) rankUnits() float64 {
	if p.google() {
		return 1
	}
	return rankUnits
}
