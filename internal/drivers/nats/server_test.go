package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/orbweaver/orbweaver/internal/process"
)

// serverVariable holds the options of a server, which the test binary then runs instead of tests. So a test can kill it.
const serverVariable = "ORBWEAVER_TEST_NATS"

// options are those of one server.
type options struct {
	Dir, Name              string
	Port, Monitor, Cluster int    // ports
	Routes                 string // URLs of the other servers
	Lazy                   bool   // it does not sync
	NoJetStream            bool
	MaxPayload             int32
	Password               string // of the user u
}

func TestMain(m *testing.M) {
	text := os.Getenv(serverVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var o options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	opts := &server.Options{
		ServerName: o.Name, Host: "127.0.0.1", Port: o.Port, HTTPHost: "127.0.0.1", HTTPPort: o.Monitor, StoreDir: o.Dir, NoSigs: true,
		JetStream: !o.NoJetStream, SyncAlways: !o.Lazy, MaxPayload: o.MaxPayload,
	}
	if o.Password != "" {
		opts.Username, opts.Password = "u", o.Password
	}
	if o.Cluster > 0 {
		opts.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: o.Cluster}
		opts.Routes = server.RoutesFromStr(o.Routes)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		panic(err)
	}
	s.ConfigureLogger()
	s.Start()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}

// node is a server in a process of its own.
type node struct {
	options
	running *process.Process
}

// newNode starts a server. Ports that are 0 are chosen.
func newNode(t *testing.T, o options) *node {
	t.Helper()
	for _, port := range []*int{&o.Port, &o.Monitor} {
		if *port == 0 {
			*port = freePort(t)
		}
	}
	if o.Name == "" {
		o.Name = "n"
	}
	o.Dir = t.TempDir()
	n := &node{options: o}
	n.start(t)
	t.Cleanup(n.kill)
	return n
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (n *node) start(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(n.options)
	if err != nil {
		t.Fatal(err)
	}
	n.running, err = process.Start(process.Command{
		Args: []string{os.Args[0]}, Env: map[string]string{serverVariable: string(text)}, Dir: n.Dir, Log: filepath.Join(n.Dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := "/healthz"
	if n.Cluster > 0 {
		path = "/varz" // it is healthy once there is a leader
	}
	if err := n.running.Await(t.Context(), func(ctx context.Context) bool {
		r, err := http.Get(n.monitor() + path)
		if err != nil {
			return false
		}
		return r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}); err != nil {
		t.Fatal(err)
	}
}

// kill ends the server at once, as kill -9 does.
func (n *node) kill() {
	if n.running != nil {
		n.running.End()
		n.running = nil
	}
}

func (n *node) host() string    { return fmt.Sprintf("127.0.0.1:%d", n.Port) }
func (n *node) monitor() string { return fmt.Sprintf("http://127.0.0.1:%d", n.Monitor) }

// location returns the URL of a platform of some servers, whose bucket is a folder.
func locationOf(t *testing.T, nodes ...*node) string {
	t.Helper()
	var hosts, monitors []string
	for _, n := range nodes {
		hosts, monitors = append(hosts, n.host()), append(monitors, n.monitor())
	}
	return fmt.Sprintf("nats://%s?partitions=4&replicas=%d&monitor=%s&blobs=file://%s",
		strings.Join(hosts, ","), len(nodes), strings.Join(monitors, ","), filepath.ToSlash(t.TempDir()))
}
