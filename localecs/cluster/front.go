package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/network"
)

const (
	// trustDir is where containers find the certificate of the run's CA.
	trustDir = "/.localecs"
	// trustFile is named as OpenSSL looks certificates up in a directory: by the
	// hash of caName ("openssl x509 -hash"), and .0.
	trustFile = trustDir + "/1b16d7ac.0"
	caName    = "localecs"
)

const frontLifetime = 10 * 365 * 24 * time.Hour

// serveFront answers at AWS's own names, by HTTPS, for programs that know no
// endpoint variable. The CA is the run's own, and its key is not kept.
func (c *Cluster) serveFront() error {
	if c.options.Network == network.Host {
		return nil // the port is an application's there
	}
	hosts := c.options.AWS().Hosts()
	certificate, ca, err := NewCertificate(hosts)
	if err != nil {
		return fmt.Errorf("make the certificate of STS and IAM: %w", err)
	}
	c.trust = filepath.Join(c.volumeDir(), "trust")
	err = errors.Join(os.MkdirAll(c.trust, 0o755), os.WriteFile(filepath.Join(c.trust, filepath.Base(trustFile)), ca, 0o644))
	if err != nil {
		return fmt.Errorf("write the certificate of STS and IAM: %w", err)
	}
	infra := c.fabric.Infra()
	l, err := infra.Listen("tcp", net.JoinHostPort(infra.Gateway.String(), "443"))
	if err != nil {
		return fmt.Errorf("listen for STS and IAM: %w", err)
	}
	c.closers = append(c.closers, metadata.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}}), c.AWS()))
	c.awsHosts = hosts
	return nil
}

// NewCertificate returns a server's certificate for the names and addresses, and that of
// the CA that has signed it, in PEM.
func NewCertificate(names []string, addresses ...net.IP) (server tls.Certificate, ca []byte, err error) {
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: caName}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(frontLifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		DNSNames: names, IPAddresses: addresses, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return server, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return server, nil, err
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return server, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
	if err != nil {
		return server, nil, err
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
