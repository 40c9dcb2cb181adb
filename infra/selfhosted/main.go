// Selfhosted runs a self-hosted platform on this machine for use by hand, without Docker: PostgreSQL, an object store and
// workers, until Ctrl-C. PostgreSQL must be installed; the object store is built once. All data is lost at the end.
//
//	-workers N  number of workers, by default 2; 0 for the servers only
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/servers"
)

func main() {
	workers := flag.Int("workers", 2, "number of workers")
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer release()
	if err := run(ctx, os.Stdout, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "selfhosted:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, workers int) (err error) {
	dir, err := os.MkdirTemp("", "orbweaver-selfhosted-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	postgres, err := servers.NewPostgres(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Close()) }()
	fmt.Fprintln(out, "# PostgreSQL runs; the first start of the object store builds it, which takes minutes")
	store, err := servers.NewObjectStore(ctx, filepath.Join("bin", "tools"), dir)
	if err != nil {
		return err
	}
	defer store.Kill()
	env := []string{
		"ORBWEAVER_PLATFORM=" + postgres.URL() + "?blobs=" + store.URL(),
		"AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey,
	}
	var running []*exec.Cmd
	for i := range workers {
		log, err := os.Create(filepath.Join(dir, fmt.Sprintf("worker-%d.log", i+1)))
		if err != nil {
			return err
		}
		defer log.Close()
		c := exec.Command(filepath.Join("bin", "orbweaver"), "work", "--allow-net", "127.0.0.0/8")
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), env...), log, log
		if err := c.Start(); err != nil {
			return err
		}
		running = append(running, c)
		fmt.Fprintf(out, "# worker %d, log %s\n", i+1, log.Name())
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(out, "export %s='%s'\n", name, value)
	}
	fmt.Fprintln(out, "# paste the lines above into another shell; try: bin/orbweaver crawl --detach --index https://example.org/\n# all of it runs until you press Ctrl-C, and its data is then deleted")
	<-ctx.Done()
	for _, c := range running {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, c := range running {
		kill := time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait() // its log says why it failed
		kill.Stop()
	}
	return nil
}
