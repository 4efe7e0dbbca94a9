package card

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/statement"
)

var update = flag.Bool("update", false, "write the golden files anew")

func signer(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), n))
}

// announced is a sampled job whose rosters show a coalition, and its accountant's numbers (starling privacy explain).
func announced() (*wire.Job, dp.Guarantees) {
	j := &wire.Job{Name: "mail", Rounds: 200, ClipNorm: 1.5, ShardFloor: 32, ShardMax: 96, CorruptPPM: 50_000, BreachBits: 40}
	j.LogKey = [32]byte(signer(1).Public().(ed25519.PublicKey))
	j.Privacy = wire.Privacy{Private: true, SamplingRate: 0.01, NoiseMultiplier: 3, Delta: 1e-6, Budget: 5, Population: 20_000, Accountant: "tight", Observer: wire.ObserverCoalition}
	of := func(o dp.Observer, eps float64) *dp.Guarantee {
		return &dp.Guarantee{Epsilon: eps, EpsilonLower: eps * 0.999, Delta: 1e-6, Observer: o, Accountant: dp.Tight, Adjacency: "zero-out", Sampling: "by coins",
			Assumes: "no device leaves a round because of its own data"}
	}
	return j, dp.Guarantees{Delivered: of(dp.Colluding, 4.5), Public: of(dp.Public, 0.4), Visible: of(dp.Participants, 5)}
}

func made(t testing.TB) (*wire.Job, [32]byte, Card) {
	t.Helper()
	j, g := announced()
	task := [32]byte{7}
	return j, task, New(j, task, statement.Statement{Organisation: "Example"}, g, Fleet{Epsilon: 8, Delta: 1e-6})
}

