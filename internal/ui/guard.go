package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/orbweaver/orbweaver/internal/crawl"
)

// policy is the content security policy of pages: nothing but this server's own style, script and frames.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// guard refuses requests that do not come from a person who opened this server, and sets the headers of all answers.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, &problem{http.StatusForbidden, "This request comes from another site, so nothing was changed."})
	}))
	next = cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("X-Frame-Options", "SAMEORIGIN")
		h.Set("X-DNS-Prefetch-Control", "off")
		h.Set("X-Robots-Tag", "noindex")
		h.Set("Cache-Control", "no-store")
		switch {
		case !s.known(r.Host):
			s.fail(w, &problem{http.StatusMisdirectedRequest, "This server does not answer under that name. Open it as localhost or by its IP address."})
		case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
			s.fail(w, &problem{http.StatusForbidden, "Another site may not read this server."})
		case len(r.URL.RawQuery) > maxQuery:
			s.fail(w, badRequest("The address is too long: at most %d bytes.", maxQuery))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// known reports whether a Host header names this server. A page of another site can only reach it under a name of that
// site, whose address changes to that of this machine (DNS rebinding). So IP addresses are safe, and no other names than
// localhost and that of the options.
func (s *Server) known(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" || s.Host != "" && name == strings.ToLower(s.Host)
}

// form reads the form of a change, and checks the token.
func (s *Server) form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if s.Order == nil {
		return nil, &problem{http.StatusForbidden, "This server only reads. Start it with --control to change the crawl."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxQuery)
	if err := r.ParseForm(); err != nil {
		return nil, badRequest("The form could not be read.")
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(s.token)) != 1 {
		return nil, &problem{http.StatusForbidden, "The server was started again since the page was made. Go back, reload the page, and try again."}
	}
	return r.PostForm, nil
}

// order pauses, resumes or stops the crawl.
func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	form, err := s.form(w, r)
	if err == nil {
		switch o := crawl.Order(form.Get("order")); o {
		case crawl.OrderPause, crawl.OrderResume, crawl.OrderStop:
			_, err = s.Order(r.Context(), o)
		default:
			err = badRequest("There is no such order.")
		}
	}
	s.done(w, r, "/", err)
}

// recrawl requests a URL.
func (s *Server) recrawl(w http.ResponseWriter, r *http.Request) {
	to := "/explain"
	form, err := s.form(w, r)
	if err == nil {
		u, perr := parseURL(form.Get("url"))
		if err = perr; err == nil {
			to = explainLink(u.String()) + "&requested=1"
			err = s.Recrawl(r.Context(), u)
		}
	}
	s.done(w, r, to, err)
}

// done ends a change: it leads to the page that shows it.
func (s *Server) done(w http.ResponseWriter, r *http.Request, to string, err error) {
	if err != nil {
		s.fail(w, err)
		return
	}
	s.mu.Lock()
	s.status.at = s.status.at.Add(-s.Every) // read it again
	s.mu.Unlock()
	http.Redirect(w, r, to, http.StatusSeeOther)
}
