package inbound

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimits bounds the names whose rates are counted apart.
const maxLimits = 4096

// limits is a rate for each name, such as an address or host. It is safe for concurrent use.
type limits struct {
	rate  rate.Limit // events per second
	burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

// allow reports whether n events of a name may happen now, and counts them if so.
func (l *limits) allow(name string, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.of[name] == nil {
		if len(l.of) >= maxLimits { // names whose burst is full again need no memory
			for name, of := range l.of {
				if of.TokensAt(now) >= float64(l.burst) {
					delete(l.of, name)
				}
			}
			if len(l.of) >= maxLimits {
				return false
			}
		}
		if l.of == nil {
			l.of = map[string]*rate.Limiter{}
		}
		l.of[name] = rate.NewLimiter(l.rate, l.burst)
	}
	return l.of[name].AllowN(now, n)
}
