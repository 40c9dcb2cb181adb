package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// This file is the way of a found link, from top to bottom. The extractor has already resolved it against its page.
//
//	discover    politeness key → slot → fingerprint; the link graph; the count of each fate
//	follow      depth, flags and topic → traps → Follow and scope → rank → deliver
//	need        the same for what a page needs to be displayed, in scope or not
//	deliver     own partition, or buffered for the owner of its slot

// fate is what becomes of a found link.
type fate uint8

const (
	added    fate = iota // in this partition's frontier, pending or unexamined
	buffered             // for the owner of its slot, until a commit mails it
	known                // dropped: it is known here or was mailed before
	capped               // dropped: its host has too many URLs
	trapped              // dropped: the URL looks like one of infinitely many, or its chain of redirects is too long
	tooDeep              // dropped: it is further from a seed than the scope allows
	outside              // dropped, but stored in the commit: its host may come into scope
	excluded             // dropped: a pattern of the operator or [StepConfig.Follow] excludes it
	ignored              // dropped: nofollow, a link of a mere requisite, or a requisite that the crawl does not want
)

// discover decides the fate of each link of an answer, and adds all of them to the link graph.
func (st *state) discover(t schedule.Task, o *actor.Outcome) {
	if len(o.Links) == 0 {
		return
	}
	graph := blobschema.PageLinks{
		Source: t.Fingerprint(), Slot: st.links.Hash.Slot(t.KeyName()), Host: string(t.Request.URL.Host()),
		Targets: make([]blobschema.Target, 0, len(o.Links)),
	}
	cash, asPage := st.cash(t, o.Links), st.isPage(&t)
	needs := st.cfg.Crawl.Settings.WantsRequisites(t.Topic)
	sheet := o.Page.MIME == "text/css"
	if !asPage && !sheet && o.Page.Outcome == blobschema.OutcomeOK {
		st.keepForeign(t)
	}
	for i := range o.Links {
		found := &o.Links[i]
		l := st.links.Link(found.URL)
		target := blobschema.Target{
			Fingerprint: l.Fingerprint, Slot: l.Slot, Host: string(found.URL.Host()), NoFollow: found.NoFollow, Anchor: found.Anchor,
			Kind: 1 + uint8(found.Kind), Requisite: found.Requisite,
		}
		f := ignored
		hop := found.Kind == actor.LinkRedirect && t.Flags.Requisite() // to what the page needs
		if asPage && !hop && found.Kind != actor.LinkRequisite && !found.NoFollow {
			f = st.follow(t, found, l, cash)
		}
		if f > capped && needs && (hop || found.Requisite && (asPage || sheet)) {
			if n := st.need(t, l); n <= capped || f == ignored {
				f = n
			}
		}
		countFate(&st.totals, f)
		target.Followed = f <= capped
		if f >= capped && f != outside {
			target.URL = found.URL.String()
		}
		graph.Targets = append(graph.Targets, target)
	}
	if !t.Request.Robots {
		st.batch.links = append(st.batch.links, graph)
	}
}

// follow decides the fate of one link of an answer.
func (st *state) follow(t schedule.Task, found *actor.Link, l frontier.Link, cash float64) fate {
	// Depth, flags and topic come from the page that the link is on.
	if !descend(&l, t, found) {
		return trapped
	}
	seed := l.Flags&blobschema.FlagSeed != 0
	// Only the URL can show a trap here. A seed may look like one.
	if !seed && Trap(&st.cfg.Crawl.Settings, l.URL) != "" {
		return trapped
	}
	// Each topic has its own scope. A redirect of a seed widens it.
	sc := st.scopes.of(l.Topic)
	inside := seed || sc.host(l.URL.Host())
	switch {
	case !sc.depth(int(l.Depth)):
		return tooDeep
	case st.cfg.Follow != nil && !st.cfg.Follow(t.Request.URL, l.URL):
		return excluded
	case inside && !sc.patterns(l.URL):
		return excluded
	}
	l.Rank = st.rank(l.URL, schedule.Candidate{
		Depth: l.Depth, Priority: found.Priority, Relevant: st.relevant(l.Topic, found), Fingerprint: l.Fingerprint, Cash: cash,
	})
	if !inside {
		st.keepOutside(l)
		return outside
	}
	// If a sitemap says that a page has changed, the page is requested once more.
	if !st.hint(t, found, l) && changedSince(t, found) {
		l.Flags |= blobschema.FlagAgain
		st.buffer(l)
		return buffered
	}
	return st.deliver(l)
}

// isPage reports whether the links of an answer count as those of a page. A requisite is a page too if the scope
// would have admitted a link to it, but its redirects lead to requisites.
func (st *state) isPage(t *schedule.Task) bool {
	sc, u := st.scopes.of(t.Topic), t.Request.URL
	return !t.Flags.Requisite() || sc.host(u.Host()) && sc.depth(int(t.Request.Depth)) && sc.patterns(u)
}

// keepForeign stores a requisite that is a page out of scope. If its host comes into scope, it is requested once more, as a
// page: nothing else would follow its links.
func (st *state) keepForeign(t schedule.Task) {
	sc, u := st.scopes.of(t.Topic), t.Request.URL
	if sc.host(u.Host()) || !sc.patterns(u) || !sc.depth(int(t.Request.Depth)) {
		return
	}
	l := st.links.Link(u)
	l.Topic, l.Depth, l.Generation = t.Topic, t.Request.Depth, t.Request.Generation+1
	l.Rank = st.rank(u, schedule.Candidate{Depth: l.Depth, Fingerprint: l.Fingerprint})
	st.batch.outside = append(st.batch.outside, l.Queued())
}

