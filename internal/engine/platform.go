package engine

import (
	"context"
	"errors"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/platform"
)

// ReadRecords carries out [actor.ReadRecords].
func ReadRecords(ctx context.Context, p *platform.Platform, keys []string) ([]actor.Record, error) {
	recs, err := p.ReadRecords(ctx, keys)
	out := make([]actor.Record, len(recs))
	for i, r := range recs {
		out[i] = actor.Record{Value: r.Value, Revision: r.Revision, Found: r.Found}
	}
	return out, err
}

// WriteRecord carries out [actor.WriteRecord].
func WriteRecord(ctx context.Context, p *platform.Platform, w actor.WriteRecord) (actor.Revision, error) {
	rev, err := p.WriteRecord(ctx, w.Key, w.Value, w.Revision)
	return rev, inWordsOfActors(err)
}

// GetObject carries out [actor.GetObject].
func GetObject(ctx context.Context, p *platform.Platform, g actor.GetObject) ([]byte, error) {
	b, err := p.GetObject(ctx, g.Name, g.Offset, g.Length)
	return b, inWordsOfActors(err)
}

// PutObject carries out [actor.PutObject].
func PutObject(ctx context.Context, p *platform.Platform, o actor.PutObject) error {
	return p.PutObject(ctx, o.Name, o.Parts...)
}

// known is an error of a platform on which an actor branches.
type known struct {
	error
	as error
}

func (k known) Is(target error) bool { return target == k.as }
func (k known) Unwrap() error        { return k.error }

// inWordsOfActors makes errors of a platform match the errors of package actor.
func inWordsOfActors(err error) error {
	switch {
	case errors.Is(err, platform.ErrConflict):
		return known{err, actor.ErrConflict}
	case errors.Is(err, platform.ErrNotFound):
		return known{err, actor.ErrNotFound}
	}
	return err
}
