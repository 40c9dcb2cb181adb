// Recordings makes the pictures of the documents: it serves the project's own documents and
// sources as a small web on loopback, a host for each package, crawls it in a terminal
// with the program, and draws the screens.
//
//	make recordings
//
// It writes live.svg, the moving view of a running crawl; report.svg, the report at its end;
// and search.png, the search page of the crawl. The first two need `script` of util-linux.
// Without chromium, search.png is left out, with a message.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color/palette"
	"image/draw"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
)

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "recordings:", err)
		os.Exit(1)
	}
}

const (
	sitePort   = 8080
	searchAddr = "127.0.0.1:8090"
	query      = `crash lease "next step"`
	width      = 108 // of the terminal
	height     = 30
)

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("recordings", flag.ContinueOnError)
	folder := flags.String("out", "docs/recordings", "folder for the pictures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "orbweaver-recordings-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "orbweaver")
	if b, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/orbweaver").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, b)
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return err
	}
	web, err := readWeb(".")
	if err != nil {
		return err
	}
	stop, err := web.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	crawl := fmt.Sprintf("orbweaver crawl --index --scope any --delay 100ms --allow-net 127.0.0.0/8 http://%s/", web.hosts[0].authority)
	if err := recordCrawl(ctx, dir, crawl, *folder, out); err != nil {
		return err
	}
	return recordSearch(ctx, program, dir, *folder, out)
}

// recordCrawl runs a crawl in a terminal, in dir, and draws its live view and its last screen.
func recordCrawl(ctx context.Context, dir, command, folder string, out io.Writer) error {
	script, err := exec.LookPath("script")
	if err != nil {
		return fmt.Errorf("there is no terminal to record: %w (apt-get install bsdutils)", err)
	}
	cmd := exec.CommandContext(ctx, script, "-qfec", fmt.Sprintf("stty cols %d rows %d && exec %s", width, height, command), "/dev/null")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TERM=xterm", "PATH="+dir+":"+os.Getenv("PATH"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t := vt.NewEmulator(width, height)
	defer t.Close()
	fmt.Fprintf(t, "$ %s\r\n", command)
	frames, rerr := watch(stdout, t, time.Now)
	if err := errors.Join(rerr, cmd.Wait()); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, screen(t))
	}
	for name, picture := range map[string]string{"live.svg": motion(frames[:len(frames)-1]), "report.svg": motion(frames[len(frames)-1:])} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "live.svg and report.svg: %d screens of %s\n", len(frames), command)
	return nil
}

// recordSearch takes a picture of the search page of the crawl in dir.
func recordSearch(ctx context.Context, program, dir, folder string, out io.Writer) (err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(out, "SKIPPED: search.png, as chromium is not installed (apt-get install chromium)")
		return nil
	}
	serving, stop := context.WithCancel(ctx)
	server := exec.CommandContext(serving, program, "search", "--serve", searchAddr)
	server.Dir = dir
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	if err := server.Start(); err != nil {
		stop()
		return err
	}
	defer func() {
		stop()
		if werr := server.Wait(); err == nil && !errors.Is(werr, context.Canceled) {
			err = werr
		}
	}()
	page := "http://" + searchAddr + "/?" + url.Values{"q": {query}}.Encode()
	for range 3 { // from the second on the index is open
		if err := answers(ctx, page); err != nil {
			return err
		}
	}
	picture, err := filepath.Abs(filepath.Join(folder, "search.png"))
	if err != nil {
		return err
	}
	b, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+filepath.Join(dir, "chromium"),
		"--window-size=860,860", "--screenshot="+picture, page).CombinedOutput()
	if err != nil {
		return fmt.Errorf("chromium: %w\n%s", err, b)
	}
	if err := fewColours(picture); err != nil {
		return err
	}
	fmt.Fprintf(out, "search.png: the page for %s\n", query)
	return nil
}

// answers waits until a server answers.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			return resp.Body.Close()
		} else if ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// fewColours rewrites a picture with a palette, in a third of the bytes.
func fewColours(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	from, err := png.Decode(f)
	if err != nil {
		return err
	}
	to := image.NewPaletted(from.Bounds(), palette.Plan9)
	draw.Draw(to, to.Rect, from, image.Point{}, draw.Src)
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	return errors.Join(encoder.Encode(out, to), out.Close())
}