// maxRequisiteHops bounds the style sheets and redirects between a page and a requisite.
const maxRequisiteHops = 10

// need decides the fate of a requisite. Its page is in scope, so only its own URL, or an endless chain, can rule it out.
func (st *state) need(t schedule.Task, l frontier.Link) fate {
	l.Topic, l.Depth, l.Rank, l.Flags = t.Topic, t.Request.Depth, schedule.RequisiteRank, l.Flags|blobschema.FlagRequisite
	if t.Flags.Requisite() {
		l.Flags |= t.Flags.NextHop()
	} else {
		l.Depth++
	}
	switch {
	case t.Flags.Requisite() && t.Flags.Hops() >= maxRequisiteHops, Trap(&st.cfg.Crawl.Settings, l.URL) != "":
		return trapped
	case st.scopes.of(l.Topic).excludes(l.URL), st.cfg.Follow != nil && !st.cfg.Follow(t.Request.URL, l.URL):
		return excluded
	}
	return st.deliver(l)
}

// deliver passes a link in scope to the owner of its slot. Redirects of late seeds come here too.
func (st *state) deliver(l frontier.Link) fate {
	seed := l.Flags&blobschema.FlagSeed != 0
	// A link of another partition is buffered, unless its owner has it already.
	if st.owner(l.Slot) != st.cfg.Partition {
		rank, news := st.sent.add(&l)
		if !news && !seed {
			return known
		}
		if news {
			l.Rank = rank
		}
		st.buffer(l)
		return buffered
	}
	// A late seed may have been settled before it was known to be a seed; its redirect was out of scope then. It is
	// buffered for mail even to this partition itself, because mail checks settled seeds (again.go).
	if st.lateSeed(l) && (!st.f.Loaded(l.Slot, l.Fingerprint) || st.f.Settled(l.Slot, l.Fingerprint)) {
		st.buffer(l)
		return buffered
	}
	return st.add(l)
}

// add puts a link of this partition into the frontier. The host of a seed comes into scope.
func (st *state) add(l frontier.Link) fate {
	if host := l.URL.Host(); l.Flags&blobschema.FlagSeed != 0 && st.scopes.take(l.Topic, host) {
		st.batch.newScope = append(st.batch.newScope, ScopeEntry(l.Topic, host))
	}
	switch st.f.Add(st.lease.Clock(), l) {
	case frontier.Known:
		return known
	case frontier.Capped:
		return capped
	}
	return added
}

func (st *state) buffer(l frontier.Link) {
	o := st.out.of(st.owner(l.Slot))
	o.links = append(o.links, l.Queued())
}

// keepOutside stores a link in the commit, to be followed if its host comes into scope: see state.rescan.
func (st *state) keepOutside(l frontier.Link) {
	if rank, news := st.sent.add(&l); news {
		l.Rank = rank
		st.batch.outside = append(st.batch.outside, l.Queued())
	}
}

// maxRedirects bounds a chain of redirects, which does not increase the depth.
const maxRedirects = 10

// descend sets depth, topic and flags of a link on the page of a task. It returns false at the end of a too long chain of
// redirects.
func descend(l *frontier.Link, t schedule.Task, found *actor.Link) bool {
	l.Depth, l.Topic = t.Request.Depth, t.Topic
	switch {
	case found.Kind == actor.LinkRedirect:
		l.Flags |= t.Flags.NextHop()
		return t.Flags.Hops() < maxRedirects
	case found.Kind == actor.LinkListed:
		l.Flags |= blobschema.FlagListed
		l.Depth++
	case found.Kind != actor.LinkSitemap:
		l.Depth++
	case t.Request.Robots:
		l.Flags |= blobschema.FlagSitemap
	default:
		l.Flags |= t.Flags.NextHop() &^ blobschema.FlagSeed
		if l.Flags&blobschema.FlagSitemap == 0 { // nested too deep, or recognised by its media type only
			l.Depth++
		}
	}
	return true
}

// changedSince reports whether a sitemap that was read again lists a URL as changed since it was last read. It allows for
// one day, because many sitemaps give dates only.
func changedSince(t schedule.Task, found *actor.Link) bool {
	f := t.Request.Previous
	return f != nil && found.Kind == actor.LinkListed && found.Modified >= f.Time.Unix()-24*60*60
}

// lateSeed reports whether a seed may have been settled before as a found link, when its redirect was out of scope.
func (st *state) lateSeed(l frontier.Link) bool {
	return l.Flags&blobschema.FlagSeed != 0 && st.scopes.of(l.Topic).kind != blobschema.ScopeAny &&
		st.owner(l.Slot) == st.cfg.Partition && !st.f.Pending(l.Slot, l.Fingerprint)
}

// mapping returns how a crawl maps URLs to politeness keys and slots.
func mapping(c *blobschema.Crawl) (frontier.Mapping, error) {
	h, err := c.Hash()
	return frontier.Mapping{Hash: h, By: c.Settings.PartitionBy}, err
}
