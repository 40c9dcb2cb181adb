package hostile

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Lookup resolves the names of the cases and no others. It has the signature of the
// crawler's resolvers.
func (s *Server) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	short, _ := strings.CutSuffix(name, nameSuffix)
	for i := range s.cases {
		c := &s.cases[i]
		if c.Name != short || c.lookup == nil {
			continue
		}
		s.mu.Lock()
		n := s.queries[short]
		s.queries[short]++
		s.mu.Unlock()
		addrs, err := c.lookup(n, s.normal[0].l.Addr().(*net.TCPAddr).AddrPort().Addr())
		if addrs == nil && err == nil && c.Slow {
			<-ctx.Done()
			return nil, &net.DNSError{Err: ctx.Err().Error(), Name: name, IsTimeout: true}
		}
		return addrs, err
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func nameCases() []Case {
	const judged = "each address is checked; forbidden ones are skipped"
	const where = "the address is checked again when the socket connects"
	forbidden := Want{Outcome: blobschema.OutcomeForbidden, Detail: "is not allowed"}
	ok := Want{Outcome: blobschema.OutcomeOK, Status: 200, Body: string(pageAt(0).Body)}
	always := func(s ...string) func(int, netip.Addr) ([]netip.Addr, error) {
		var addrs []netip.Addr
		for _, s := range s {
			addrs = append(addrs, netip.MustParseAddr(s))
		}
		return func(int, netip.Addr) ([]netip.Addr, error) { return addrs, nil }
	}
	fails := func(err error) func(int, netip.Addr) ([]netip.Addr, error) {
		return func(int, netip.Addr) ([]netip.Addr, error) { return nil, err }
	}
	unresolved := func(detail string) Want { return Want{Outcome: blobschema.OutcomeDNS, Detail: detail} }
	return []Case{
		{Name: "dns-rebinds", Does: "a name that resolves to an allowed address first and to an inside one later", Bound: where, Want: ok,
			lookup: func(n int, good netip.Addr) ([]netip.Addr, error) {
				if n == 0 {
					return []netip.Addr{good}, nil
				}
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}},
		{Name: "dns-both", Does: "an answer with inside addresses and an allowed one", Bound: judged, Want: ok,
			lookup: func(_ int, good netip.Addr) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), good, netip.MustParseAddr("10.0.0.1")}, nil
			}},
		{Name: "dns-inside", Does: "a name that resolves to an inside address", Bound: judged, Want: forbidden, lookup: always("127.0.0.1")},
		{Name: "dns-metadata", Does: "a name that resolves to a cloud's metadata service", Bound: judged, Want: forbidden, lookup: always("169.254.169.254", "fd00:ec2::254")},
		{Name: "dns-mapped", Does: "an inside address, written as IPv6 in several ways", Bound: judged, Want: forbidden,
			lookup: always("::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "64:ff9b:1::7f00:1")},
		{Name: "dns-zone", Does: "a link-local address with a zone", Bound: judged, Want: forbidden, lookup: always("fe80::1%lo")},
		{Name: "dns-unspecified", Does: "0.0.0.0 and ::, which connect to this machine", Bound: judged, Want: forbidden, lookup: always("0.0.0.0", "::")},
		{Name: "dns-invalid", Does: "an invalid address", Bound: judged, Want: Want{Outcome: blobschema.OutcomeForbidden, Detail: "is not allowed"},
			lookup: func(int, netip.Addr) ([]netip.Addr, error) { return make([]netip.Addr, 2), nil }},
		{Name: "dns-many", Does: "10,000 addresses, none of which answers", Bound: "8 addresses are cached, 4 are tried", Want: Want{Outcome: blobschema.OutcomeConnect, Detail: "refused"},
			lookup: func(int, netip.Addr) ([]netip.Addr, error) {
				addrs := make([]netip.Addr, 10_000)
				for i := range addrs {
					addrs[i] = netip.AddrFrom4([4]byte{127, 77, byte(200 + i/250), byte(i % 250)})
				}
				return addrs, nil
			}},
		{Name: "dns-empty", Does: "an answer without addresses", Bound: "the failure is cached for 30 s", Want: unresolved("no such host"), lookup: fails(nil)},
		{Name: "dns-no-such-name", Does: "no such name", Bound: "the failure is cached for 30 s", Want: unresolved("no such host"),
			lookup: fails(&net.DNSError{Err: "no such host", IsNotFound: true})},
		{Name: "dns-fails", Does: "a name server that fails", Bound: "the failure is cached for 30 s", Want: unresolved("server misbehaving"),
			lookup: fails(&net.DNSError{Err: "server misbehaving", IsTemporary: true})},
		{Name: "dns-silent", Does: "a name server that never answers", Bound: "connect timeout", Slow: true, Want: Want{Outcome: blobschema.OutcomeDNS, Detail: "does not answer"},
			lookup: func(int, netip.Addr) ([]netip.Addr, error) { return nil, nil }},
	}
}
