package simulate

import (
	"bytes"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

const (
	timeout = time.Minute      // time limit of a request
	begin   = time.Millisecond // time between the effect and the start of the request
)

// lastRequest is the last request of a politeness key. A request for robots.txt does not count for the pace of the operator, only
// for one that the host demands.
type lastRequest struct {
	at     time.Duration
	key    string
	robots bool
	by     *proc
}

// address returns the address of a name: one of a few that many names share, and perhaps another one each time.
func (p *proc) address(host string) netip.Addr {
	h := fnv.New32a()
	_, _ = h.Write(append([]byte(host), byte(p.rng.IntN(2)))) // never fails
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(h.Sum32() % 5)})
}

// checkPin fails unless a host is always requested at the same address. It allows another one after faults: a step that
// crashed or lost its lease may have used it without result.
func (w *world) checkPin(host string, addr netip.Addr) {
	if old, ok := w.pinned[host]; ok && old != addr && w.suffered == 0 && w.crashes == 0 {
		w.fail(broken("pin", "%s was requested at %s, and now at %s", host, old, addr))
	}
	w.pinned[host] = addr
}

// fetch requests a URL of the generated web. The request reaches the host at once, so that the pace is checked as the host
// sees it (I9).
func (p *proc) fetch(id uint64, e actor.Fetch) {
	w := p.w
	req := e.Request
	if !p.kindly && w.fault(&p.identity, CrashAsking) {
		p.crash()
		return
	}
	url := req.URL.String()
	if url == w.cfg.Killer {
		p.crash()
		return
	}
	if err := p.mayAsk(&req); err != nil {
		w.fail(err)
	}
	if req.Resolve {
		p.resolve(id, req)
		return
	}
	if w.cfg.PartitionBy == blobschema.ByIP {
		w.checkPin(string(req.URL.Host()), req.Addr)
	}
	w.lastRequests[req.Key] = lastRequest{at: w.Mono, key: paced(req), robots: req.Robots, by: p}
	if host := string(req.URL.Host()); req.Generation == 0 && (!req.Robots || !w.met[host]) { // a failing robots.txt is requested once an hour
		w.news = w.Mono
		w.met[host] = w.met[host] || !req.Robots
	}
	resp := p.answer(&req, url)
	o, took := p.outcome(req, &resp)
	p.fetching[id] = req
	p.await(id, o, took)
}

// await delivers an answer after the time that it takes, or aborts the request at its deadline, which extend may move.
func (p *proc) await(id uint64, o *actor.Outcome, took time.Duration) {
	w := p.w
	req, ok := p.fetching[id]
	if !ok {
		return // cancelled
	}
	left := req.Deadline.Sub(p.wall())
	if took > 0 && left > 0 {
		pause := min(took, left)
		w.After(pause, func() { p.await(id, o, took-pause) })
		return
	}
	if took > 0 {
		o = actor.Aborted(req, p.wall())
	}
	delete(p.fetching, id)
	if req.Robots && o.Page.Outcome == blobschema.OutcomeOK {
		p.learnPace(paced(req), o.Body)
	}
	w.note(p.name, "answer", req.URL.String(), o.Page.Outcome.String())
	p.reply(actor.Reply{ID: id, Value: o})
}

// extend gives all requests under way a later deadline.
func (p *proc) extend(deadline time.Time) {
	if s := p.w.part(p.part); s.holder == p && deadline.After(s.head.LeaseUntil.Add(-margin)) {
		p.w.fail(broken("I4", "%s extends its requests until %v, the lease ends at %v", p.name, deadline.Sub(virtual.Epoch), s.head.LeaseUntil.Sub(virtual.Epoch)))
	}
	for id, req := range p.fetching {
		req.Deadline = deadline
		p.fetching[id] = req
	}
}

// trouble is a failure of a host for a while.
type trouble struct {
	kind  Kind
	until time.Duration
	fault simweb.Response // answer of a host that is down
	times time.Duration   // factor on the latency of a slow host
}

// maxSpoilt is the number of answers to one URL that trouble may spoil: fewer than its attempts.
const maxSpoilt = 2

// answer returns the answer of the web to a request, or what trouble of the host makes of it.
func (p *proc) answer(req *actor.Request, url string) simweb.Response {
	w, host, budget := p.w, string(req.URL.Host()), url
	if req.Robots { // everything it redirects to shares the attempts of one
		budget = paced(*req)
	}
	t := w.trouble[host]
	if t == nil || t.until <= w.Mono {
		if t = p.newTrouble(); t != nil {
			w.trouble[host] = t
		}
	}
	if w.fault(&p.identity, HostChanged) {
		w.touch(url)
	}
	spoilt := t != nil && t.until > w.Mono && w.spoilt[budget] < maxSpoilt && req.Attempt < maxSpoilt // the last outcome is the web's own
	if spoilt && t.kind == HostDown {
		w.spoilt[budget]++
		return t.fault
	}
	asking := simweb.Request{URL: url, Attempt: w.hits[url], AcceptGzip: true, Now: w.Wall()}
	for _, f := range fetch.Conditions(req) {
		switch f.Name {
		case "If-None-Match":
			asking.IfNoneMatch = f.Value
		case "If-Modified-Since":
			asking.IfModifiedSince = f.Value
		}
	}
	resp := w.web.Answer(asking)
	w.hits[url]++
	if spoilt {
		resp.Delay, resp.BodyTime = resp.Delay*t.times, resp.BodyTime*t.times
		if resp.Delay+resp.BodyTime >= timeout {
			w.spoilt[budget]++
		}
	}
	return resp
}

