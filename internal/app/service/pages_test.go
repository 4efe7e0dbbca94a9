package service

import "testing"

// No browser is sent to a page by which it cannot join.
func TestForBrowsers(t *testing.T) {
	if got := forBrowsers("", "https://fl.example", "starling2_x"); got != "or open https://fl.example/#starling2_x in a browser\n" {
		t.Errorf("%q", got)
	}
	if got := forBrowsers("browsers cannot join: no pages", "https://fl.example", "starling2_x"); got != "" {
		t.Errorf("despite a fault: %q", got)
	}
}
