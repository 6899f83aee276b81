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
	"math/big"
	"net"
	"time"
)

const (
	// trustDir is where containers find the certificate of the run's CA.
	trustDir = "/.localecs"
	// trustFile is named as OpenSSL looks certificates up in a directory: by the
	// hash of caName ("openssl x509 -hash"), and .0.
	trustFile = trustDir + "/1b16d7ac.0"
	caName    = "localecs"
)

const certificateLifetime = 10 * 365 * 24 * time.Hour

// NewCertificate returns a server's certificate for the names and addresses, and that of
// the CA that has signed it, in PEM.
func NewCertificate(names []string, addresses ...net.IP) (server tls.Certificate, ca []byte, err error) {
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: caName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, IPAddresses: addresses,
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootKey, rootErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(rootErr, err); err != nil {
		return server, nil, err
	}
	rootDER, rootErr := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
	if err := errors.Join(rootErr, err); err != nil {
		return server, nil, err
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
