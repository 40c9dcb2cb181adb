package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// authority signs the certificates of the hosts.
type authority struct {
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	roots  *x509.CertPool
	serial int64

	good, expired, early, other, own, large tls.Certificate
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, roots: x509.NewCertPool()}
	now := time.Now()
	root := a.template(now.Add(-time.Hour), now.Add(time.Hour))
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.roots.AddCert(a.cert)

	// One address range is enough of a name: every host of Net in 1.* to 3.* that may need it.
	for _, c := range []struct {
		to       *tls.Certificate
		from, by time.Time
		change   func(*x509.Certificate)
	}{
		{&a.good, now.Add(-time.Hour), now.Add(time.Hour), addresses},
		{&a.expired, now.Add(-2 * time.Hour), now.Add(-time.Hour), addresses},
		{&a.early, now.Add(time.Hour), now.Add(2 * time.Hour), addresses},
		{&a.other, now.Add(-time.Hour), now.Add(time.Hour), func(t *x509.Certificate) { t.DNSNames = []string{"other.example"} }},
		{&a.large, now.Add(-time.Hour), now.Add(time.Hour), func(t *x509.Certificate) {
			for i := range 30_000 {
				t.DNSNames = append(t.DNSNames, fmt.Sprintf("host-%d.example", i))
			}
		}},
	} {
		t := a.template(c.from, c.by)
		c.change(t)
		if *c.to, err = a.sign(t, a.cert, a.key); err != nil {
			return nil, err
		}
	}
	t := a.template(now.Add(-time.Hour), now.Add(time.Hour))
	addresses(t)
	a.own, err = a.sign(t, nil, nil)
	return a, err
}

func (a *authority) template(from, by time.Time) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "hostile"}, NotBefore: from, NotAfter: by,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// addresses makes t good for all hosts of cases.
func addresses(t *x509.Certificate) {
	for i := range 400 {
		t.IPAddresses = append(t.IPAddresses, net.IPv4(127, 77, byte(1+i/200), byte(1+i%200)))
	}
}

// sign makes a certificate of t, signed by itself if there is no parent.
func (a *authority) sign(t, parent *x509.Certificate, by *ecdsa.PrivateKey) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	if parent == nil {
		parent, by = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, by)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// with returns a configuration that shows the certificate which pick picks.
func with(pick func(*authority) tls.Certificate, protocols ...string) func(*authority) *tls.Config {
	return func(a *authority) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pick(a)}, NextProtos: protocols}
	}
}

func goodTLS(a *authority) tls.Certificate { return a.good }

// Parts of TLS records (RFC 8446 section 5.1).
const (
	handshakeRecord = "\x16\x03\x03"
	alertRecord     = "\x15\x03\x03"
)

