package blobschema

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

func TestKnownHosts(t *testing.T) {
	hosts := []HostObservation{{Host: "a.example", Slot: 3, Conn: time.Millisecond, Resp: time.Second, PerConnection: 7.5}, {Host: "b.example:81", Slot: 9}}
	data, err := EncodeKnownHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeKnownHosts(data)
	if d := cmp.Diff(hosts, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := EncodeKnownHosts(make([]HostObservation, MaxKnownHosts+1)); err == nil {
		t.Error("too many hosts can be encoded")
	}
}

func FuzzDecodeKnownHosts(f *testing.F) {
	good, err := EncodeKnownHosts([]HostObservation{{Host: "a.example", Resp: time.Second}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := DecodeKnownHosts(data); err != nil && !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrVersion) {
			t.Errorf("an error of another kind: %v", err)
		}
	})
}
