package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// web is the project as a web: the first host has the documents, each of the others the files of a package.
type web struct{ hosts []*host }

type host struct {
	authority string
	folder    string            // of the package; "" for documents
	pages     map[string]string // HTML by path
}

// readWeb makes pages of all documents and sources below root, but for tests.
func readWeb(root string) (*web, error) {
	docs := &host{pages: map[string]string{}}
	w := &web{hosts: []*host{docs}}
	packages := map[string]*host{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base[0] == '.' || base == "testdata" || base == "bin" || base == "tools" || base == "recordings"):
			return fs.SkipDir
		case path.Ext(name) != ".md" && path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if path.Ext(name) == ".md" {
			docs.pages["/"+name] = document(string(text))
			return nil
		}
		h := packages[path.Dir(name)]
		if h == nil {
			h = &host{folder: path.Dir(name), pages: map[string]string{}}
			packages[h.folder], w.hosts = h, append(w.hosts, h)
		}
		h.pages["/"+base], err = source(name, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(w.hosts[1:], func(a, b *host) int { return strings.Compare(a.folder, b.folder) })
	for i, h := range w.hosts {
		h.authority = fmt.Sprintf("127.0.0.%d:%d", i+1, sitePort)
	}
	for _, h := range w.hosts[1:] {
		h.pages["/"] = page(h.folder, "<h1>Package "+h.folder+"</h1>\n"+links(h.pages)+link("http://"+docs.authority+"/README.md", "Orbweaver"))
	}
	body := links(docs.pages)
	for _, h := range w.hosts[1:] {
		body += "<li>" + link("http://"+h.authority+"/", h.folder) + "</li>\n"
	}
	docs.pages["/"] = page("Orbweaver, its documents and packages", "<h1>Orbweaver</h1>\n"+body)
	return w, nil
}

// serve answers for all hosts until stop is called.
func (w *web) serve(ctx context.Context) (stop func(), err error) {
	var servers []*http.Server
	stop = func() {
		for _, s := range servers {
			_ = s.Close()
		}
	}
	for _, h := range w.hosts {
		var c net.ListenConfig
		l, err := c.Listen(ctx, "tcp4", h.authority)
		if err != nil {
			stop()
			return nil, fmt.Errorf("%w\nThe web needs loopback addresses from 127.0.0.1 on, which some systems must be told of first", err)
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		servers = append(servers, s)
		go func() { _ = s.Serve(l) }() // ends with stop
	}
	return stop, nil
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := h.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(text))
}

func page(title, body string) string {
	return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) + "</title></head>\n<body>\n" + body + "</body></html>\n"
}

func link(to, text string) string {
	return `<a href="` + html.EscapeString(to) + `">` + html.EscapeString(text) + "</a>"
}

func links(pages map[string]string) string {
	var names []string
	for name := range pages {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString("<li>" + link(name, strings.TrimPrefix(name, "/")) + "</li>\n")
	}
	return b.String()
}

var (
	heading = regexp.MustCompile(`^(#+) (.*)`)
	inLine  = regexp.MustCompile("`([^`]+)`|\\*+([^*]+)\\*+|\\[([^]]+)\\]\\(([^)]+)\\)|([^`*\\[]+|.)")
)

// document makes HTML of as much of Markdown as the documents use. What leads out of them is no link.
func document(text string) string {
	title := ""
	var b strings.Builder
	block, open := false, ""
	within := func(element string) {
		if open != element {
			if open != "" {
				b.WriteString("</" + open + ">\n")
			}
			if element != "" {
				b.WriteString("<" + element + ">")
			}
			open = element
		}
	}
	for line := range strings.Lines(text) {
		m := heading.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			block = !block
			within(map[bool]string{true: "pre"}[block])
		case block:
			b.WriteString(html.EscapeString(line))
		case strings.TrimSpace(line) == "":
			within("")
		case m != nil:
			within("")
			if title == "" {
				title = m[2]
			}
			level := strconv.Itoa(len(m[1]))
			b.WriteString("<h" + level + ">" + spans(m[2]) + "</h" + level + ">\n")
		default:
			within("p")
			b.WriteString(spans(strings.Trim(line, "|-: \n")) + "\n")
		}
	}
	within("")
	return page(title, b.String())
}

func spans(text string) string {
	var b strings.Builder
	for _, m := range inLine.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] != "":
			b.WriteString("<code>" + html.EscapeString(m[1]) + "</code>")
		case m[2] != "":
			b.WriteString("<b>" + html.EscapeString(m[2]) + "</b>")
		case m[3] != "" && !strings.Contains(m[4], "://"):
			b.WriteString(link(m[4], m[3]))
		case m[3] != "":
			b.WriteString(html.EscapeString(m[3]))
		default:
			b.WriteString(html.EscapeString(m[5]))
		}
	}
	return b.String()
}

// source makes HTML of a file of Go: what its comments say of each declaration, and the declaration.
func source(name string, text []byte) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>%s</h1>\n<p>%s</p>\n", name, html.EscapeString(f.Doc.Text()))
	for _, d := range f.Decls {
		end, doc := d.End(), (*ast.CommentGroup)(nil)
		switch d := d.(type) {
		case *ast.FuncDecl:
			doc = d.Doc
			if d.Body != nil {
				end = d.Body.Lbrace
			}
		case *ast.GenDecl:
			if doc = d.Doc; d.Tok == token.IMPORT {
				continue
			}
		}
		fmt.Fprintf(&b, "<p>%s</p>\n<pre>%s</pre>\n", html.EscapeString(doc.Text()), html.EscapeString(string(text[d.Pos()-f.FileStart:end-f.FileStart])))
	}
	b.WriteString("<p><a href=\"/\">" + path.Dir(name) + "</a></p>\n")
	return page(name, b.String()), nil
}
