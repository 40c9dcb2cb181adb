package drivers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/platform"
)

// visibility is how long a received message is hidden: far longer than the longest time between
// two commits.
const visibility = 5 * time.Minute

// Local opens the platform in a folder, and creates the folder if it does not exist. This process
// owns it until Close. meter may be nil. The errors are [ErrInUse], [ErrVersion] and [ErrDamaged], or
// those of the file system.
func Local(dir string, meter platform.Meter) (*platform.Platform, error) {
	s, err := openStore(dir, options{meter: meter})
	if err != nil {
		return nil, err
	}
	return s.platform(), nil
}

// Memory opens a platform in memory, with the semantics of a folder. meter may be nil.
func Memory(meter platform.Meter) (*platform.Platform, error) {
	return openMemory(options{meter: meter}).platform(), nil
}

// Records returns the records in the table of a folder. It only reads the folder, so it needs no
// permission to write there. Several processes can do this at once. The errors are those of [Local].
func Records(dir string) (map[string][]byte, error) { return readRecords(dir, options{}) }

func readRecords(dir string, opts options) (map[string][]byte, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	queues, table := embedded.NewQueues(nil), embedded.NewTable(nil)
	err := readFile(filepath.Join(dir, naming.DatabaseFile), opts.lockWait(), func(m embedded.Mutation) error {
		return embedded.Load(queues, table, m)
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := checkWhole(dir, table); err != nil {
		return nil, err
	}
	records := map[string][]byte{}
	for key, stored := range table.All() {
		value, err := decodeDocument(stored)
		if err != nil {
			return nil, fmt.Errorf("read record %q in %s: %w", key, dir, err)
		}
		records[strings.TrimPrefix(key, tablePrefix)] = value
	}
	return records, nil
}

func (s *store) platform() *platform.Platform {
	p := &platform.Platform{
		Table: platform.NewTable(s), Exclusive: true, Meter: s.meter,
		Queue: func(name string) (platform.Queue, error) {
			return s.queue(name), nil
		},
		CreateQueues: func(ctx context.Context, partitions int) error {
			// There is no dead-letter queue: a step stores an unreadable message as a dead letter with the
			// reason, and never drops a readable one.
			if err := s.createQueues(ctx, visibility, naming.Queues(partitions)...); err != nil {
				return fmt.Errorf("create queues: %w", err)
			}
			return nil
		},
		// CreateQueues creates all queues, even those that an older crawl was created without.
		CheckQueue: func(context.Context, string) error { return nil },
	}
	s.bucket.Fill(p)
	p.Close = func() error {
		_ = p.Table.Close() // fails only if it was closed already
		return s.Close()
	}
	return p
}

// CheckFolder returns [ErrDamaged] if a folder has lost its database. It changes nothing.
func CheckFolder(dir string) error {
	info, err := os.Stat(filepath.Join(dir, naming.DatabaseFile))
	if err == nil && info.Size() > 0 {
		return nil
	}
	return checkLost(dir)
}

// checkWhole returns [ErrDamaged] if either the table or the objects of a folder are gone.
func checkWhole(dir string, table *embedded.Table) error {
	if table.Len() == 0 {
		return checkLost(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, naming.ObjectsFolder)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it has records of a crawl, but %s is missing", ErrDamaged, naming.ObjectsFolder)
	}
	return nil
}

// checkLost is called if the table of a folder is missing or empty. It returns [ErrDamaged] if the folder has
// commits: a step makes commits only after it has written to the table, and a new crawl would hide the old one.
// Seeds may be stored before the first record, so a crash can leave seeds without records.
func checkLost(dir string) error {
	commits, err := fs.Glob(os.DirFS(filepath.Join(dir, naming.ObjectsFolder)), naming.CommitGlob)
	if err != nil || len(commits) == 0 {
		return err
	}
	crawl, _, _ := strings.Cut(commits[0], "/")
	return fmt.Errorf("%w: %s is missing or empty, but %s holds crawl %s", ErrDamaged, naming.DatabaseFile, naming.ObjectsFolder, crawl)
}