func tlsCases() []Case {
	const verified = "the certificate is verified before anything is asked"
	refused := func(detail string) Want { return Want{Outcome: blobschema.OutcomeTLS, Detail: detail} }
	ok := text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
	// What is there after the client's first message was read.
	answer := func(f func(*conn)) func(*conn) {
		return func(x *conn) {
			x.Read(make([]byte, 16<<10))
			f(x)
		}
	}
	return []Case{
		{Name: "tls-expired", Does: "certificate that has expired", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.expired }), serve: ok, Want: refused("certificate is expired or not yet valid")},
		{Name: "tls-not-yet-valid", Does: "certificate of tomorrow", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.early }), serve: ok, Want: refused("certificate is expired or not yet valid")},
		{Name: "tls-wrong-name", Does: "certificate of another name", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.other }), serve: ok, Want: refused("x509: ")},
		{Name: "tls-self-signed", Does: "certificate that vouches for itself", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.own }), serve: ok, Want: refused("unknown authority")},
		{Name: "tls-large-certificate", Does: "certificate with 30,000 names", Bound: "a handshake message is at most 64 KiB, certificates 256 KiB", Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.large }), serve: ok, Want: Want{Outcome: blobschema.OutcomeTLS, Detail: "tls: ", Wire: 1 << 20}},
		{Name: "tls-old", Does: "speaks TLS 1.1 and nothing newer", Bound: "TLS 1.2 is the oldest that is spoken", Whole: true,
			secure: func(a *authority) *tls.Config {
				return &tls.Config{Certificates: []tls.Certificate{a.good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
			}, serve: ok, Want: refused("tls: ")},
		{Name: "tls-reset", Does: "reset after the client's hello", Bound: "the connection's end", Whole: true,
			serve: answer((*conn).reset), Want: refused("connection reset")},
		{Name: "tls-closed", Does: "end of the connection after the client's hello", Bound: "the connection's end", Whole: true,
			serve: answer(func(*conn) {}), Want: refused("EOF")},
		{Name: "tls-plain", Does: "HTTP without TLS, at an https URL", Bound: "the first record is none", Whole: true,
			serve: answer(ok), Want: refused("not TLS")},
		{Name: "tls-garbage", Does: "endless bytes that are not TLS", Bound: "the first record is none", Whole: true,
			serve: answer(endless("", "\x00\xff\x13garbage")), Want: refused("not TLS")},
		{Name: "tls-silent", Does: "nothing after the client's hello", Bound: "connect time-out", Whole: true, Slow: true,
			serve: answer((*conn).leave), Want: Want{Outcome: blobschema.OutcomeTLS, Or: blobschema.OutcomeConnect, Detail: "time"}},
		{Name: "tls-drip", Does: "a handshake message that claims 16 KiB and comes byte by byte", Bound: "connect time-out", Whole: true, Slow: true,
			serve: answer(drip(handshakeRecord+"\x40\x00\x02\x00\x3f\x00", "\x03")), Want: Want{Outcome: blobschema.OutcomeTLS, Or: blobschema.OutcomeConnect, Detail: "time"}},
		{Name: "tls-endless-message", Does: "a handshake message of 16 MiB", Bound: "a handshake message is at most 64 KiB", Whole: true,
			serve: answer(endless(handshakeRecord+"\x00\x04\x02\xff\xff\xff", handshakeRecord+"\x00\x10aaaaaaaaaaaaaaaa")), Want: refused("tls: ")},
		{Name: "tls-empty-records", Does: "endless empty records", Bound: "16 records in a row that bring nothing", Whole: true,
			serve: answer(endless("", handshakeRecord+"\x00\x00")), Want: refused("tls: ")},
		{Name: "tls-warnings", Does: "endless warnings in place of a handshake", Bound: "16 records in a row that bring nothing", Whole: true,
			serve: answer(endless("", alertRecord+"\x00\x02\x01\x5a")), Want: refused("tls: ")},
		{Name: "tls-cut-body", Does: "good TLS whose body ends without a close notify", Bound: "the Content-Length tells that it is not whole",
			secure: with(goodTLS), serve: func(x *conn) {
				x.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
				x.Conn.(*tls.Conn).NetConn().Close()
			}, Want: Want{Outcome: blobschema.OutcomeCut, Status: 200, Detail: "within the body"}},
		{Name: "tls-cut-body-without-length", Does: "good TLS, a body without length that ends without a close notify", Bound: "taken as whole: popular servers end so, and nothing tells it from a good end",
			secure: with(goodTLS), serve: func(x *conn) {
				x.send("HTTP/1.1 200 OK\r\n\r\nhalf")
				x.Conn.(*tls.Conn).NetConn().Close()
			}, Want: isOK("half")},
		{Name: "tls-garbage-in-body", Does: "good TLS, then bytes that are not TLS within the body", Bound: "the record's checksum",
			secure: with(goodTLS), serve: func(x *conn) {
				x.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
				x.Conn.(*tls.Conn).NetConn().Write([]byte("\x17\x03\x03\x00\x20garbagegarbagegarbagegarbagegarbage"))
			}, Want: Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeCut, Status: 200, Detail: "tls"}},
	}
}
