package dataset

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/seeded"
)

func invoices(t *testing.T, cfg InvoiceConfig) *Set {
	t.Helper()
	s, err := Invoices(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInvoicesFollowFromTheSeed(t *testing.T) {
	cfg := InvoiceConfig{Seed: 7, Split: "train", Clients: 5, PerClient: 20}
	a, b := invoices(t, cfg), invoices(t, cfg)
	if !reflect.DeepEqual(a, b) {
		t.Error("one seed gave two sets")
	}
	cfg.Clients = 9
	if more := invoices(t, cfg); !reflect.DeepEqual(more.Examples[:len(a.Examples)], a.Examples) {
		t.Error("a client's documents depend on how many clients there are")
	}
	cfg.Seed++
	if reflect.DeepEqual(invoices(t, cfg).Examples[:100], a.Examples) {
		t.Error("another seed gave the same documents")
	}
}

func TestInvoicesCoverEveryLabel(t *testing.T) {
	s := invoices(t, InvoiceConfig{Seed: 1, Split: "test", Clients: 60, PerClient: 20})
	if len(s.Labels) != 8 || !slices.IsSorted(s.Labels) || len(trades) != 8 {
		t.Fatalf("labels %q", s.Labels)
	}
	count := make([]int, 8)
	for _, ex := range s.Examples {
		count[ex.Label]++
		if n := len(strings.Fields(ex.Text)); n < 5 || n > 90 {
			t.Errorf("%d words: %q", n, ex.Text)
		}
	}
	for l, n := range count {
		if n < 50 {
			t.Errorf("only %d of %s", n, s.Labels[l])
		}
	}
}

// Providers must never be shared between clients or splits: their names are
// their identity.
func TestProviderNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for split := range uint64(4) {
		for n := range uint64(20000) {
			name := seeded.ProperName(4*n + split)
			if seen[name] {
				t.Fatalf("provider %d of split %d shares the name %s", n, split, name)
			}
			seen[name] = true
		}
	}
	for _, far := range []uint64{999_999, 1_000_000, 1_000_001, 4*maxProviders - 1} {
		if n := seeded.ProperName(far); far > 80_000 && seen[n] {
			t.Errorf("number %d repeats the name %s", far, n)
		}
	}
}

func TestInvoicesRefuse(t *testing.T) {
	for _, cfg := range []InvoiceConfig{
		{Split: "public", Clients: 1, PerClient: 1},
		{Split: "train", Clients: 0, PerClient: 1},
		{Split: "train", Clients: 1, PerClient: 1, Providers: -1},
		{Split: "train", Clients: 1 << 41, PerClient: 1},
	} {
		if _, err := Invoices(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestPublicInvoicesHaveNoPrivateGoods(t *testing.T) {
	private := map[string]bool{}
	for _, tr := range trades {
		for _, g := range tr.goods[publicGoods:] {
			private[g] = true
		}
	}
	lines := 0
	for line := range PublicInvoices(3) {
		for g := range private {
			if strings.Contains(strings.ToLower(line), " "+g+" ") {
				t.Errorf("public line holds %q: %s", g, line)
			}
		}
		if lines++; lines == 2000 {
			break
		}
	}
}
