package participation

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/job/statement"
)

// TestCards: a device shows and keeps the card that agrees with the announced job, joins without one, and refuses one that
// does not agree or that nobody signed.
func TestCards(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	announced := announcement(t, [32]byte(key.Public().(ed25519.PublicKey)))
	j, err := wire.ParseJob(announced)
	if err != nil {
		t.Fatal(err)
	}
	task := wire.TaskID(announced)
	number := func(o dp.Observer, eps float64) *dp.Guarantee {
		return &dp.Guarantee{Epsilon: eps, Delta: j.Privacy.Delta, Observer: o}
	}
	honest := card.New(j, task, statement.Statement{}, dp.Guarantees{Delivered: number(dp.Participants, 8)}, card.Fleet{})
	lying := honest
	lying.Mechanism.NoiseMultiplier *= 3
	sign := func(c card.Card, key ed25519.PrivateKey) []byte {
		b, err := card.Sign(c, key)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, c := range map[string]struct {
		file         []byte
		says, refuse string
	}{
		"honest":    {sign(honest, key), "privacy card: epsilon 8 against the public", ""},
		"none":      {nil, "", ""},
		"lying":     {sign(lying, key), "", "mechanism.noise_multiplier is"},
		"another's": {sign(honest, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))), "", "has not signed it"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != card.Path || c.file == nil {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(c.file)
		}))
		kept, err := accounts.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		policy := edge.DefaultPolicy()
		var told strings.Builder
		look := (&Participant{Kept: kept}).cards(t.Context(), &Part{Token: wire.Token{URL: s.URL}.String(), Policy: &policy}, &told)
		for range 2 { // again at a reconnect: it is told once
			err = look(task, announced)
		}
		s.Close()
		if c.refuse != "" {
			if !errors.Is(err, card.ErrCard) || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || strings.Count(told.String(), "\n") != min(1, len(c.says)) || !strings.HasPrefix(told.String(), c.says) {
			t.Errorf("%s: %v: %s", name, err, &told)
			continue
		}
		if _, path, found := strings.Cut(strings.TrimSpace(told.String()), "kept in "); found {
			if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, c.file) {
				t.Errorf("%s: kept %d bytes: %v", name, len(b), err)
			}
		}
	}
}

// announcement is a job's, as far as a card is about it.
func announcement(t *testing.T, key [32]byte) []byte {
	t.Helper()
	of := job.Default()
	of.Name, of.Labels, of.Rounds, of.Adapter.Sequence, of.Privacy.Epsilon = "test", []string{"a", "b"}, 2, 8, 8
	b, err := coordinator.Announcement(of, tiny.Base(t, 32, 2, 16))
	if err != nil {
		t.Fatal(err)
	}
	j, err := wire.ParseJob(b)
	if err != nil {
		t.Fatal(err)
	}
	j.LogKey, j.RosterKey = key, [32]byte{}
	if b, err = j.AppendBinary(nil); err != nil {
		t.Fatal(err)
	}
	return b
}
