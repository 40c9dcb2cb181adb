package lambdalocal

import (
	"bytes"
	"fmt"
	"time"
)

// maxLine is the largest log event of CloudWatch in bytes. A longer line is cut into several.
const maxLine = 256 << 10

// lineWriter passes the output of a process to the function's log, line by line.
type lineWriter struct {
	f      *Function
	prefix string
	rest   []byte // beginning of a line that has not ended
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		n := bytes.IndexByte(w.rest, '\n')
		switch {
		case n >= 0:
			w.f.logLine(w.prefix, w.rest[:n])
			w.rest = w.rest[n+1:]
		case len(w.rest) >= maxLine:
			w.f.logLine(w.prefix, w.rest[:maxLine])
			w.rest = w.rest[maxLine:]
		default:
			return len(p), nil
		}
	}
}

// flush passes on a last line without a line end.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.f.logLine(w.prefix, w.rest)
		w.rest = nil
	}
}

// logLine passes a line on.
func (f *Function) logLine(prefix string, line []byte) {
	if f.config.Log == nil {
		return
	}
	f.logMu.Lock()
	defer f.logMu.Unlock()
	fmt.Fprintf(f.config.Log, "%s %s\n", prefix, line)
}

// report writes the lines that Lambda itself adds to the log for an invocation, here all
// at its end.
func (f *Function) report(inv Invocation) {
	prefix := "--------"
	if len(inv.Instance) >= 8 {
		prefix = inv.Instance[:8]
	}
	say := func(format string, args ...any) { f.logLine(prefix, fmt.Appendf(nil, format, args...)) }
	say("START RequestId: %s Version: $LATEST", inv.RequestID)
	if inv.ErrorMessage != "" {
		say("RequestId: %s Error: %s: %s", inv.RequestID, inv.ErrorType, inv.ErrorMessage)
	}
	say("END RequestId: %s", inv.RequestID)
	init := ""
	if inv.Cold {
		init = fmt.Sprintf("\tInit Duration: %.2f ms", ms(inv.Init))
	}
	say("REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %d ms\tMemory Size: %d MB\tMax Memory Used: %d MB%s",
		inv.RequestID, ms(inv.Duration), inv.Billed.Milliseconds(), f.config.MemoryMB, inv.MaxMemoryMB, init)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