// TestGolden fixes the format, which other programs read. go test -update rewrites the files.
func TestGolden(t *testing.T) {
	_, _, c := made(t)
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Print(&text); err != nil {
		t.Fatal(err)
	}
	for name, have := range map[string]string{"testdata/card.json": string(b) + "\n", "testdata/card.txt": text.String()} {
		if *update {
			if err := os.WriteFile(name, []byte(have), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if have != string(want) {
			t.Errorf("%s differs: a change of the format is a change of its version; it is now\n%s", name, have)
		}
	}
}

// TestOpens: the announcement suffices to read a signed card, however it is laid out, and no other.
func TestOpens(t *testing.T) {
	j, task, c := made(t)
	file, err := Sign(c, signer(1))
	if err != nil {
		t.Fatal(err)
	}
	var wide strings.Builder
	enc := json.NewEncoder(&wide)
	enc.SetIndent("", "    ")
	enc.SetEscapeHTML(false)
	var any signed
	if err := json.Unmarshal(file, &any); err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(any); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]string{"as served": string(file), "indented": wide.String()} {
		got, err := Open([]byte(b), Key(j))
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %v", name, err)
		}
		if err := got.Holds(j, task); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := c.Line(); got != "epsilon 0.4 against the public, epsilon 4.5 against 5 % of the devices, epsilon 5 against observers of who takes part, no epsilon against the coordinator itself" {
		t.Errorf("in a line: %s", got)
	}
	other, err := Sign(c, signer(2)) // names its own key
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(file), `"epsilon":4.5`, `"epsilon":2.5`, 1)
	if changed == string(file) {
		t.Fatal("nothing was changed")
	}
	for name, b := range map[string]string{"another's": string(other), "changed": changed, "cut": string(file[:len(file)/2]), "two": string(file) + string(file),
		"an unknown field": strings.Replace(string(file), `{"card"`, `{"more":1,"card"`, 1), "long": string(file) + strings.Repeat(" ", Most)} {
		if _, err := Open([]byte(b), Key(j)); !errors.Is(err, ErrCard) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(file, [32]byte{}); !errors.Is(err, ErrCard) {
		t.Errorf("without a key: %v", err)
	}
	c.Version = 2
	if file, err = Sign(c, signer(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Key(j)); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("of another version: %v", err)
	}
	if j.LogKey, j.RosterKey = [32]byte{}, [32]byte{9}; Key(j) != [32]byte{9} {
		t.Error("without a log the rosters' key signs")
	}
}

// TestEveryFieldOfTheMechanismIsHeld changes each field in turn: Holds must refuse the card.
func TestEveryFieldOfTheMechanismIsHeld(t *testing.T) {
	j, task, c := made(t)
	of := reflect.TypeFor[Mechanism]()
	for i := range of.NumField() {
		changed := c
		switch f := reflect.ValueOf(&changed.Mechanism).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Float64:
			f.SetFloat(f.Float() + 1)
		default:
			f.SetUint(f.Uint() + 1)
		}
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if err := changed.Holds(j, task); !errors.Is(err, ErrCard) || !strings.Contains(err.Error(), "mechanism."+name+" is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestContradictions: a card that a liar signs is refused by the field in which it lies.
func TestContradictions(t *testing.T) {
	for name, lie := range map[string]struct {
		change func(*Card)
		says   string
	}{
		"another job's":             {func(c *Card) { c.ID = strings.Repeat("0", 64) }, "id is"},
		"another name":              {func(c *Card) { c.Job = "post" }, "job is post"},
		"another unit":              {func(c *Card) { c.Guarantee.Unit = "provider" }, "guarantee.unit"},
		"fewer rounds":              {func(c *Card) { c.Guarantee.Rounds = 100 }, "guarantee.rounds"},
		"a smaller budget":          {func(c *Card) { c.Guarantee.Budget = 1 }, "guarantee.budget"},
		"another observer":          {func(c *Card) { c.Guarantee.Observer = "public" }, "guarantee.budget"},
		"simulated":                 {func(c *Card) { c.Guarantee.Simulated = true }, "guarantee.budget"},
		"one observer less":         {func(c *Card) { c.Guarantee.Epsilons = c.Guarantee.Epsilons[:3] }, "guarantee.epsilons has 3"},
		"observers in turn":         {func(c *Card) { c.Guarantee.Epsilons[0].Observer = "participants" }, "guarantee.epsilons has"},
		"without trust":             {func(c *Card) { c.Guarantee.Epsilons[0].Trusts = false }, "trust in the coordinator: false"},
		"the coordinator's":         {func(c *Card) { c.Guarantee.Epsilons[3].None = false }, "says that nothing holds: false"},
		"trust in it":               {func(c *Card) { c.Guarantee.Epsilons[3].Trusts = true }, "trust in the coordinator: true"},
		"nothing":                   {func(c *Card) { c.Guarantee.Epsilons[1].None = true }, "says that nothing holds"},
		"another delta":             {func(c *Card) { c.Guarantee.Epsilons[0].Delta = 1e-9 }, "is at delta"},
		"an impossible lower bound": {func(c *Card) { c.Guarantee.Epsilons[1].Lower = 6 }, "at least 6"},
		"no number":                 {func(c *Card) { c.Guarantee.Epsilons[1].Epsilon = math.NaN() }, "is NaN"},
		"less against more":         {func(c *Card) { c.Guarantee.Epsilons[0].Epsilon = 4.6; c.Guarantee.Epsilons[0].Lower = 0 }, "less than 4.6"},
		"above the budget":          {func(c *Card) { c.Guarantee.Epsilons[1].Epsilon = 6; c.Guarantee.Epsilons[2].Epsilon = 7 }, "above the budget"},
		"too little for the noise":  {func(c *Card) { c.Guarantee.Epsilons[2].Lower = 0; c.Mechanism.NoiseMultiplier = 1 }, "at the announced noise"},
		"a cheap month":             {func(c *Card) { c.Guarantee.Month.Epsilon = 9 }, "guarantee.month"},
		"a fleet without end":       {func(c *Card) { c.Guarantee.Fleet.Epsilon = -1 }, "guarantee.fleet"},
	} {
		j, task, c := made(t)
		lie.change(&c)
		if name == "too little for the noise" { // announced alike
			j.Privacy.NoiseMultiplier = 1
		}
		if err := c.Holds(j, task); !errors.Is(err, ErrCard) || !strings.Contains(err.Error(), lie.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSeenDelta: at full participation it is one Gaussian's, Phi(-1/2) - e*Phi(-3/2), with a coin the average over
// rounds.
func TestSeenDelta(t *testing.T) {
	for _, c := range []struct {
		rate, z float64
		rounds  int
		eps     float64
		want    float64
	}{
		{1, 1, 1, 1, 0.12693673750664395},
		{1, 10, 100, 1, 0.12693673750664395},
		{0.5, 1, 1, 1, 0.06346836875332197},
	} {
		if got := seenDelta(c.rate, c.z, c.rounds, c.eps); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%+v: %.17g", c, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	j, g := announced()
	file, err := Sign(New(j, [32]byte{7}, statement.Statement{}, g, Fleet{}), signer(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte(`{"card":{},"key":"","signature":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Open(b, Key(j))
		if err == nil {
			if err = c.Holds(j, [32]byte{7}); err != nil { // one signature is known
				t.Error(err)
			}
		} else if !errors.Is(err, ErrCard) {
			t.Error(err)
		}
		if c, err := Parse(b); err == nil {
			_ = c.Holds(j, [32]byte{7})
			_ = c.Line()
		}
	})
}
