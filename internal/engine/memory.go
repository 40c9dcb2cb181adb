package engine

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LimitMemory sets the memory limit of the garbage collector: GOMEMLIMIT if it is set, and otherwise nine
// tenths of the limit of the control group. It returns the limit in bytes; 0: there is no limit. Without one, the collector
// keeps this process near [softLimit] until it ends. root is the file system of the machine. Further calls only return the
// result of the first.
func LimitMemory(root fs.FS) int64 {
	limitOnce.Do(func() {
		if set := debug.SetMemoryLimit(-1); set < math.MaxInt64 {
			memoryLimit = set
		} else if memoryLimit = groupLimit(root) / 10 * 9; memoryLimit > 0 { // the collector does not count all memory
			debug.SetMemoryLimit(memoryLimit)
		} else {
			go steerMemory()
		}
	})
	return memoryLimit
}

var (
	limitOnce   sync.Once
	memoryLimit int64 // result of LimitMemory
)

// steerMemory sets the memory limit to softLimit, once a second.
func steerMemory() {
	use := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for range time.Tick(time.Second) {
		metrics.Read(use)
		debug.SetMemoryLimit(softLimit(int64(use[0].Value.Uint64() + use[1].Value.Uint64())))
	}
}

// softLimit returns the memory that a process may take, given the bytes of its live heap and stacks. Without this limit, the
// heap doubles between two collections and freed memory is kept: a crawl of a million URLs takes a third more.
func softLimit(used int64) int64 { return max(400<<20, used/2*3) }

// groupLimit returns the smallest memory limit of the control groups of this process, of version 1 or 2; 0: no
// limit. In a container the path of its group may not be visible, but the root then shows its limit.
func groupLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if fields[0] != "0" {
			if fields[1] != "memory" {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			if text, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 { // not "max"
					least = min(least, n)
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	if least > 1<<60 { // version 1 writes a huge number for no limit
		return 0
	}
	return least
}

// These bound the URLs that all frontiers of a process keep in memory.
const (
	mostResident = 2_000_000 // about 300 MB
	// residentPerMB leaves most of a limited memory to pages and commits: a URL takes about 150 bytes, and three
	// times that while it is committed.
	residentPerMB = 500
)

// MaxResident returns the bound for a process with a memory limit in bytes; 0: no limit.
func MaxResident(limit int64) int {
	if limit <= 0 {
		return mostResident
	}
	return int(min(mostResident, max(1, limit>>20*residentPerMB)))
}
