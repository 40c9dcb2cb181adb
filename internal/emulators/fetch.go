// Package emulators fetches and starts programs that speak AWS's protocols on this machine, without Docker:
// LocalStack for SQS, S3, IAM, STS, logs and rules, DynamoDB Local for DynamoDB, and moto for the services that
// LocalStack runs only with Docker (functions, schedules, alarms, budgets).
//
// Files in the folder localstack/ pin the versions. The package stores the emulators in .cache/localstack/, and
// fetches them again only when those files change.
package emulators

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/internal/process"
)

// Missing is an error that names the program that the user has to install.
type Missing string

func (m Missing) Error() string { return string(m) }

// fetchTime bounds the fetching of one emulator, from a slow mirror.
const fetchTime = 20 * time.Minute

// Kit locates the fetched emulators.
type Kit struct {
	dir     string // .cache/localstack
	sources string // localstack
	java    string
}

// Root returns the folder of the module that contains the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("this is run outside of the module's folder")
		}
		dir = up
	}
}

func kit() (*Kit, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return &Kit{dir: filepath.Join(root, ".cache", "localstack"), sources: filepath.Join(root, "localstack")}, nil
}

// part is one emulator to fetch.
type part struct {
	name string
	// sources are the files that pin it; it is fetched again when they change.
	sources []string
	fetch   func(ctx context.Context, k *Kit, p part, into string, out io.Writer) error
}

var parts = []part{
	{"localstack", []string{"requirements-build.txt", "requirements.txt"}, fetchPython},
	{"moto", []string{"requirements-moto.txt"}, fetchPython},
	{"dynamodb", []string{"pom.xml"}, fetchMaven},
}

// sourceOnly are the pinned packages that have no wheel. They are plain Python, built by
// the pinned tools of requirements-build.txt.
const sourceOnly = "airspeed-ext,crontab,jsonpath-rw"

// Fetch finds the emulators that were fetched before, and fetches the others. It writes to out what it
// fetches, and needs the network only for that. If the machine lacks a program, the error is a [Missing].
// Processes that fetch at once wait for each other.
func Fetch(ctx context.Context, out io.Writer) (*Kit, error) {
	k, err := kit()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := process.Lock(filepath.Join(k.dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if k.java, err = findJava(ctx); err != nil {
		return nil, err
	}
	for _, p := range parts {
		done, err := k.done(p)
		if err != nil {
			return nil, err
		}
		if done {
			continue
		}
		if err := k.fetch(ctx, p, out); err != nil {
			return nil, fmt.Errorf("fetching %s: %w", p.name, err)
		}
	}
	return k, nil
}

func (k *Kit) fetch(ctx context.Context, p part, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	begin := time.Now()
	fmt.Fprintf(out, "fetching %s, once, as pinned by localstack/%s\n", p.name, strings.Join(p.sources, ", "))
	into := filepath.Join(k.dir, p.name)
	if err := os.RemoveAll(into); err != nil {
		return err
	}
	if err := p.fetch(ctx, k, p, into, out); err != nil {
		return err
	}
	stamp, err := k.stamp(p)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "fetched %s in %v\n", p.name, time.Since(begin).Round(time.Second))
	return os.WriteFile(filepath.Join(into, "stamp"), []byte(stamp), 0o644)
}

// stamp returns the text that identifies a fetched part: the hash of its sources, and its path, because a
// virtual environment works only where it was made.
func (k *Kit) stamp(p part) (string, error) {
	sum := sha256.New()
	for _, name := range p.sources {
		b, err := os.ReadFile(filepath.Join(k.sources, name))
		if err != nil {
			return "", err
		}
		sum.Write(b)
	}
	return fmt.Sprintf("%x %s\n", sum.Sum(nil), filepath.Join(k.dir, p.name)), nil
}

func (k *Kit) done(p part) (bool, error) {
	want, err := k.stamp(p)
	if err != nil {
		return false, err
	}
	got, err := os.ReadFile(filepath.Join(k.dir, p.name, "stamp"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return string(got) == want, err
}

// fetchPython makes a virtual environment with exactly the pinned packages, and checks their hashes.
func fetchPython(ctx context.Context, k *Kit, p part, into string, out io.Writer) error {
	python, err := findPython(ctx)
	if err != nil {
		return err
	}
	if err := run(ctx, out, python, "-m", "venv", into); err != nil {
		return err
	}
	for _, name := range p.sources {
		err := run(ctx, out, filepath.Join(into, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
			"--require-hashes", "--no-build-isolation", "--only-binary=:all:", "--no-binary="+sourceOnly, "-r", filepath.Join(k.sources, name))
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchMaven copies DynamoDB Local and its dependencies.
func fetchMaven(ctx context.Context, k *Kit, p part, into string, out io.Writer) error {
	if _, err := exec.LookPath("mvn"); err != nil {
		return Missing("DynamoDB Local is fetched by Maven, and there is no mvn: install it (Debian and Ubuntu: apt-get install maven)")
	}
	return run(ctx, out, "mvn", "--batch-mode", "--quiet", "--strict-checksums", "-f", filepath.Join(k.sources, p.sources[0]),
		"dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(into, "lib"))
}

// findPython returns the path of a Python that can run LocalStack 4.12.
func findPython(ctx context.Context) (string, error) {
	seen := "none"
	for _, name := range []string{"python3", "python3.11", "python3.12", "python3.13"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		text, err := exec.CommandContext(ctx, path, "-c", "import sys; print(*sys.version_info[:2])").Output()
		var major, minor int
		if _, scanErr := fmt.Sscan(string(text), &major, &minor); err != nil || scanErr != nil {
			continue // a stub of a version manager
		}
		seen = fmt.Sprintf("%d.%d", major, minor)
		if major != 3 || minor < 11 || minor > 13 {
			continue
		}
		if exec.CommandContext(ctx, path, "-c", "import ensurepip, venv").Run() != nil {
			return "", Missing(fmt.Sprintf("LocalStack needs Python's venv, which %s lacks: install it (Debian and Ubuntu: apt-get install python3-venv)", path))
		}
		return path, nil
	}
	return "", Missing(fmt.Sprintf("LocalStack needs Python 3.11, 3.12 or 3.13, found: %s. Install one (Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv)", seen))
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

func findJava(ctx context.Context) (string, error) {
	const install = "install a JRE (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
	path, err := exec.LookPath("java")
	if err != nil {
		return "", Missing("DynamoDB Local needs Java 17 or newer, and there is no java: " + install)
	}
	text, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	m := javaVersion.FindSubmatch(text)
	if err != nil || m == nil {
		return "", Missing(fmt.Sprintf("DynamoDB Local needs Java 17 or newer, and %s does not run: %s", path, install))
	}
	if n, err := strconv.Atoi(string(m[1])); err != nil || n < 17 {
		return "", Missing(fmt.Sprintf("DynamoDB Local needs Java 17 or newer, and %s is %s: %s", path, m[1], install))
	}
	return path, nil
}

// run runs a command. If it fails, run prints its output.
func run(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	text, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		fmt.Fprintf(out, "%s", text)
		return fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args[:min(3, len(args))], " "), err)
	}
	return nil
}
