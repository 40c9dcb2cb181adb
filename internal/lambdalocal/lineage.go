package lambdalocal

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// Lambda counts how often a function runs in one chain of calls, and stops the chain after 16. The counts are in the trace header
// that an invocation gets (Lambda-Runtime-Trace-Id), that aws-lambda-go puts into _X_AMZN_TRACE_ID, that the SDK sends
// with each call, and that SQS keeps in the system attribute AWSTraceHeader:
//
//	Root=1-…;Parent=…;Sampled=0;Lineage=FUNCTION:CALLS|FUNCTION:CALLS
//
// (Lambda developer guide, "Use Lambda recursive loop detection to prevent infinite loops".)
const (
	maxChain  = 16
	traceName = "AWSTraceHeader"

	// Allow is what the configuration of a function says if its chains may be longer.
	Allow = "Allow"
)

// next is the trace header of an invocation that an event with a header causes, and how many invocations of the function are in
// the chain then. An event without one begins a chain.
func (f *Function) next(header string) (trace string, calls int) {
	h := fnv.New32a()
	h.Write([]byte(f.arn))
	function := fmt.Sprintf("%08x", h.Sum32())
	root, lineage, others := "", 1, []string(nil)
	for field := range strings.SplitSeq(strings.ReplaceAll(header, "%7C", "|"), ";") { // the SDK escapes it
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "Root":
			root = value
		case "Lineage":
			for entry := range strings.SplitSeq(value, "|") {
				of, text, _ := strings.Cut(entry, ":")
				if n, err := strconv.Atoi(text); err == nil && of == function {
					lineage = n + 1
				} else if err == nil {
					others = append(others, entry)
				}
			}
		}
	}
	if root == "" {
		root = fmt.Sprintf("1-%08x-%s", time.Now().Unix(), strings.ReplaceAll(newID(), "-", "")[:24])
	}
	all := strings.Join(append(others, fmt.Sprintf("%s:%d", function, lineage)), "|")
	return fmt.Sprintf("Root=%s;Parent=%s;Sampled=0;Lineage=%s", root, newID()[:8]+newID()[:8], all), lineage
}
