package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// because adds a reason in words.
func (r *URLReport) because(format string, args ...any) {
	r.Why = append(r.Why, fmt.Sprintf(format, args...))
}

// whyUnknown adds why the partition of a URL does not know it.
func (v *View) whyUnknown(ctx context.Context, c *blobschema.Crawl, at *slotState, u weburl.URL, r *URLReport) error {
	// What the crawl refuses comes first: scope, traps and caps.
	out, err := v.outOfScope(ctx, c, u)
	if err != nil {
		return err
	}
	if out != "" {
		r.because("%s", out)
	}
	var batch uint64 // of seeds, with u
	if err := v.eachSeed(ctx, c, func(n uint64, _ uint8, s weburl.URL) bool {
		if s == u {
			batch = n
		}
		return batch == 0
	}); err != nil {
		return err
	}
	if batch > 0 {
		r.because("it is a seed, in mail %d that its partition has not applied yet", batch)
		return nil
	}
	if trap := crawl.Trap(&c.Settings, u); trap != "" {
		r.because("links to it are not followed, for it looks like a trap: %s", trap)
	}
	capped, err := v.capped(ctx, c, at, u.Host())
	if err != nil {
		return err
	}
	r.Why = append(r.Why, capped...)
	// Then the pages that link to it.
	links, err := v.linksTo(ctx, u)
	if err != nil {
		return err
	}
	switch {
	case links.mailed && len(capped) > 0:
		r.because("a page links to it: it is left out, or on its way to its partition")
	case links.mailed:
		r.because("it was found, and is on its way to its partition")
	case links.plain != "" && out == "" && c.Settings.MaxDepth >= 0:
		r.because("%s links to it, and its links are beyond --max-depth %d", links.plain, c.Settings.MaxDepth)
	case links.plain != "":
		r.because("%s links to it", links.plain)
	case links.nofollow != "":
		r.because("%s links to it with nofollow; no other link to it is known", links.nofollow)
	default:
		r.because("no link to it is known")
		if !c.Settings.AnyRequisites() {
			r.because("the crawl has no --requisites: a page that was fetched may still need it, as pages need images, style sheets and scripts")
		}
	}
	return nil
}

// capped returns the caps that may refuse new URLs of a host.
func (v *View) capped(ctx context.Context, c *blobschema.Crawl, at *slotState, h weburl.Host) (why []string, err error) {
	s := &c.Settings
	reached := func(what, flag string, most, known int64, leftOut string) {
		if known >= most {
			why = append(why, fmt.Sprintf("its %s has reached the cap of %s %d%s", what, flag, most, leftOut))
		} else if known > 0 && known >= most/2 {
			why = append(why, fmt.Sprintf("its %s has reached half of the cap of %s %d: URLs that only sitemaps list are left out%s", what, flag, most, leftOut))
		}
	}
	if known := int64(at.site.Settled) + at.pendingOf(h); s.MaxHostURLs > 0 && (at.site.Capped > 0 || known >= s.MaxHostURLs) {
		reached("host", "--max-host-urls", s.MaxHostURLs, known, fmt.Sprintf(": %d URLs of it are known, %d links were left out", known, at.site.Capped))
	}
	if s.MaxDomainURLs == 0 {
		return why, nil
	}
	domain := h.RegistrableDomain()
	var desired blobschema.DesiredState
	heads, _, err := v.headsAnd(ctx, []string{naming.DesiredKey(v.id)}, []any{&desired})
	if err != nil {
		return nil, err
	}
	var known int64
	for i := range heads {
		known += heads[i].Domains[domain]
	}
	if slices.Contains(desired.Capped, domain) {
		known = max(known, s.MaxDomainURLs)
	}
	reached("registrable domain "+domain, "--max-domain-urls", s.MaxDomainURLs, known, "")
	return why, nil
}

// requested adds whether a request from outside for the URL is not known to be applied.
func (v *View) requested(ctx context.Context, r *URLReport) error {
	var reqs blobschema.Requests
	if _, err := v.record(ctx, naming.RequestsKey(v.id), &reqs); err != nil || len(reqs.Outbox) == 0 {
		return err
	}
	heads, err := v.Heads(ctx)
	if err != nil {
		return err
	}
	for _, m := range reqs.Outbox {
		if h := headOf(heads, m.To); h != nil && m.Number <= h.Requests {
			continue
		}
		urls, err := blobschema.ReadSeeds(blobschema.GetFrom(ctx, v.store), m.Object)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(urls, func(q blobschema.Queued) bool { return q.URL == r.URL }) {
			r.because("it is requested in mail %d to partition %d, which is not known to be applied yet", m.Number, m.To)
			return nil
		}
	}
	return nil
}

// linksTo is what commits contain about a URL that its partition does not know.
type linksTo struct {
	mailed   bool
	plain    string // a page with a link to it
	nofollow string // a page with a link to it that is not to be followed
}

func (v *View) linksTo(ctx context.Context, u weburl.URL) (found linksTo, err error) {
	fp := v.hash.Fingerprint(u.String())
	for c, err := range v.Commits(ctx) {
		if err != nil {
			return found, err
		}
		links, err := c.Links()
		if err != nil {
			return found, fmt.Errorf("links of %s: %w", c.Name, err)
		}
		for i := range links {
			for _, t := range links[i].Targets {
				switch {
				case t.Fingerprint != fp:
				case t.Followed:
					found.mailed = true // otherwise its partition would know it
					return found, nil
				case t.NoFollow && found.nofollow == "":
					found.nofollow = v.sourceOf(c, links[i].Source)
				case !t.NoFollow && found.plain == "":
					found.plain = v.sourceOf(c, links[i].Source)
				}
			}
		}
	}
	return found, nil
}

// sourceOf names the page of a commit with the given fingerprint.
func (v *View) sourceOf(c Commit, fp uint64) string {
	pages, err := c.Pages()
	if err == nil {
		for i := range pages {
			if v.hash.Fingerprint(pages[i].URL) == fp {
				return pages[i].URL
			}
		}
	}
	return fmt.Sprintf("page %016x", fp)
}