// touch changes a page.
func (w *world) touch(url string) {
	w.web.Touch(url)
	w.changed[hostOf(url)] = true
}

// newTrouble decides whether trouble of the requested host begins now.
func (p *proc) newTrouble() *trouble {
	for _, k := range []Kind{HostDown, HostSlow} {
		if !p.w.fault(&p.identity, k) {
			continue
		}
		r := p.detail(k)
		t := &trouble{kind: k, until: p.w.Mono + between(r, time.Second, 10*time.Minute), times: time.Duration(2 + r.IntN(99))}
		t.fault = []simweb.Response{
			{Fault: simweb.FaultRefused}, {Fault: simweb.FaultReset}, {Fault: simweb.FaultSilent},
			{Status: 503, Header: []simweb.Field{{Name: "Retry-After", Value: "60"}}}, {Status: 500}, {Status: 429},
		}[r.IntN(6)]
		return t
	}
	return nil
}

// paced returns the key under which the pace of a request is learnt: politeness key and host. A robots.txt to which another
// host redirects counts for that other host.
func paced(req actor.Request) string {
	if req.Robots && req.Site != "" {
		return req.Key + " " + req.Site
	}
	return req.Key + " " + string(req.URL.Host())
}

// resolve looks up the address of a name.
func (p *proc) resolve(id uint64, req actor.Request) {
	w := p.w
	resp := w.web.Answer(simweb.Request{URL: req.URL.String(), Now: w.Wall()})
	o, took := p.outcome(req, &simweb.Response{Fault: resp.Fault, Delay: 20 * time.Millisecond})
	if resp.Fault != simweb.FaultDNS {
		out := actor.Aborted(req, p.wall())
		out.Page.Outcome, out.Temporary, out.Started, out.Addr = blobschema.OutcomeOK, false, p.wall(), p.address(string(req.URL.Host()))
		o = out
	}
	p.fetching[id] = req
	p.await(id, o, took)
}

// outcome returns what the fetcher would make of a response, and how long that would take.
func (p *proc) outcome(req actor.Request, resp *simweb.Response) (*actor.Outcome, time.Duration) {
	started := p.wall()
	limit, longest := timeout, fetch.Patience*timeout
	if req.Longest > 0 {
		limit, longest = min(limit, req.Longest), min(longest, req.Longest)
	}
	took := resp.Delay + resp.BodyTime + begin
	refuse := func(o blobschema.Outcome, temporary bool) (*actor.Outcome, time.Duration) {
		out := actor.Aborted(req, started)
		out.Page.Outcome, out.Temporary, out.Started = o, temporary, started
		return out, min(took, limit+begin)
	}
	switch resp.Fault {
	case simweb.FaultDNS:
		return refuse(blobschema.OutcomeDNS, false)
	case simweb.FaultRefused:
		return refuse(blobschema.OutcomeConnect, true)
	case simweb.FaultSilent:
		took = limit + begin
		return refuse(blobschema.OutcomeTimeout, true)
	case simweb.FaultReset, simweb.FaultCut:
		return refuse(blobschema.OutcomeCut, true)
	case simweb.FaultGarbage:
		return refuse(blobschema.OutcomeProtocol, false)
	}
	body, truncated := resp.Body, ""
	if took > limit+begin {
		steady := float64(len(body)) >= fetch.MinRate*resp.BodyTime.Seconds()
		if resp.Delay >= limit || req.Robots || !steady {
			return refuse(blobschema.OutcomeTimeout, true)
		}
		if took > longest+begin {
			took, truncated = longest+begin, warc.TruncatedTime
			body = body[:int(float64(len(body))*(longest-resp.Delay).Seconds()/resp.BodyTime.Seconds())]
		}
	}
	r := fetch.Response{
		Status: resp.Status, Proto: "HTTP/1.1", Body: body, Truncated: truncated, Addr: "192.0.2.1", Started: started, Ended: started.Add(took),
		RequestHead: []byte("GET " + req.URL.RequestURI() + " HTTP/1.1\r\nHost: " + string(req.URL.Host()) + "\r\n\r\n"),
	}
	if req.Addr.IsValid() {
		r.Addr = req.Addr.String()
	}
	for _, h := range resp.Header {
		r.Header = append(r.Header, warc.HeaderField{Name: h.Name, Value: h.Value})
	}
	slices.SortStableFunc(r.Header, func(a, b warc.HeaderField) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	out := fetch.Assemble(p.w.scratch, req, r)
	out.Response, out.Closed, out.Wire = took, resp.Close, int64(len(resp.Body))
	return out, took
}

// learnPace records the pace that a robots.txt demands when its answer arrives. It binds the step at once, and later steps
// after this step's clean end: what a crashed step had just learnt is lost.
func (p *proc) learnPace(host string, body []byte) {
	if d, ok := polite.ParseRobots(body, agent).CrawlDelay(); ok {
		p.learnt[host] = max(p.learnt[host], min(d, polite.MaxCrawlDelay))
	}
}
