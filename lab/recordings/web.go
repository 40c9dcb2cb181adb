package main

import (
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// A web is the project as a web: each folder is a host with a page for each document and source.
// It maps authorities to folders.
type web map[string]string

const firstHost = "127.0.0.1:8080"

var page = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en"><title>{{.Title}}</title>
<body>{{with .Text}}<pre>{{.}}</pre>{{end}}
{{range .Files}}<li><a href="/{{.}}">{{.}}</a></li>
{{end}}{{range $host, $folder := .Hosts}}<li><a href="http://{{$host}}/">{{$folder}}</a></li>
{{end}}</body></html>
`))

// serve answers for all hosts until the program ends.
func serve(root string) error {
	w := web{}
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" {
			return fs.SkipDir
		}
		if len(files(name)) == 0 {
			return nil
		}
		host := fmt.Sprintf("127.0.0.%d:8080", len(w)+1)
		w[host] = name
		l, err := net.Listen("tcp4", host)
		if err == nil {
			go func() { _ = http.Serve(l, w) }()
		}
		return err
	})
}

// files returns the names of a folder's documents and sources, except tests.
func files(folder string) (names []string) {
	all, _ := os.ReadDir(folder)
	for _, f := range all {
		if ext := path.Ext(f.Name()); (ext == ".md" || ext == ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			names = append(names, f.Name())
		}
	}
	return names
}

func (w web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	folder, name := w[r.Host], path.Base(r.URL.Path)
	about := struct {
		Title, Text string
		Files       []string
		Hosts       web
	}{Title: path.Join(folder, name)}
	text, err := os.ReadFile(filepath.Join(folder, name))
	switch {
	case err == nil:
		about.Text = string(text)
	case r.URL.Path != "/":
		http.NotFound(out, r)
		return
	default:
		about.Files = files(folder)
		if r.Host == firstHost {
			about.Hosts = w
		}
	}
	_ = page.Execute(out, about)
}
