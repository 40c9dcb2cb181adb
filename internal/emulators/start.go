package emulators

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/internal/process"
)

const (
	startTries = 3 // ports that are tried
	region     = "us-east-1"
)

// Set holds the base URLs of running emulators, without a slash at the end.
type Set struct {
	AWS      string // all services except those below
	DynamoDB string
	Moto     string

	dir     string
	running []*process.Process
}

// Running returns the emulators that the environment names: AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_DYNAMODB,
// which the SDK reads, and ORBWEAVER_MOTO_URL for moto. It returns nil if the first two are not both on
// loopback, so that no test touches a real account. Closing the set does nothing.
func Running() *Set {
	s := &Set{AWS: os.Getenv("AWS_ENDPOINT_URL"), DynamoDB: os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), Moto: os.Getenv("ORBWEAVER_MOTO_URL")}
	if !onLoopback(s.AWS) || !onLoopback(s.DynamoDB) {
		return nil
	}
	s.AWS, s.DynamoDB, s.Moto = strings.TrimSuffix(s.AWS, "/"), strings.TrimSuffix(s.DynamoDB, "/"), strings.TrimSuffix(s.Moto, "/")
	return s
}

func onLoopback(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// Environment returns the variables by which the SDK finds the emulators.
func (s *Set) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.AWS, "AWS_ENDPOINT_URL_DYNAMODB": s.DynamoDB, "ORBWEAVER_MOTO_URL": s.Moto,
		"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
}

// Start starts all emulators on free ports of the loopback interface, empty, and waits until they answer. Their
// logs are files in the folder logs. They end on Close, and also when this process dies for any reason.
func (k *Kit) Start(ctx context.Context, logs string) (*Set, error) {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(k.dir, "run-")
	if err != nil {
		return nil, err
	}
	s := &Set{dir: dir}
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for _, e := range []struct {
		name string
		url  *string
		of   func(dir string, port int) spec
	}{
		{"localstack", &s.AWS, k.localstack}, {"dynamodb", &s.DynamoDB, k.dynamodb}, {"moto", &s.Moto, k.moto},
	} {
		all.Go(func() {
			p, url, err := start(ctx, e.name, filepath.Join(dir, e.name), logs, e.of)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			*e.url = url
			s.running = append(s.running, p)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the emulators. Their data is lost.
func (s *Set) Close() error {
	for _, p := range s.running {
		p.End()
	}
	s.running = nil
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// spec is the command that starts an emulator.
type spec struct {
	args []string
	env  map[string]string
	// ready is a path. The emulator works once it answers this path with a status below 500.
	ready string
}

func (k *Kit) localstack(dir string, port int) spec {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	return spec{
		args: []string{filepath.Join(k.dir, "localstack", "bin", "python"), "-m", "localstack.runtime.main"},
		env: map[string]string{
			"GATEWAY_LISTEN":  address,
			"LOCALSTACK_HOST": address,
			// With other strategies, queue URLs have host names that only LocalStack's own DNS server knows.
			"SQS_ENDPOINT_STRATEGY":  "off",
			"DISABLE_EVENTS":         "1", // usage statistics
			"SKIP_SSL_CERT_DOWNLOAD": "1",
			"FILESYSTEM_ROOT":        filepath.Join(dir, "root"),
			"LOCALSTACK_VOLUME_DIR":  filepath.Join(dir, "volume"),
		},
		ready: "/_localstack/health",
	}
}

func (k *Kit) dynamodb(dir string, port int) spec {
	lib := filepath.Join(k.dir, "dynamodb", "lib")
	return spec{
		args: []string{k.java, "-Djava.library.path=" + lib, "-cp", filepath.Join(lib, "*"),
			"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
			"-inMemory", "-sharedDb", "-disableTelemetry", "-port", fmt.Sprint(port)},
		ready: "/",
	}
}

func (k *Kit) moto(dir string, port int) spec {
	return spec{
		args:  []string{filepath.Join(k.dir, "moto", "bin", "moto_server"), "-H", "127.0.0.1", "-p", fmt.Sprint(port)},
		env:   map[string]string{"MOTO_ACCOUNT_ID": "000000000000"}, // LocalStack's
		ready: "/moto-api/data.json",
	}
}

// start starts an emulator. It tries several ports, because another program may take one first.
func start(ctx context.Context, name, dir, logs string, of func(dir string, port int) spec) (p *process.Process, base string, err error) {
	for range startTries {
		var port int
		if port, err = process.FreePort(); err != nil {
			return nil, "", err
		}
		s := of(dir, port)
		if p, err = process.Start(process.Command{Args: s.args, Env: s.env, Dir: dir, Log: filepath.Join(logs, name+".log")}); err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		base = fmt.Sprintf("http://127.0.0.1:%d", port)
		if err = p.Await(ctx, func(ctx context.Context) bool { return answers(ctx, base+s.ready) }); err == nil {
			return p, base, nil
		}
		p.End()
		err = fmt.Errorf("%s: %w", name, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, "", err
}

// answers reports whether an emulator answers a URL.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode < http.StatusInternalServerError
}
