package fetch

import (
	"net/netip"
	"testing"
)

var judged = []struct {
	addr string
	want bool
}{
	{"1.1.1.1", true},
	{"9.255.255.255", true},
	{"11.0.0.0", true},
	{"100.63.255.255", true},
	{"100.128.0.0", true},
	{"172.15.255.255", true},
	{"172.32.0.0", true},
	{"192.0.1.0", true},
	{"192.167.255.255", true},
	{"192.169.0.0", true},
	{"198.17.255.255", true},
	{"198.20.0.0", true},
	{"223.255.255.255", true},
	{"168.63.129.15", true},

	{"0.0.0.0", false},
	{"0.1.2.3", false},
	{"10.0.0.0", false},
	{"10.255.255.255", false},
	{"100.64.0.0", false},
	{"100.100.100.200", false},
	{"100.127.255.255", false},
	{"127.0.0.1", false},
	{"127.255.255.254", false},
	{"168.63.129.16", false},
	{"169.254.169.254", false},
	{"172.16.0.0", false},
	{"172.31.255.255", false},
	{"192.0.0.192", false},
	{"192.0.2.1", false},
	{"192.88.99.1", false},
	{"192.168.0.1", false},
	{"198.18.0.0", false},
	{"198.19.255.255", false},
	{"198.51.100.7", false},
	{"203.0.113.7", false},
	{"224.0.0.1", false},
	{"239.255.255.255", false},
	{"240.0.0.1", false},
	{"255.255.255.255", false},

	{"2606:4700::1111", true},
	{"2001:200::1", true},
	{"2003::1", true},
	{"2620:4f:8000::1", true},

	{"::", false},
	{"::1", false},
	{"::1.1.1.1", false},        // IPv4-compatible
	{"::ffff:1.1.1.1", true},    // the same socket address as 1.1.1.1
	{"::ffff:127.0.0.1", false}, // IPv4-mapped
	{"::ffff:169.254.169.254", false},
	{"::ffff:0:10.0.0.1", false}, // IPv4-translated, RFC 2765
	{"64:ff9b::1.1.1.1", true},   // NAT64
	{"64:ff9b::10.0.0.1", false},
	{"64:ff9b::169.254.169.254", false},
	{"64:ff9b:1::1.1.1.1", false}, // NAT64 for local use
	{"100::1", false},             // discard
	{"2001::1", false},            // Teredo
	{"2001:0:4136:e378:8000:63bf:3fff:fdd2", false},
	{"2001:2::1", false},  // benchmarks
	{"2001:20::1", false}, // ORCHIDv2
	{"2001:db8::1", false},
	{"2002:7f00:1::", false}, // 6to4 of 127.0.0.1
	{"2002:101:101::1", false},
	{"3fff::1", false},
	{"5f00::1", false},
	{"fc00::1", false},
	{"fd00:ec2::254", false},
	{"fe80::1", false},
	{"fe80::1%eth0", false},
	{"2606:4700::1111%eth0", false},
	{"fec0::1", false},
	{"ff02::1", false},
}

func TestAllowed(t *testing.T) {
	for _, tt := range judged {
		if got := Allowed(netip.MustParseAddr(tt.addr), nil); got != tt.want {
			t.Errorf("Allowed(%s) = %v", tt.addr, got)
		}
	}
	if Allowed(netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}) {
		t.Error("the invalid address is allowed")
	}
}

func TestAllowedNets(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd12::/16"), netip.MustParsePrefix("::1/128")}
	for addr, want := range map[string]bool{
		"10.1.2.3":          true,
		"::ffff:10.1.2.3":   true,
		"64:ff9b::10.1.2.3": true,
		"fd12::1":           true,
		"::1":               true,
		"10.2.0.1":          false,
		"fd13::1":           false,
		"fd12::1%eth0":      false,
		"127.0.0.1":         false,
	} {
		if got := Allowed(netip.MustParseAddr(addr), allow); got != want {
			t.Errorf("Allowed(%s) = %v", addr, got)
		}
	}
}

// FuzzAllowed compares Allowed with the coarser methods of the standard library.
func FuzzAllowed(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "8.8.8.8", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2606::1"} {
		f.Add(netip.MustParseAddr(s).AsSlice())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		got := Allowed(addr, nil)
		plain := addr.Unmap()
		if got && (!plain.IsGlobalUnicast() || plain.IsPrivate()) {
			t.Errorf("%s is allowed", addr)
		}
		if plain.Is4() && got != Allowed(netip.AddrFrom16(plain.As16()), nil) {
			t.Errorf("%s is judged otherwise when mapped", plain)
		}
	})
}
