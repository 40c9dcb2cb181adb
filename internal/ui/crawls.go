package ui

import (
	"context"
	"net/http"
	"sync"

	"github.com/orbweaver/orbweaver/internal/view"
)

// crawls lists the crawls of the store.
func (s *Server) crawls(ctx context.Context, v *view.View, r *http.Request) (string, string, any, error) {
	list, err := v.Summaries(ctx)
	if err != nil {
		return "", "", nil, err
	}
	type crawl = view.Summary
	t := newTable(r.URL.Query(), "crawls", "Crawls", "", list, []column[crawl]{
		{Name: "crawl", Text: func(c crawl) string { return c.Crawl }, Link: func(c crawl) string {
			if c.Active {
				return "/crawls/active"
			}
			return "/crawls/" + c.Crawl
		}},
		{Name: "state", Text: func(c crawl) string {
			if c.Active {
				return string(c.State) + ", active"
			}
			return string(c.State)
		}},
		{Name: "pages", Num: func(c crawl) float64 { return float64(c.Pages) }},
		{Name: "stored", Num: func(c crawl) float64 { return float64(c.Stored) }, Text: func(c crawl) string { return size(c.Stored) }},
		{Name: "created", Num: func(c crawl) float64 { return float64(c.Created.Unix()) }, Text: func(c crawl) string { return at(c.Created) }},
		{Name: "last commit", Num: func(c crawl) float64 { return float64(c.Last.Unix()) }, Text: func(c crawl) string { return at(c.Last) }},
		{Name: "from", Text: crawl.First},
	})
	return "crawls", "Crawls", t, nil
}

// cookie is the name of the cookie with the crawl that a person chose. Cookies do not tell ports apart, so each server has its own.
func (s *Server) cookie() string { return "crawl-" + s.token[:8] }

// choose shows a crawl from now on, in this browser. Other crawls than the active one can only be read.
func (s *Server) choose(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	choice := &http.Cookie{Name: s.cookie(), Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if id == "active" {
		choice.MaxAge = -1
	} else if err := s.other(r.Context(), id); err != nil {
		s.fail(w, err)
		return
	}
	http.SetCookie(w, choice)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// other makes a server for another crawl.
func (s *Server) other(ctx context.Context, id string) error {
	v, err := s.view.Of(ctx, id)
	if err != nil {
		return &problem{http.StatusNotFound, "There is no such crawl."}
	}
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	if s.others.of[id] == nil && id != s.view.ID() {
		o := s.Options
		o.Order, o.Recrawl = nil, nil
		other := New(v, o)
		other.token, other.others, other.chosen, other.earlier = s.token, s.others, true, true
		s.others.of[id] = other
	}
	return nil
}

// others are the servers that show other crawls, by id.
type others struct {
	mu sync.Mutex
	of map[string]*Server
}

// chosen returns the server for the crawl that a person chose, or nil.
func (o *others) chosen(r *http.Request, cookie string) *Server {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[c.Value]
}
