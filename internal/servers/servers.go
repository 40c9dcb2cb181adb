// Package servers starts the servers of a self-hosted platform on this machine, for tests and for use by hand: PostgreSQL,
// if it is installed; NATS; and versitygw, an object store that speaks S3. The last two are built from their Go modules.
// All listen on loopback, and end with this process.
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

// Server is a server that can be killed and started again.
type Server struct {
	port    int
	command process.Command
	answers func(ctx context.Context) bool // beside accepting connections
	running *process.Process               // nil while it is down
}

// startTries is the number of attempts to start a server: one that was killed may still hold its memory for a moment.
const startTries = 5

// Start starts the server and waits until it answers.
func (s *Server) Start(ctx context.Context) error {
	for try := 1; ; try++ {
		p, err := process.Start(s.command)
		if err != nil {
			return err
		}
		err = p.Await(ctx, func(ctx context.Context) bool { return listening(s.port) && (s.answers == nil || s.answers(ctx)) })
		if err == nil {
			s.running = p
			return nil
		}
		p.End()
		if try == startTries || ctx.Err() != nil {
			return err
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

// Kill ends the server at once, as kill -9 does. Start starts it again.
func (s *Server) Kill() {
	if s.running != nil {
		s.running.End()
		s.running = nil
	}
}

// Errors that say which program has to be installed first.
var (
	ErrMissing  = errors.New("PostgreSQL is not installed (Debian and Ubuntu: apt-get install postgresql)")
	ErrNoRabbit = errors.New("RabbitMQ is not installed (Debian and Ubuntu: apt-get install rabbitmq-server)")
)

// owner is the user that PostgreSQL runs as if this process is root's: it refuses to run as root.
const owner = "postgres"

// Postgres is a PostgreSQL server with a database of its own.
type Postgres struct{ Server }

// NewPostgres creates a database in a new folder and starts its server. Close deletes the folder.
func NewPostgres(ctx context.Context) (*Postgres, error) {
	return newPostgres(ctx, func(program func(string) string) string {
		return program("initdb") + " -D data -U orbweaver -A trust -E UTF8 --no-locale --no-sync"
	})
}

// newPostgres starts a server on the files that a command creates.
func newPostgres(ctx context.Context, command func(program func(string) string) string) (*Postgres, error) {
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
	program := func(name string) string { return filepath.Join(filepath.Dir(initdb), name) }
	p := &Postgres{Server{
		port: port,
		command: process.Command{
			Args: []string{program("postgres"), "-D", "data", "-k", dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"},
			Dir:  dir, Log: filepath.Join(dir, "server.log"), User: owner,
		},
		// The server accepts connections before it accepts queries.
		answers: func(ctx context.Context) bool {
			return exec.CommandContext(ctx, program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(port)).Run() == nil
		},
	}}
	err = process.Own(dir, owner)
	if err == nil {
		err = create(ctx, command(program), dir)
	}
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a database: %w", err), p.Close())
	}
	return p, nil
}

// Standby starts a server that follows this one, and makes commits of this one wait for it.
func (p *Postgres) Standby(ctx context.Context) (*Postgres, error) {
	return newPostgres(ctx, func(program func(string) string) string {
		return fmt.Sprintf("%s -c \"alter system set synchronous_standby_names = '*'\" %s && %s -D data -R -c fast -d %s && %s -c 'select pg_reload_conf()' %s",
			program("psql"), p.URL(), program("pg_basebackup"), p.URL(), program("psql"), p.URL())
	})
}

// create runs the command that creates the files of a database.
func create(ctx context.Context, command, dir string) error {
	p, err := process.Start(process.Command{
		Args: []string{"sh", "-c", command + ` && echo ok >made; sleep 600`},
		Dir:  dir, Log: filepath.Join(dir, "create.log"), User: owner,
	})
	if err != nil {
		return err
	}
	defer p.End()
	return p.Await(ctx, func(context.Context) bool {
		_, err := os.Stat(filepath.Join(dir, "made"))
		return err == nil
	})
}

// find finds a program of PostgreSQL, the newest one if Debian's folders hold several.
func find(name string) (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	if len(dirs) > 0 {
		return slices.MaxFunc(dirs, func(a, b string) int { return version(a) - version(b) }), nil
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

// Close ends the server and deletes its database.
func (p *Postgres) Close() error {
	p.Kill()
	return os.RemoveAll(p.command.Dir)
}

// Rabbit is a RabbitMQ server.
type Rabbit struct{ Server }

// rabbit is the program of Debian's package; that on the PATH changes the user and the folder.
const rabbit = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// NewRabbit starts a server with its files below dir. The error is ErrNoRabbit if it is not installed.
func NewRabbit(ctx context.Context, dir string) (*Rabbit, error) {
	if _, err := os.Stat(rabbit); err != nil {
		return nil, ErrNoRabbit
	}
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = process.FreePort(); err != nil {
			return nil, err
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	s := &Rabbit{Server{port: ports[0], command: process.Command{
		// Erlang's port mapper would otherwise be started as a daemon.
		Args: []string{"sh", "-c", "epmd -address 127.0.0.1 & exec " + rabbit},
		Env: map[string]string{
			"ERL_EPMD_PORT": strconv.Itoa(ports[1]), "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_NODENAME": fmt.Sprintf("orbweaver-%d@localhost", ports[0]),
			"RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": strconv.Itoa(ports[0]), "RABBITMQ_DIST_PORT": strconv.Itoa(ports[2]),
			"RABBITMQ_MNESIA_BASE": in("mnesia"), "RABBITMQ_LOG_BASE": in("log"), "RABBITMQ_ENABLED_PLUGINS_FILE": in("plugins"),
			"RABBITMQ_CONF_ENV_FILE": in("none"), "RABBITMQ_CONFIG_FILE": in("none.conf"),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
		},
		Dir: dir, Log: in("server.log"),
	}}}
	return s, s.Start(ctx)
}

// URL returns the URL of the server.
func (s *Rabbit) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", s.port) }

// Servers that are Go modules.
const (
	versity = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
	nats    = "github.com/nats-io/nats-server/v2@v2.15.2"
)

// build builds a program once, below tools.
func build(ctx context.Context, tools, name, module string) (program string, err error) {
	if tools, err = filepath.Abs(tools); err != nil {
		return "", err
	}
	program = filepath.Join(tools, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	c := exec.CommandContext(ctx, "go", "install", module)
	c.Env = append(os.Environ(), "GOBIN="+tools, "GOFLAGS=")
	if text, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", module, err, text)
	}
	return program, nil
}

// Keys of the object store.
const (
	AccessKey = "orbweaver"
	SecretKey = "orbweaver-secret"
	Bucket    = "pages"
)

// ObjectStore is an S3 server with one bucket, whose objects are files below a folder.
type ObjectStore struct{ Server }

// NewObjectStore builds the object store once, below tools, and starts it with its files below dir.
func NewObjectStore(ctx context.Context, tools, dir string) (*ObjectStore, error) {
	program, err := build(ctx, tools, "versitygw", versity)
	if err != nil {
		return nil, err
	}
	data, attributes := filepath.Join(dir, "data"), filepath.Join(dir, "attributes")
	for _, name := range []string{filepath.Join(data, Bucket), attributes} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return nil, err
		}
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	s := &ObjectStore{Server{port: port, command: process.Command{
		Args: []string{program, "--port", fmt.Sprintf("127.0.0.1:%d", port), "posix", "--sidecar", attributes, data},
		Env:  map[string]string{"ROOT_ACCESS_KEY": AccessKey, "ROOT_SECRET_KEY": SecretKey},
		Dir:  dir, Log: filepath.Join(dir, "server.log"),
	}}}
	s.answers = func(ctx context.Context) bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint(), nil)
		if err != nil {
			return false
		}
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}
	return s, s.Start(ctx)
}

// Endpoint returns the URL of the server.
func (s *ObjectStore) Endpoint() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

// URL returns the URL of the bucket.
func (s *ObjectStore) URL() string { return "s3://" + Bucket + "?endpoint=" + s.Endpoint() }

// NATS is a server of NATS with JetStream, which writes to disk before it acknowledges.
type NATS struct{ Server }

// NewNATS builds the server once, below tools, and starts it with its files below dir.
func NewNATS(ctx context.Context, tools, dir string) (*NATS, error) {
	program, err := build(ctx, tools, "nats-server", nats)
	if err != nil {
		return nil, err
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("listen: 127.0.0.1:%d\njetstream: {store_dir: %q, sync_interval: always}\n", port, filepath.Join(dir, "jetstream"))
	file := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return nil, err
	}
	s := &NATS{Server{port: port, command: process.Command{Args: []string{program, "-c", file}, Dir: dir, Log: filepath.Join(dir, "server.log")}}}
	return s, s.Start(ctx)
}

// URL returns the URL of the server.
func (s *NATS) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.port) }
