// Certificates prints what Go says of chains of certificates. It reads cases from standard input, JSON a line, and writes
// each one's answer, a line: the error of crypto/tls for the chain of a server, or that of crypto/x509 for a client's;
// an empty line if the chain is trusted.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
)

type testCase struct {
	// Chain is what the other side sends: its own certificate first, in DER.
	Chain [][]byte `json:"chain"`
	Roots [][]byte `json:"roots"`
	// Host is the name of the server; a client has none.
	Host  string    `json:"host"`
	Usage string    `json:"usage"`
	Time  time.Time `json:"time"`
}

func main() {
	input := bufio.NewReader(os.Stdin)
	decoder := json.NewDecoder(input)
	for decoder.More() {
		var one testCase
		if err := decoder.Decode(&one); err != nil {
			log.Fatal(err)
		}
		answer := ""
		if err := one.verify(); err != nil {
			answer = err.Error()
		}
		encoded, err := json.Marshal(answer)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(encoded))
	}
}

func (one *testCase) verify() error {
	roots := x509.NewCertPool()
	for _, der := range one.Roots {
		// As for the certificates of a file, those that cannot be parsed are ignored.
		if certificate, err := x509.ParseCertificate(der); err == nil {
			roots.AddCert(certificate)
		}
	}
	certificates := []*x509.Certificate{}
	for _, der := range one.Chain {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("tls: failed to parse certificate from %s: %w", one.Usage, err)
		}
		if key, isRSA := certificate.PublicKey.(*rsa.PublicKey); isRSA && key.N.BitLen() > 8192 {
			return fmt.Errorf("tls: %s sent certificate containing RSA key larger than 8192 bits", one.Usage)
		}
		certificates = append(certificates, certificate)
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: one.Time, DNSName: one.Host}
	for _, certificate := range certificates[1:] {
		options.Intermediates.AddCert(certificate)
	}
	if one.Usage == "client" {
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		_, err := certificates[0].Verify(options)
		return err
	}
	if _, err := certificates[0].Verify(options); err != nil {
		return &tls.CertificateVerificationError{Err: err}
	}
	switch certificates[0].PublicKey.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("tls: server's certificate contains an unsupported type of public key: %T", certificates[0].PublicKey)
}
