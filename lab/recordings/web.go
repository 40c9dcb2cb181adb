package main

import (
	"context"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// web is the project as a web: the first host has the documents, each of the others the files of a package.
type web struct{ hosts []*host }

type host struct {
	authority string
	folder    string            // of the package; "" for documents
	pages     map[string]string // HTML by path
}

// readWeb makes pages of all documents and sources below root, except tests.
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
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if path.Ext(name) == ".md" {
			docs.pages["/"+name], err = document(data)
			return err
		}
		h := packages[path.Dir(name)]
		if h == nil {
			h = &host{folder: path.Dir(name), pages: map[string]string{}}
			packages[h.folder], w.hosts = h, append(w.hosts, h)
		}
		h.pages["/"+base] = page(name, "<pre>"+html.EscapeString(string(data))+"</pre>\n"+link("/", h.folder))
		return nil
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
	body, ok := h.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(body))
}

func page(title, body string) string {
	return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) + "</title></head>\n<body>\n" + body + "</body></html>\n"
}

func link(to, name string) string {
	return `<a href="` + html.EscapeString(to) + `">` + html.EscapeString(name) + "</a>"
}

func links(pages map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		b.WriteString("<li>" + link(name, strings.TrimPrefix(name, "/")) + "</li>\n")
	}
	return b.String()
}

// document makes HTML of Markdown. Links that leave the documents become text.
func document(markdown []byte) (string, error) {
	title := ""
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(markdown))
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if title == "" {
				title = string(n.Lines().Value(markdown))
			}
		case *ast.Link:
			if strings.Contains(string(n.Destination), "://") {
				n.Destination = []byte("#")
			}
		}
		return ast.WalkContinue, nil
	})
	var b strings.Builder
	if err == nil {
		err = goldmark.New(goldmark.WithExtensions(extension.Table)).Renderer().Render(&b, markdown, root)
	}
	return page(title, b.String()), err
}
