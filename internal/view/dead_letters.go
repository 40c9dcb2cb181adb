package view

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// DeadLetter is a message that was set aside because it could not be read.
type DeadLetter struct {
	ID   string // the last part of the name
	Name string // of the object
	At   time.Time
	// Replayed is when its body was sent again; zero if it was not, or has come back since.
	Replayed time.Time
	crawl.DeadLetter
}

// DeadLetters reads the dead letters of the crawl, the oldest first. The reason of one that is
// not JSON says so.
func (v *View) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	at := map[string]time.Time{}
	for o, err := range v.store.List(ctx, naming.DeadPrefix(v.id)) {
		if err != nil {
			return nil, err
		}
		at[o.Name] = o.Time
	}
	var out []DeadLetter
	for name, t := range at {
		if naming.IsReplayed(name) {
			continue
		}
		l := DeadLetter{ID: path.Base(name), Name: name, At: t.UTC()}
		if again, ok := at[naming.Replayed(name)]; ok && again.After(t) { // in doubt it came back: some stores know seconds only
			l.Replayed = again.UTC()
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b DeadLetter) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Name, b.Name)) })
	names := make([]string, len(out))
	for i := range out {
		names[i] = out[i].Name
	}
	i := 0
	for o, err := range v.objects(ctx, listed(names)) {
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(o.data, &out[i].DeadLetter); err != nil {
			out[i].DeadLetter = crawl.DeadLetter{Crawl: v.id, Reason: "this dead letter cannot be read itself: " + err.Error(), Body: o.data}
		}
		i++
	}
	return out, nil
}
