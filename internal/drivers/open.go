package drivers

import (
	"context"
	"fmt"
	"strings"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/platform"
)

// IsCloud says whether a location is a deployment in a cloud; else it is a folder.
func IsCloud(location string) bool { return strings.Contains(location, "://") }

// ShortName is what a message calls a location: a deployment by its cloud and name, a
// folder by its path.
func ShortName(location string) string {
	name, _, _ := strings.Cut(location, "?")
	if !IsCloud(location) {
		return location
	}
	return name
}

// Open opens the platform at a location: the URL of a deployment in a cloud, such as
// aws://NAME?bucket=BUCKET&partitions=N, or a folder, as [Local] does. meter may be nil.
func Open(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error) {
	scheme, _, cloud := strings.Cut(location, "://")
	switch {
	case !cloud:
		return Local(location, meter)
	case scheme == aws.Scheme:
		return openAWS(ctx, location, meter)
	}
	return nil, fmt.Errorf("platform %q: the scheme %s is unknown (want aws://NAME?..., or a folder)", location, scheme)
}

func openAWS(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error) {
	l, err := aws.Parse(location)
	if err != nil {
		return nil, err
	}
	d, err := aws.Open(ctx, l, platform.KeyField, orNone(meter))
	if err != nil {
		return nil, err
	}
	return &platform.Platform{
		Table: d.Table, Bucket: d.Bucket, BucketName: l.Bucket, Partitions: l.Mailboxes, BeginWith: l.Partitions, Put: d.Put, Close: d.Close,
		Queue:        func(name string) (platform.Queue, error) { return d.Queue(name), nil },
		CreateQueues: func(_ context.Context, partitions int) error { return d.CheckQueues(partitions) },
		CheckQueue:   d.CheckQueue,
	}, nil
}
