package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	release string   // its version if it prints none
	get     string   // how to install it
	stores  string   // what it stores
	warc    bool     // it stores WARC with digests
	endless bool     // it does not end by itself when nothing is left to request
	// command returns the command that crawls into dir, or resumes what it has there.
	command func(ctx context.Context, dir string, seeds []string, resume bool) (*exec.Cmd, error)
}

// installed returns the version of the program, or why it cannot run.
func (p *peer) installed(ctx context.Context) (version string, missing error) {
	out, err := exec.CommandContext(ctx, p.version[0], p.version[1:]...).Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is not installed (%s)", p.name, p.get)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(p.version, " "), err)
	}
	if p.release != "" {
		return p.release, nil
	}
	version, _, _ = strings.Cut(string(out), "\n")
	return strings.TrimSpace(version), nil
}

//go:embed programs
var programs embed.FS

// fill returns one of the files in programs with the values of words in it.
func fill(name string, words ...string) ([]byte, error) {
	data, err := programs.ReadFile("programs/" + name)
	return []byte(strings.NewReplacer(words...).Replace(string(data))), err
}

// tool returns the path of something in the folder of programs/install.sh.
func tool(path ...string) string {
	return absolute(filepath.Join(append([]string{".cache", "peers"}, path...)...))
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

const get = "make peers-install"

// java returns a command that runs a class of a program, with as much memory as its own start script gives it or more.
func java(ctx context.Context, program string, options []string, class string, args ...string) *exec.Cmd {
	options = append(options, "-Xmx1g", "-cp", tool(program, "lib")+"/*", class)
	return exec.CommandContext(ctx, "java", append(options, args...)...)
}

// peers lists the programs. Each may use all processors and makes no pause between requests; the pages are of
// as many hosts as there are connections or more, and the pace of one host is in the report.
var peers = []peer{
	{
		name: "orbweaver", version: []string{absolute("bin/orbweaver"), "version"}, get: "make build", warc: true,
		stores: "WARC with digests, CDXJ index, records and links of all URLs",
		command: func(ctx context.Context, dir string, seeds []string, resume bool) (*exec.Cmd, error) {
			args := []string{"crawl", "--requisites=false", "--data", filepath.Join(dir, "data"), "--allow-net", "127.0.0.0/8", "--json", fmt.Sprintf("--connections=%d", connections)}
			if !resume {
				args = append(args, "--scope", "any", "--delay", "0s", "--sitemaps=false", "--user-agent", agent+" (+https://example.org/bot)")
				args = append(args, seeds...)
			}
			return exec.CommandContext(ctx, absolute("bin/orbweaver"), args...), nil
		},
	},
	{
		name: "heritrix", version: []string{"ls", tool("heritrix", "lib")}, release: "Heritrix 3.13.0", get: get, warc: true,
		stores:  "WARC with digests, log of all URLs",
		command: heritrix,
	},
	{
		name: "bubing", version: []string{"ls", tool("bubing", "lib")}, release: "BUbiNG 0.9.15", get: get, warc: true, endless: true,
		stores: "WARC with digests",
		command: func(ctx context.Context, dir string, seeds []string, resume bool) (*exec.Cmd, error) {
			file := filepath.Join(dir, "bubing.properties")
			conf, err := fill("bubing.properties", "FOLDER", dir, "SEED", seeds[0], "AGENT", agent, "CONNECTIONS", strconv.Itoa(connections))
			if err = errors.Join(err, os.WriteFile(file, conf, 0o600)); err != nil {
				return nil, err
			}
			var options []string
			args := []string{"-g", "peers", "-h", "127.0.0.1", "-P", file}
			if !resume {
				args = append(args, "-n")
			}
			for _, option := range []string{
				"com.sun.management.jmxremote.port=9099", "com.sun.management.jmxremote.host=127.0.0.1", "com.sun.management.jmxremote.ssl=false",
				"com.sun.management.jmxremote.authenticate=false", "java.net.preferIPv4Stack=true", "jgroups.bind_addr=127.0.0.1",
				"logback.configurationFile=" + tool("bubing", "logback.xml"),
			} {
				options = append(options, "-D"+option)
			}
			return java(ctx, "bubing", options, "it.unimi.di.law.bubing.Agent", append(args, "peers")...), nil
		},
	},
	{
		name: "wget", version: []string{"wget", "--version"}, get: "apt-get install wget", stores: "WARC with digests", warc: true,
		command: func(ctx context.Context, dir string, seeds []string, _ bool) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, "wget", append([]string{
				"--recursive", "--level=inf", "--span-hosts", "--no-verbose", "--tries=2", "--timeout=20", "--user-agent=" + agent,
				"--warc-file=" + filepath.Join(dir, "pages"), "--no-warc-keep-log", "--delete-after", "--directory-prefix=" + filepath.Join(dir, "files"),
			}, seeds...)...), nil
		},
	},
	{
		name: "spider-rs", version: []string{"ls", tool("spider", "spider")}, release: "spider 2.53.9", get: get, stores: "WARC without digests, uncompressed",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, tool("spider", "spider"), arguments(dir, seeds)...), nil
		},
	},
	{
		name: "wget2", version: []string{"wget2", "--version"}, get: "apt-get install wget2", stores: "files",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, "wget2", append([]string{
				"--recursive", "--level=0", "--span-hosts", "--no-verbose", "--tries=2", "--timeout=20", "--user-agent=" + agent,
				fmt.Sprintf("--max-threads=%d", connections), "--compression=gzip", "--directory-prefix=" + filepath.Join(dir, "files"),
			}, seeds...)...), nil
		},
	},
	{
		name: "colly", version: []string{"ls", tool("colly", "colly")}, release: "Colly 2.3.0", get: get, stores: "files",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, tool("colly", "colly"), arguments(dir, seeds)...), nil
		},
	},
	{
		name: "crawlee", version: []string{"ls", tool("crawlee", "node_modules")}, release: "Crawlee 3.18.1 (CheerioCrawler)", get: get, stores: "files",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, "node", append([]string{tool("crawlee", "crawlee.mjs")}, arguments(dir, seeds)...)...), nil
		},
	},
	{
		name: "scrapy", version: []string{tool("scrapy", "bin", "scrapy"), "version"}, get: get, stores: "files",
		command: func(ctx context.Context, dir string, seeds []string, _ bool) (*exec.Cmd, error) {
			spider, err := fill("scrapy.py")
			file := filepath.Join(dir, "spider.py")
			if err = errors.Join(err, os.WriteFile(file, spider, 0o600)); err != nil {
				return nil, err
			}
			return exec.CommandContext(ctx, tool("scrapy", "bin", "scrapy"), "runspider", file, "-a", "seeds="+strings.Join(seeds, ","), "-a", "dir="+dir,
				"-s", "USER_AGENT="+agent, "-s", "ROBOTSTXT_OBEY=True", "-s", "LOG_LEVEL=WARNING", "-s", "JOBDIR="+filepath.Join(dir, "job"),
				"-s", fmt.Sprintf("CONCURRENT_REQUESTS=%d", connections), "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8", "-s", "DOWNLOAD_DELAY=0",
				"-s", "SCHEDULER_PRIORITY_QUEUE=scrapy.pqueues.DownloaderAwarePriorityQueue", "-s", "COOKIES_ENABLED=False",
				"-s", "REACTOR_THREADPOOL_MAXSIZE=20", "-s", "DOWNLOAD_TIMEOUT=20", "-s", "TELNETCONSOLE_ENABLED=False"), nil
		},
	},
}

