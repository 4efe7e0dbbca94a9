package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzOffers: whatever a coordinator offers, a token made of it leads below the fleet's own
// address, shows its pin and secret, and names one job.
func FuzzOffers(f *testing.F) {
	fleet := Token{URL: "https://fl.example.org:8443/fl", Pin: make([]byte, 32), Secret: []byte("s")}
	good := OfferOf("invoices", "fleet", Token{Task: make([]byte, 32), Authority: make([]byte, 32)})
	for _, o := range []Offer{good, {Name: "../x", Task: good.Task}, {Name: "x/y", Task: good.Task}, {Name: "x", Task: "00"}, {Name: "x", Task: good.Task, Authority: "0"}} {
		b, err := json.Marshal(Offers{Jobs: []Offer{o}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in Offers
		if json.Unmarshal(b, &in) != nil {
			return
		}
		for _, o := range in.Jobs {
			got, err := o.Token(fleet)
			if err != nil {
				continue
			}
			name, below := strings.CutPrefix(got.URL, fleet.URL+JobPath)
			if again, err := ParseToken(got.String()); !below || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name == "" ||
				err != nil || again.String() != got.String() || string(got.Pin) != string(fleet.Pin) || string(got.Secret) != "s" || len(got.Task) != 32 {
				t.Errorf("%q leads to %+v, %v", b, got, err)
			}
		}
	})
}

func TestOfferLeadsToItsJob(t *testing.T) {
	fleet := Token{URL: "http://127.0.0.1:1/", Secret: []byte("s")}
	own := Token{URL: "http://127.0.0.1:1/jobs/a-1", Secret: []byte("s"), Task: []byte(strings.Repeat("t", 32)), Authority: []byte(strings.Repeat("k", 32))}
	if got, err := OfferOf("a-1", "fleet", own).Token(fleet); err != nil || got.String() != own.String() {
		t.Errorf("%+v, %v, want %+v", got, err, own)
	}
	for want, o := range map[string]Offer{"name": {Name: "A", Task: strings.Repeat("0", 64)}, "task": {Name: "a", Task: "zz"}, "authority": {Name: "a", Task: strings.Repeat("0", 64), Authority: "00"}} {
		if _, err := o.Token(fleet); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
