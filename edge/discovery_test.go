//go:build !js

package edge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
)

// A coordinator of which an owner accepted something for one job offers another: nothing of it
// holds. Nor does it learn something else of the data, or protect nobody, of its own accord.
func TestHostileFoundJob(t *testing.T) {
	h := production(t)
	a, err := NewAccount(nil, nil)
	ok(t, err)
	policy := DefaultPolicy()
	policy.Unlogged = true
	policy.Bases = []string{"any"}
	found := h.joinsWith(t, a, &policy)
	ok(t, a.Consent(h.token.String(), &policy, found))
	if left := h.joinsWith(t, a, &policy); len(left) != 0 {
		t.Fatalf("a job that the owner named: %+v", left)
	}
	keys := func(change func(*Config)) (keys []string) {
		t.Helper()
		cfg := h.config(&constant{})
		cfg.Policy, cfg.Account, cfg.Data, cfg.Found = &policy, a, Examples(examples(16)), &Discovery{Tasks: []string{"classify"}}
		change(&cfg)
		d := h.start(cfg)
		peer := h.admit(false)
		for _, l := range PolicyErrors(refusal(t, peer, d)) {
			keys = append(keys, l.Key)
		}
		d.cancel()
		return keys
	}
	as := func(*Config) {}
	if got := keys(as); !slices.Equal(got, []string{"own_noise", "example_bits", "bits"}) {
		t.Errorf("what was accepted of another job: asked for %q", got)
	}
	policy.OwnNoise, policy.ExampleBits, policy.Bits = 0, 0, 0
	if got := keys(as); len(got) != 0 {
		t.Errorf("within the policy: asked for %q", got)
	}
	if got := keys(func(c *Config) { c.Found.Tasks = []string{"span"} }); !slices.Equal(got, []string{"tasks"}) {
		t.Errorf("another task: asked for %q", got)
	}
	h.job.Privacy.Simulated = true
	h.announce()
	if got := keys(as); !slices.Equal(got, []string{notPrivate}) {
		t.Errorf("simulated noise: asked for %q", got)
	}
	if got := keys(func(c *Config) { c.AcceptNotPrivate = true }); len(got) != 0 {
		t.Errorf("simulated noise, accepted: asked for %q", got)
	}
}

// Job after job, each within the policy by itself, and each of a coordinator and an identity of its
// own, gets no more bits than one could; nor does a restart after each round give any back.
func TestHostileJobAfterJob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	for name, c := range map[string]struct {
		policy Policy
		groups uint32
		most   float64
	}{
		"example_bits": {Policy{ExampleBits: 8}, 16, 8 / exampleBits(0.1, 16)},
		"bits":         {Policy{Bits: 3000}, 16, 3000 / roundBits(0.1, 1)},
	} {
		rounds := 0
		for n := range byte(60) {
			a, err := OpenAccount(path + name)
			ok(t, err)
			j := &job{Job: wire.Job{Rounds: 100, Groups: c.groups, Privacy: wire.Privacy{Private: true, OwnNoise: 0.1, NoiseMultiplier: 1, Delta: 1e-6}}, task: [32]byte{n}}
			if err := a.afford(j, &c.policy); err != nil {
				if found := PolicyErrors(err); n == 0 || !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), "all jobs together") || found[0].Key != name {
					t.Fatalf("job %d: %v", n, err)
				}
				break
			}
			ok(t, a.begin(j, 1, 100, time.Now()))
			ok(t, a.contribute(j, &c.policy, traffic{}))
			rounds++
		}
		if rounds != int(c.most) {
			t.Errorf("%s: %d rounds of all jobs, want %d", name, rounds, int(c.most))
		}
	}
}

// Jobs of which each may begin a round before the other's is handed over hand over no more than the
// owner allows together.
func TestHostileJobsAtOnce(t *testing.T) {
	a, err := NewAccount(nil, nil)
	ok(t, err)
	p := &Policy{ExampleBits: 1.5 * exampleBits(0.1, 16)} // one round
	var jobs []*job
	for n := range byte(4) {
		j := &job{Job: wire.Job{Rounds: 100, Groups: 16, Privacy: wire.Privacy{Private: true, OwnNoise: 0.1}}, task: [32]byte{n}}
		ok(t, a.afford(j, p))
		ok(t, a.begin(j, 1, 100, time.Now()))
		jobs = append(jobs, j)
	}
	handed := 0
	for _, j := range jobs {
		if err := a.contribute(j, p, traffic{}); err == nil {
			handed++
		} else if !errors.Is(err, ErrPolicy) {
			t.Error(err)
		}
	}
	if handed != 1 {
		t.Errorf("%d of four jobs were handed an update", handed)
	}
}

// What a coordinator answers to the question for its jobs is bounded and names jobs of its own.
func TestHostileOffers(t *testing.T) {
	good := wire.Offer{Name: "a", Pool: "fleet", Task: strings.Repeat("00", 32)}
	say := func(o wire.Offers) string {
		b, err := json.Marshal(o)
		ok(t, err)
		return string(b)
	}
	many := make([]wire.Offer, wire.MaxOffers+1)
	for i := range many {
		many[i] = good
	}
	for want, body := range map[string]string{
		"":                   say(wire.Offers{Jobs: []wire.Offer{good}}),
		"65, limit 64":       say(wire.Offers{Jobs: many}),
		"more than 32768":    strings.Repeat(" ", 1<<20),
		"name \"../secret\"": say(wire.Offers{Jobs: []wire.Offer{{Name: "../secret", Task: good.Task}}}),
		"task \"00\"":        say(wire.Offers{Jobs: []wire.Offer{{Name: "a", Task: "00"}}}),
		"invalid character":  "<html>",
		"302":                "elsewhere",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body == "elsewhere" {
				http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
				return
			}
			_, err := w.Write([]byte(body))
			if want == "" {
				ok(t, err)
			}
		}))
		token := wire.Token{URL: server.URL, Secret: []byte("s")}
		got, err := AskJobs(watchdog.Context(t), Config{Token: token.String()})
		server.Close()
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) || want == "" && (err != nil || len(got) != 1 || got[0].Name != "a") {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
	ctx, stop := context.WithCancel(watchdog.Context(t))
	stop()
	if _, err := AskJobs(ctx, Config{Token: wire.Token{URL: "http://127.0.0.1:1"}.String()}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := AskJobs(ctx, Config{Token: wire.Token{URL: "http://192.0.2.1"}.String()}); !errors.Is(err, ErrConfig) {
		t.Errorf("in the clear to another machine: %v", err)
	}
	if kind, err := model.ParseTask(""); err != nil || kind.String() != "classify" {
		t.Errorf("the task that Discovery allows by default is %s, %v", kind, err)
	}
}