// left names programs that are not compared, and why.
const left = `Nutch is not among them: its releases in the registry of Java packages have no plugins, without which it can
neither fetch nor parse.
`

// arguments returns the arguments of the programs that are written for this comparison.
func arguments(dir string, seeds []string) []string {
	return append([]string{agent, strconv.Itoa(connections), dir}, seeds...)
}

// heritrix runs a job that is the program's own profile with other values, and a scope of all hosts. It resumes from the last checkpoint, if there is one.
func heritrix(ctx context.Context, dir string, seeds []string, resume bool) (*exec.Cmd, error) {
	job := filepath.Join(dir, "jobs", "peers")
	args := []string{"-a", "peers:peers", "-b", "127.0.0.1", "-j", filepath.Dir(job), "-r", "peers"}
	if resume {
		return java(ctx, "heritrix", nil, "org.archive.crawler.Heritrix", append(args, "-c", "latest")...), nil
	}
	profile, err := os.ReadFile(tool("heritrix", "profile-crawler-beans.cxml"))
	if err != nil {
		return nil, err
	}
	values, err := fill("heritrix.properties", "AGENT", agent, "CONNECTIONS", strconv.Itoa(connections))
	if err != nil {
		return nil, err
	}
	before, _, ok1 := bytes.Cut(profile, []byte("metadata.operatorContactUrl="))
	_, after, ok2 := bytes.Cut(profile, []byte("\n##..more?..##"))
	const scope, seed = `<ref bean="acceptSurts" />`, "http://example.example/example"
	text := string(before) + string(values) + string(after)
	if !ok1 || !ok2 || !strings.Contains(text, scope) || !strings.Contains(text, seed) {
		return nil, errors.New("the profile of heritrix has changed")
	}
	text = strings.Replace(text, scope, `<bean class="org.archive.modules.deciderules.AcceptDecideRule" />`, 1)
	text = strings.Replace(text, seed, strings.Join(seeds, "\n"), 1)
	if err := errors.Join(os.MkdirAll(job, 0o755), os.WriteFile(filepath.Join(job, "crawler-beans.cxml"), []byte(text), 0o600)); err != nil {
		return nil, err
	}
	return java(ctx, "heritrix", nil, "org.archive.crawler.Heritrix", args...), nil
}
