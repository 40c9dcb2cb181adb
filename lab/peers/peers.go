package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// agent is the product token by which all programs obey robots.txt.
const agent = "orbweaver"

// connections is the number of requests at once of programs that can have several.
const connections = 64

// peer is a program that crawls.
type peer struct {
	name    string
	version []string // command that prints its version in its first line
	get     string   // how to install it
	stores  string   // what it stores
	// command returns the command that crawls into dir, or resumes what it has there.
	command func(ctx context.Context, dir string, seeds []string, resume bool) *exec.Cmd
}

// installed returns the version of the program, or why it cannot run.
func (p *peer) installed(ctx context.Context) (version string, missing error) {
	out, err := exec.CommandContext(ctx, p.version[0], p.version[1:]...).Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is not installed (%s)", p.version[0], p.get)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(p.version, " "), err)
	}
	version, _, _ = strings.Cut(string(out), "\n")
	return strings.TrimSpace(version), nil
}

//go:embed spider.py
var spider []byte

// peers lists the programs. Each may use all processors and makes no pause between requests; the pages are of
// as many hosts as there are connections or more, and the pace of one host is in the report.
var peers = []peer{
	{
		name: "orbweaver", version: []string{orbweaver(), "version"}, get: "make build", stores: "WARC with digests, CDXJ index, records and links of all URLs",
		command: func(ctx context.Context, dir string, seeds []string, resume bool) *exec.Cmd {
			args := []string{"crawl", "--requisites=false", "--data", filepath.Join(dir, "data"), "--allow-net", "127.0.0.0/8", "--json"}
			if !resume {
				args = append(args, "--scope", "any", "--delay", "0s", "--sitemaps=false", "--user-agent", agent+" (+https://example.org/bot)")
				args = append(args, seeds...)
			}
			return exec.CommandContext(ctx, orbweaver(), args...)
		},
	},
	{
		name: "wget", version: []string{"wget", "--version"}, get: "apt-get install wget", stores: "WARC with digests",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) *exec.Cmd {
			return exec.CommandContext(ctx, "wget", append([]string{
				"--recursive", "--level=inf", "--span-hosts", "--no-verbose", "--tries=2", "--timeout=20", "--user-agent=" + agent,
				"--warc-file=" + filepath.Join(dir, "pages"), "--no-warc-keep-log", "--delete-after", "--directory-prefix=" + filepath.Join(dir, "files"),
			}, seeds...)...)
		},
	},
	{
		name: "wget2", version: []string{"wget2", "--version"}, get: "apt-get install wget2", stores: "files",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) *exec.Cmd {
			return exec.CommandContext(ctx, "wget2", append([]string{
				"--recursive", "--level=0", "--span-hosts", "--no-verbose", "--tries=2", "--timeout=20", "--user-agent=" + agent,
				fmt.Sprintf("--max-threads=%d", connections), "--compression=gzip", "--directory-prefix=" + filepath.Join(dir, "files"),
			}, seeds...)...)
		},
	},
	{
		name: "scrapy", version: []string{"scrapy", "version"}, get: "pip install scrapy", stores: "files",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) *exec.Cmd {
			file := filepath.Join(dir, "spider.py")
			if err := os.WriteFile(file, spider, 0o600); err != nil {
				panic(err) // unreachable: dir has just been made
			}
			return exec.CommandContext(ctx, "scrapy", "runspider", file, "-a", "seeds="+strings.Join(seeds, ","), "-a", "dir="+dir,
				"-s", "USER_AGENT="+agent, "-s", "ROBOTSTXT_OBEY=True", "-s", "LOG_LEVEL=WARNING", "-s", "JOBDIR="+filepath.Join(dir, "job"),
				"-s", fmt.Sprintf("CONCURRENT_REQUESTS=%d", connections), "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8", "-s", "DOWNLOAD_DELAY=0",
				"-s", "SCHEDULER_PRIORITY_QUEUE=scrapy.pqueues.DownloaderAwarePriorityQueue", "-s", "COOKIES_ENABLED=False",
				"-s", "REACTOR_THREADPOOL_MAXSIZE=20", "-s", "DOWNLOAD_TIMEOUT=20", "-s", "TELNETCONSOLE_ENABLED=False")
		},
	},
}

// orbweaver returns the path of our program, which make build has made.
func orbweaver() string {
	path, err := filepath.Abs("bin/orbweaver")
	if err != nil {
		return "orbweaver"
	}
	return path
}
