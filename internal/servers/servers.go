// Package servers starts the servers of a self-hosted platform on this machine, for tests and for use by hand: PostgreSQL,
// if it is installed, and versitygw, an object store that speaks S3. Both listen on loopback, and end with this process.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/orbweaver/orbweaver/internal/process"
)

// ErrMissing says that a program has to be installed first.
var ErrMissing = errors.New("PostgreSQL is not installed (Debian and Ubuntu: apt-get install postgresql)")

// owner is the user that PostgreSQL runs as if this process is root's: it refuses to run as root.
const owner = "postgres"

// startTries is the number of attempts to start a server: one that was killed may still hold its memory for a moment.
const startTries = 5

// Postgres is a PostgreSQL server with a database of its own.
type Postgres struct {
	dir, program string
	port         int
	running      *process.Process
}

// NewPostgres creates a database in a new folder and starts its server. Close deletes the folder.
func NewPostgres(ctx context.Context) (*Postgres, error) {
	initdb, err := find("initdb")
	if err != nil {
		return nil, err
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "orbweaver-postgres-") // folders of tests are closed to other users
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir, program: filepath.Join(filepath.Dir(initdb), "postgres"), port: port}
	if err := process.Own(dir, owner); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	made, err := process.Start(process.Command{
		Args: []string{"sh", "-c", initdb + ` -D data -U orbweaver -A trust -E UTF8 --no-locale --no-sync && echo ok >made; sleep 600`},
		Dir:  dir, Log: filepath.Join(dir, "initdb.log"), User: owner,
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	err = made.Await(ctx, func(context.Context) bool {
		_, err := os.Stat(filepath.Join(dir, "made"))
		return err == nil
	})
	made.End()
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a database: %w", err), p.Close())
	}
	return p, nil
}

// find finds a program of PostgreSQL, the newest one if Debian's folders hold several.
func find(name string) (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(a) - version(b) })
	if len(dirs) > 0 {
		return dirs[len(dirs)-1], nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", ErrMissing
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 sorts an odd name first
	return n
}

// URL returns the URL of the database.
func (p *Postgres) URL() string {
	return fmt.Sprintf("postgres://orbweaver@127.0.0.1:%d/postgres", p.port)
}

// Start starts the server and waits until it answers.
func (p *Postgres) Start(ctx context.Context) (err error) {
	p.running, err = start(ctx, p.port, process.Command{
		Args: []string{p.program, "-D", "data", "-k", p.dir, "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"},
		Dir:  p.dir, Log: filepath.Join(p.dir, "server.log"), User: owner,
	}, func(ctx context.Context) bool {
		// The server accepts connections before it accepts queries.
		return exec.CommandContext(ctx, filepath.Join(filepath.Dir(p.program), "pg_isready"), "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port)).Run() == nil
	})
	return err
}

// Kill ends the server at once, as kill -9 does. Start starts it again.
func (p *Postgres) Kill() {
	if p.running != nil {
		p.running.End()
		p.running = nil
	}
}

// Close ends the server and deletes its database.
func (p *Postgres) Close() error {
	p.Kill()
	return os.RemoveAll(p.dir)
}

// start starts a server on a port and waits until it answers.
func start(ctx context.Context, port int, c process.Command, answers func(context.Context) bool) (*process.Process, error) {
	for try := 1; ; try++ {
		p, err := process.Start(c)
		if err != nil {
			return nil, err
		}
		err = p.Await(ctx, func(ctx context.Context) bool { return listening(port) && answers(ctx) })
		if err == nil {
			return p, nil
		}
		p.End()
		if try == startTries || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(time.Second)
	}
}

func listening(port int) bool {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// versity is the object store, as a Go module with a version.
const versity = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// Keys of the object store.
const (
	AccessKey = "orbweaver"
	SecretKey = "orbweaver-secret"
	Bucket    = "pages"
)

// ObjectStore is an S3 server with one bucket, whose objects are files below a folder.
type ObjectStore struct {
	dir, program string
	port         int
	running      *process.Process
}

// NewObjectStore builds the object store once, below tools, and starts it with its files below dir.
func NewObjectStore(ctx context.Context, tools, dir string) (*ObjectStore, error) {
	tools, err := filepath.Abs(tools)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(tools, "versitygw")
	if _, err := os.Stat(program); err != nil {
		build := exec.CommandContext(ctx, "go", "install", versity)
		build.Env = append(os.Environ(), "GOBIN="+tools, "GOFLAGS=")
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", versity, err, text)
		}
	}
	for _, name := range []string{"data/" + Bucket, "attributes"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	s := &ObjectStore{dir: dir, program: program, port: port}
	return s, s.Start(ctx)
}

// Endpoint returns the URL of the server.
func (s *ObjectStore) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

// URL returns the URL of the bucket.
func (s *ObjectStore) URL() string { return "s3://" + Bucket + "?endpoint=" + s.Endpoint() }

// Start starts the server and waits until it answers.
func (s *ObjectStore) Start(ctx context.Context) (err error) {
	s.running, err = start(ctx, s.port, process.Command{
		Args: []string{s.program, "--port", fmt.Sprintf("127.0.0.1:%d", s.port), "posix", "--sidecar", filepath.Join(s.dir, "attributes"), filepath.Join(s.dir, "data")},
		Env:  map[string]string{"ROOT_ACCESS_KEY": AccessKey, "ROOT_SECRET_KEY": SecretKey},
		Dir:  s.dir, Log: filepath.Join(s.dir, "server.log"),
	}, func(ctx context.Context) bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint(), nil)
		if err != nil {
			return false
		}
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return err
}

// Kill ends the server at once, as kill -9 does. Start starts it again.
func (s *ObjectStore) Kill() {
	if s.running != nil {
		s.running.End()
		s.running = nil
	}
}
