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

	// Each good certificate names the addresses of all hosts of cases.
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

// addresses makes t valid for the hosts of all cases.
func addresses(t *x509.Certificate) {
	for i := range 400 {
		t.IPAddresses = append(t.IPAddresses, net.IPv4(127, 77, byte(1+i/200), byte(1+i%200)))
	}
}

// sign returns a certificate made from t. Without a parent it is self-signed.
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

// with returns a configuration with the certificate that pick returns.
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
	const verified = "the certificate is verified before the request is sent"
	refused := func(detail string) Want { return Want{Outcome: blobschema.OutcomeTLS, Detail: detail} }
	ok := text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
	// answer runs f after it has read the first message of the client.
	answer := func(f func(*conn)) func(*conn) {
		return func(x *conn) {
			x.Read(make([]byte, 16<<10))
			f(x)
		}
	}
	return []Case{
		{Name: "tls-expired", Does: "an expired certificate", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.expired }), serve: ok, Want: refused("certificate is expired or not yet valid")},
		{Name: "tls-not-yet-valid", Does: "a certificate that is not valid yet", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.early }), serve: ok, Want: refused("certificate is expired or not yet valid")},
		{Name: "tls-wrong-name", Does: "a certificate of another name", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.other }), serve: ok, Want: refused("x509: ")},
		{Name: "tls-self-signed", Does: "a self-signed certificate", Bound: verified, Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.own }), serve: ok, Want: refused("unknown authority")},
		{Name: "tls-large-certificate", Does: "a certificate with 30,000 names", Bound: "limit of 64 KiB per handshake message, 256 KiB for certificates", Whole: true,
			secure: with(func(a *authority) tls.Certificate { return a.large }), serve: ok, Want: Want{Outcome: blobschema.OutcomeTLS, Detail: "tls: ", Wire: 1 << 20}},
		{Name: "tls-old", Does: "no TLS newer than 1.1", Bound: "TLS 1.2 is the oldest accepted version", Whole: true,
			secure: func(a *authority) *tls.Config {
				return &tls.Config{Certificates: []tls.Certificate{a.good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
			}, serve: ok, Want: refused("tls: ")},
		{Name: "tls-reset", Does: "a reset after the client hello", Bound: "the end of the connection", Whole: true,
			serve: answer((*conn).reset), Want: refused("connection reset")},
		{Name: "tls-closed", Does: "the end of the connection after the client hello", Bound: "the end of the connection", Whole: true,
			serve: answer(func(*conn) {}), Want: refused("EOF")},
		{Name: "tls-plain", Does: "HTTP without TLS, at an https URL", Bound: "first record is checked", Whole: true,
			serve: answer(ok), Want: refused("not TLS")},
		{Name: "tls-garbage", Does: "endless bytes that are not TLS", Bound: "first record is checked", Whole: true,
			serve: answer(endless("", "\x00\xff\x13garbage")), Want: refused("not TLS")},
		{Name: "tls-silent", Does: "nothing after the client hello", Bound: "connect timeout", Whole: true, Slow: true,
			serve: answer((*conn).leave), Want: Want{Outcome: blobschema.OutcomeTLS, Or: blobschema.OutcomeConnect, Detail: "time"}},
		{Name: "tls-drip", Does: "a handshake message of 16 KiB, byte by byte", Bound: "connect timeout", Whole: true, Slow: true,
			serve: answer(drip(handshakeRecord+"\x40\x00\x02\x00\x3f\x00", "\x03")), Want: Want{Outcome: blobschema.OutcomeTLS, Or: blobschema.OutcomeConnect, Detail: "time"}},
		{Name: "tls-endless-message", Does: "a handshake message of 16 MiB", Bound: "limit of 64 KiB per handshake message", Whole: true,
			serve: answer(endless(handshakeRecord+"\x00\x04\x02\xff\xff\xff", handshakeRecord+"\x00\x10aaaaaaaaaaaaaaaa")), Want: refused("tls: ")},
		{Name: "tls-empty-records", Does: "endless empty records", Bound: "limit of 16 useless records in a row", Whole: true,
			serve: answer(endless("", handshakeRecord+"\x00\x00")), Want: refused("tls: ")},
		{Name: "tls-warnings", Does: "endless warnings instead of a handshake", Bound: "limit of 16 useless records in a row", Whole: true,
			serve: answer(endless("", alertRecord+"\x00\x02\x01\x5a")), Want: refused("tls: ")},
		{Name: "tls-cut-body", Does: "good TLS whose body ends without a close notify", Bound: "the Content-Length shows that the body is incomplete",
			secure: with(goodTLS), serve: func(x *conn) {
				x.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
				x.Conn.(*tls.Conn).NetConn().Close()
			}, Want: Want{Outcome: blobschema.OutcomeCut, Status: 200, Detail: "within the body"}},
		{Name: "tls-cut-body-without-length", Does: "good TLS, a body without length that ends without a close notify", Bound: "accepted as complete: popular servers end like this, and nothing distinguishes it from a proper end",
			secure: with(goodTLS), serve: func(x *conn) {
				x.send("HTTP/1.1 200 OK\r\n\r\nhalf")
				x.Conn.(*tls.Conn).NetConn().Close()
			}, Want: isOK("half")},
		{Name: "tls-garbage-in-body", Does: "good TLS, then bytes that are not TLS within the body", Bound: "TLS checks each record",
			secure: with(goodTLS), serve: func(x *conn) {
				x.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
				x.Conn.(*tls.Conn).NetConn().Write([]byte("\x17\x03\x03\x00\x20garbagegarbagegarbagegarbagegarbage"))
			}, Want: Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeCut, Status: 200, Detail: "tls"}},
	}
}
