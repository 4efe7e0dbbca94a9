package service

import (
	"bytes"
	"strings"
	"testing"
)

// A QR code is drawn where it was asked for, and not into logs.
func TestPrintQR(t *testing.T) {
	const link = "https://fl.example.org/#starling2_abc"
	var log, asked, local bytes.Buffer
	printQR(&log, link, false, false)
	if log.Len() != 0 {
		t.Errorf("a log gets %q", log.String())
	}
	printQR(&asked, link, false, true)
	if !strings.Contains(asked.String(), "█") || strings.Contains(asked.String(), "only this machine") {
		t.Errorf("asked for: %q", asked.String())
	}
	printQR(&local, link, true, true)
	if !strings.Contains(local.String(), "only this machine") {
		t.Errorf("of a loopback address: %q", local.String())
	}
	asked.Reset()
	printQR(&asked, strings.Repeat("x", 4000), false, true)
	if !strings.Contains(asked.String(), "no QR code") {
		t.Errorf("of too long an address: %q", asked.String())
	}
}
