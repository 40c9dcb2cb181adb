package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// ready is the first value that a server prints; [served] is the other.
type ready struct {
	Port  int    `json:"port"`
	Roots []byte `json:"roots,omitempty"` // certificate of the web's authority, in DER, if the web has TLS
}

// serve serves the web until in ends, and prints the requests it saw.
func serve(ctx context.Context, j job, in io.Reader, out *json.Encoder) error {
	web, err := simweb.New(j.Web)
	if err != nil {
		return err
	}
	// Counting costs one map look-up per request, the same for both sides.
	var r ready
	var tlsConfig *tls.Config
	if j.Web.TLS {
		cert, err := certify(web)
		if err != nil {
			return err
		}
		r.Roots = cert.Certificate[0]
		tlsConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	}
	srv, err := simweb.ServeTLS(ctx, web, tlsConfig)
	if err != nil {
		return err
	}
	web = srv.Web()
	precompress(web)
	runtime.GC()
	cpu := ledger.Processor()
	r.Port = web.Config().Port
	if err := out.Encode(r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	s := served{CPUSeconds: (ledger.Processor() - cpu).Seconds()}
	srv.Close()
	s.count(web, srv.Requests())
	return out.Encode(s)
}

// certify makes an authority whose own certificate is valid for all hosts of a web.
func certify(web *simweb.Web) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for h := range web.Hosts() {
		about.IPAddresses = append(about.IPAddresses, net.ParseIP(web.Host(h).Authority))
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// count counts requests by kind. The web has only plain pages.
func (s *served) count(web *simweb.Web, requests map[string]int) {
	for url, n := range requests {
		if strings.HasSuffix(url, "/robots.txt") {
			s.Robots += n
		}
	}
	for h := range web.Hosts() {
		for p := range web.Host(h).Pages {
			n := requests[web.URL(h, p)]
			if n > 0 {
				s.Pages++
				s.Repeats += n - 1
			}
		}
	}
	for _, n := range requests {
		s.Elsewhere += n
	}
	s.Elsewhere -= s.Pages + s.Repeats + s.Robots
}

// server is a process that serves the web.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser // closing it ends the server
	out *json.Decoder
	ready
}

// startServer returns when the server accepts requests.
func startServer(ctx context.Context, web simweb.Config) (*server, error) {
	cmd, err := child(ctx, "", roleServer)
	if err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = json.NewDecoder(bufio.NewReader(out))
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = json.NewEncoder(s.in).Encode(job{Role: roleServer, Web: web})
	if err == nil {
		err = s.out.Decode(&s.ready)
	}
	if err != nil {
		s.in.Close()
		return nil, errors.Join(fmt.Errorf("start server: %w", err), cmd.Wait())
	}
	return s, nil
}

// end ends the server and returns its figures.
func (s *server) end() (seen served, err error) {
	if err = s.in.Close(); err == nil {
		err = s.out.Decode(&seen)
	}
	if err = errors.Join(err, s.cmd.Wait()); err != nil {
		return seen, fmt.Errorf("end server: %w", err)
	}
	return seen, nil
}
