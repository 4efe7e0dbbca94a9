// Package certificate shows a listener's certificate from files, and a renewed one without a start.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// rereadEvery is how often files are looked at: a renewed certificate is shown after that
	// at the latest.
	rereadEvery = 10 * time.Second
	// soon is how long before a certificate's end its operator is told.
	soon = 14 * 24 * time.Hour
)

// Files is a certificate chain with its key, PEM, that another program renews. It is safe for concurrent use.
type Files struct {
	chain, key string
	log        *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	changed [2]time.Time
	failed  string // what was logged last
	warned  string // likewise, of its dates
	cert    *tls.Certificate
}

// Open reads the files. They are read again when they change; if that fails, the old ones stay in use and log says so.
func Open(chain, key string, log *slog.Logger) (*Files, error) {
	f := &Files{chain: chain, key: key, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	f.Warn(f.looked)
	return f, nil
}

// Leaf is the certificate that is shown, read again where that is due.
func (f *Files) Leaf() *x509.Certificate {
	cert, err := f.Get(nil)
	if err != nil {
		return nil
	}
	return cert.Leaf
}

// Get is the certificate for a connection, read again where that is due: it is for tls.Config.GetCertificate.
func (f *Files) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < rereadEvery {
		return f.cert, nil
	}
	err := f.read()
	if err == nil {
		f.failed = ""
	} else if text := err.Error(); text != f.failed {
		f.failed = text
		f.log.Error("the certificate cannot be read again; the one of before is shown", "error", err)
	}
	f.Warn(f.looked)
	return f.cert, nil
}

// Warn logs once that the certificate ends soon, and once that it has ended, whether or not the files changed.
func (f *Files) Warn(now time.Time) {
	text, left := "", f.cert.Leaf.NotAfter.Sub(now)
	switch {
	case left <= 0:
		text = "the certificate has ended: devices refuse it"
	case left < soon:
		text = "the certificate ends soon"
	}
	if text != "" && text != f.warned {
		f.log.Warn(text, "until", f.cert.Leaf.NotAfter)
	}
	f.warned = text
}

// Again has the files looked at for the next connection, however lately that was done.
func (f *Files) Again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = time.Time{}
}

// read takes the files in where they have changed since.
func (f *Files) read() error {
	f.looked = time.Now()
	var changed [2]time.Time
	for i, path := range []string{f.chain, f.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("the certificate's file: %w", err)
		}
		changed[i] = info.ModTime()
	}
	if f.cert != nil && changed == f.changed {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(f.chain, f.key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.chain, f.key, err)
	}
	if f.cert != nil {
		f.log.Info("a renewed certificate is shown", "until", cert.Leaf.NotAfter)
	}
	f.cert, f.changed = &cert, changed
	return nil
}
