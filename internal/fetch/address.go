package fetch

import "net/netip"

// refusedIPv4 lists the networks that are not globally reachable by the IANA IPv4 Special-Purpose Address
// Registry (RFC 6890 and its updates), and addresses of internal cloud services. The larger networks cover the
// cloud metadata at 169.254.169.254, 100.100.100.200 and 192.0.0.192.
var refusedIPv4 = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // "this network", RFC 791
	netip.MustParsePrefix("10.0.0.0/8"),       // private, RFC 1918
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT, RFC 6598
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback, RFC 1122
	netip.MustParsePrefix("168.63.129.16/32"), // services of Azure inside its machines; looks public
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local, RFC 3927
	netip.MustParsePrefix("172.16.0.0/12"),    // private, RFC 1918
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments, RFC 6890
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation, RFC 5737
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays, RFC 7526
	netip.MustParsePrefix("192.168.0.0/16"),   // private, RFC 1918
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks, RFC 2544
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation, RFC 5737
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation, RFC 5737
	netip.MustParsePrefix("224.0.0.0/3"),      // multicast, reserved, broadcast: RFC 5771, 1112, 919
}

// globalIPv6 is the global unicast space that IANA has assigned so far. All other addresses are
// refused: loopback, unspecified, IPv4-compatible, unique local (with the metadata address
// fd00:ec2::254), link-local, site-local, multicast and future blocks.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

// refusedIPv6 lists the networks in globalIPv6 that are not globally reachable.
var refusedIPv6 = [...]netip.Prefix{
	netip.MustParsePrefix("2001::/23"),     // protocol assignments: Teredo, benchmarks, ORCHID (RFC 2928)
	netip.MustParsePrefix("2001:db8::/32"), // documentation, RFC 3849
	netip.MustParsePrefix("2002::/16"),     // 6to4, RFC 3056: leads to any IPv4 address; out of use
	netip.MustParsePrefix("3fff::/20"),     // documentation, RFC 9637
}

// nat64 is the well-known translation prefix (RFC 6052), through which a network without IPv4 reaches the IPv4
// web. An address in it is judged by the IPv4 address in its last four bytes. The prefix for local use,
// 64:ff9b:1::/48 (RFC 8215), is not global and refused.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Allowed reports whether the crawler may connect to addr: a globally reachable unicast
// address, or one inside allow. An IPv4 address in IPv6 form (RFC 4291 section 2.5.5.2)
// counts as the IPv4 address, for allow too. An invalid address and one with
// a zone are refused.
func Allowed(addr netip.Addr, allow []netip.Prefix) bool {
	addr = addr.Unmap()
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	if within(addr, allow) {
		return true
	}
	if addr.Is4() {
		return !within(addr, refusedIPv4[:])
	}
	if nat64.Contains(addr) {
		b := addr.As16()
		return Allowed(netip.AddrFrom4([4]byte(b[12:])), allow)
	}
	return globalIPv6.Contains(addr) && !within(addr, refusedIPv6[:])
}

func within(addr netip.Addr, nets []netip.Prefix) bool {
	for _, p := range nets {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
