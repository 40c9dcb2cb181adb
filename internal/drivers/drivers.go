// Package drivers opens the platform at a location: the folder of a crawl, or a deployment in a
// cloud, whose driver is a subpackage. It also holds the driver of a folder: queues, a table and a
// bucket on one machine, with nothing to install.
//
// A folder has two parts, and one process owns it while it is open:
//
//	orbweaver.db   queues and table, a bbolt file, locked by its owner
//	blobs/         the bucket, one file per object
//
// The semantics of queues and table are those of package embedded, which the simulation runs too. This package
// adds a clock, waiting receivers and the file. Read store.go first, then table.go and pubsub.go.
//
// # Durability
//
// A send, a created queue and a write of the table are on disk (fsync) when the call returns; calls that run at
// the same time share a transaction. The whole state is in memory, and each transaction writes the changes
// since the previous one. So the file always holds a prefix of the changes:
//
//  1. A crash loses no confirmed change. Unconfirmed changes may or may not survive.
//  2. A crash never keeps a later change and loses an earlier one, in queues and table together. So a message
//     may be delivered before its send is durable: the writes of its receiver follow it in the file.
//  3. Reads of the table wait for the writes before them, so no caller acts on a value that a crash
//     takes back.
//  4. Acknowledgements are durable within a tenth of a second. A crash before that means one more
//     delivery. Receiving writes nothing.
//  5. Opening the folder makes all messages visible that a previous process had received.
//
// If a transaction fails (full disk, failing disk), every later call returns that error. Reopen the folder to
// find out which changes are on disk.
//
// Other processes can read a folder ([Records]) but not write to it. Waiting messages and the table are held
// in memory. bbolt's pages have no checksums: opening a folder reports a broken structure, but not a
// changed byte within a value.
package drivers

import (
	"context"
	"fmt"
	"strings"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/drivers/gocloud"
	"github.com/orbweaver/orbweaver/internal/drivers/nats"
	"github.com/orbweaver/orbweaver/internal/drivers/postgres"
	"github.com/orbweaver/orbweaver/platform"
)

// IsCloud reports whether a location is a deployment in a cloud; otherwise it is a folder.
func IsCloud(location string) bool { return strings.Contains(location, "://") }

// ShortName returns the name of a location for messages: the scheme and name of a deployment, without a user and a
// password, or the path of a folder.
func ShortName(location string) string {
	if !IsCloud(location) {
		return location
	}
	scheme, rest, _ := strings.Cut(location, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// WithoutPassword returns the URL of a deployment without a password.
func WithoutPassword(location string) string {
	scheme, rest, _ := strings.Cut(location, "://")
	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	at := max(0, strings.LastIndexByte(authority, '@'))
	user, _, _ := strings.Cut(authority[:at], ":")
	return scheme + "://" + user + rest[at:]
}

// Priced reports whether the platform at a location bills each call, by a price list that package ledger knows.
func Priced(location string) bool { return strings.HasPrefix(location, aws.Scheme+"://") }

// clouds holds the drivers of deployments by the scheme of their URLs.
var clouds = map[string]func(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error){
	aws.Scheme:      aws.Open,
	"gcp":           openGCP,
	gocloud.Scheme:  gocloud.Open,
	nats.Scheme:     nats.Open,
	postgres.Scheme: postgres.Open,
}

// Open opens the platform at a location: the URL of a deployment, such as
// aws://NAME?bucket=BUCKET&partitions=N, the URL of a project of Google Cloud, of a PostgreSQL database
// ([postgres.Open]), of NATS servers ([nats.Open]) or of gocloud's drivers ([gocloud.Open]), or a folder, as [Local] does. meter may be nil.
func Open(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error) {
	scheme, _, cloud := strings.Cut(location, "://")
	if !cloud {
		return Local(location, meter)
	}
	open := clouds[scheme]
	if open == nil {
		return nil, fmt.Errorf("platform %q: the scheme %s is unknown (want aws://NAME?..., gcp://PROJECT?..., postgres://USER@HOST/DATABASE?..., nats://HOST:PORT?..., gocloud://NAME?..., or a folder)", location, scheme)
	}
	return open(ctx, location, meter)
}
