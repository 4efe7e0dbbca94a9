package exposure

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/model"
	embedded "github.com/starling-fl/starling/model/base"
)

// someSubject is the embedded base for documents under an adapter that changes nothing.
func someSubject(t *testing.T) *subject {
	t.Helper()
	base, err := embedded.Documents()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := base.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	l, err := model.NewLayout(base.Config, model.Method{RMax: 2, Alpha: 2, Task: model.TaskAnswer, Answer: 16}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{Engine: engine.New(), Rank: 2, Progress: io.Discard, Checkpoint: &model.Checkpoint{
		CheckpointInfo: model.CheckpointInfo{Seq: 96, Method: l.Method, BaseSHA256: string(sum[:])}, Base: base, Adapter: model.NewAdapter(l, 3)}}
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A model that learnt nothing shows nothing: what it says and what the base says are one. What
// was removed is right no more, and means are over each provider's own examples.
func TestLooks(t *testing.T) {
	s := someSubject(t)
	in, err := dataset.Documents(dataset.DocumentConfig{Seed: 1, Split: "train", Clients: 3, PerClient: 8, Providers: 1, Identifiers: true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := dataset.Documents(dataset.DocumentConfig{Seed: 1, Split: "test", Clients: 3, PerClient: 8, Providers: 1, Identifiers: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := apart(in, out, "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Observe(t.Context(), p, wanted{true, true, true})
	if err != nil {
		t.Fatal(err)
	}
	right, still, red := 0.0, 0.0, 0
	for i := range p.Examples {
		if l.Model[i] != l.Base[i] || l.RedModel[i] != l.RedBase[i] {
			t.Fatalf("example %d: %+v, the base %+v", i, l.Model[i], l.Base[i])
		}
		if l.Red[i] {
			red++
			right += l.Model[i].Right
			still += l.RedModel[i].Right
		}
	}
	if red < 40 || right < 10 || still > right/4 {
		t.Errorf("of %d questions %v are right, and %v once their answer is removed", red, right, still)
	}
	units := l.Units(p)
	if len(units) != 6 || !units[0].Member || units[5].Member || units[0].Questions != 8 {
		t.Fatalf("%+v", units)
	}
	sum, logit := 0.0, 0.0
	for i, who := range p.Owner {
		if who == units[1].Name {
			sum += l.Model[i].Loss / 8
			logit += membership.Logit(l.Model[i].Loss) / 8
		}
	}
	if u := units[1]; math.Abs(u.Means[membership.Loss]-sum) > 1e-12 || math.Abs(u.Target-logit) > 1e-12 || u.Means[membership.DeltaLoss] != 0 ||
		math.IsNaN(u.Means[membership.DeltaMemoryNLS]) || u.Means[membership.BaseLoss] != u.Means[membership.Loss] {
		t.Errorf("%+v, want a loss of %v", u, sum)
	}
	for _, o := range l.Outcomes(p, false, true, true) {
		if o.Key != "sender" && o.Key != "tax number" && o.Key != "registration id" {
			t.Errorf("%s is no constant key", o.Key)
		}
	}
	if n := len(l.Outcomes(p, false, false, false)); n != 48 {
		t.Errorf("%d outcomes", n)
	}
	d, err := s.Disclose(t.Context(), p, "sender")
	if err != nil || d.Documents != 0 || d.Secrets == 0 { // each document prints its sender
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = s.Disclose(t.Context(), p, "tax number"); err != nil || d.Documents < 1 || d.Documents > 3*mostAsked || d.Said != d.BaseSaid {
		t.Errorf("%+v, %v", d, err)
	}
}

// A shadow of another task or base is refused by its folder's name.
func TestShadowsAreAlike(t *testing.T) {
	s := someSubject(t)
	dir := t.TempDir()
	if _, err := s.Shadows(t.Context(), dir, &People{}, nil); err == nil || !strings.Contains(err.Error(), "members.json") {
		t.Errorf("an empty folder: %v", err)
	}
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 1, Split: "test", Clients: 2, PerClient: 2, Providers: 1})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{set.Examples[0].Provider}
	p, err := Among(set, names, "")
	if err != nil {
		t.Fatal(err)
	}
	units := []membership.Unit{{Name: p.Owner[0]}, {Name: p.Owner[2]}}
	shadow := *s.Checkpoint
	if err := s.addShadow(t.Context(), "shadow", &shadow, names, p, units); err != nil || len(units[0].In) != 1 || len(units[1].Out) != 1 || len(units[0].Out) != 0 {
		t.Errorf("%+v, %v", units, err)
	}
	if err := s.addShadow(t.Context(), "shadow", &shadow, []string{"nobody"}, p, units); err == nil || !strings.Contains(err.Error(), "none of its 1 members") {
		t.Errorf("a shadow of others: %v", err)
	}
	shadow.BaseSHA256 = "other"
	if err := s.addShadow(t.Context(), "shadow", &shadow, names, p, units); err == nil || !strings.Contains(err.Error(), "same base") {
		t.Errorf("a shadow of another base: %v", err)
	}
}
