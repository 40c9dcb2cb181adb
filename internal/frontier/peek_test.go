package frontier

import (
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// peek returns an unexported value of package schedule: the field or map value at the end of a path.
func peek(v any, path ...string) reflect.Value {
	at := reflect.ValueOf(v)
	for _, name := range path {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if at.Kind() == reflect.Map {
			at = at.MapIndex(reflect.ValueOf(name))
		} else {
			at = at.FieldByName(name)
		}
	}
	for at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	return at
}

func textOf(p *part) int { return peek(&p.Pool, "text").Len() }

func trustOf(trust reflect.Value, field string) float32 {
	return float32(trust.FieldByName(field).Float())
}

// notBefore returns the earliest time of an item's request in Unix milliseconds; 0 is at once.
func notBefore(p *part, i uint32) int64 {
	r := peek(&p.Pool, "rare").MapIndex(reflect.ValueOf(i))
	if !r.IsValid() {
		return 0
	}
	return r.FieldByName("notBefore").Int()
}

// laneOf identifies the queue of a task.
func laneOf(t schedule.Task) uintptr { return reflect.ValueOf(t).FieldByName("lane").Pointer() }

// info returns the state of a politeness key.
func (r *rig) info(name string) schedule.HostInfo {
	r.t.Helper()
	k := r.f.schedule.Find(name)
	if k == nil {
		r.t.Fatalf("%s is not in memory", name)
	}
	return k.Info()
}

// trust sets the trust in the sitemaps of a.example.
func (r *rig) trust(trust schedule.Trust) {
	r.t.Helper()
	state := blobschema.KeyState{Key: "a.example", Data: encodedHost(r.t, map[int]any{13: &trust})}
	if err := r.f.schedule.LoadState(r.now, &r.f.slots.open(r.hash.Slot("a.example")).keys, &state); err != nil {
		r.t.Fatal(err)
	}
}

func encodedHost(t testing.TB, state map[int]any) []byte {
	t.Helper()
	b, err := cbor.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// storedHost returns the stored state of a host.
func storedHost(t testing.TB) []byte {
	r := begun(t.(*testing.T), Config{}, urlX)
	run, _ := r.f.Delta(1)
	return run.Keys[0].Data
}

// Copies of constants of package schedule.
const (
	maxAsks      = 1000
	askLifetime  = 15 * 24 * time.Hour
	revisitRank  = 1
	afterFailure = 24 * time.Hour
	goneAfter    = 7 * 24 * time.Hour
	grid         = 16
)
