package lambdalocal

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// Lambda counts how often a function runs in one chain of calls, and stops the chain after 16. The trace header
// holds the counts. An invocation receives it as Lambda-Runtime-Trace-Id, aws-lambda-go copies it to
// _X_AMZN_TRACE_ID, the SDK sends it with each call, and SQS keeps it in the system attribute AWSTraceHeader:
//
//	Root=1-…;Parent=…;Sampled=0;Lineage=FUNCTION:CALLS|FUNCTION:CALLS
//
// (Lambda developer guide, "Use Lambda recursive loop detection to prevent infinite loops".)
const (
	maxChain  = 16
	traceName = "AWSTraceHeader"

	// Allow is the value of [Config].RecursiveLoop that permits longer chains.
	Allow = "Allow"
)

// next returns the trace header of an invocation and the number of invocations of the function in its chain,
// this one included, given the trace header of the event. An event without a header begins a chain.
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
