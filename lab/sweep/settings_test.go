package sweep

import (
	"strings"
	"testing"
)

// Passes over a client's examples fit its steps; 16 of them were 2 in a preset.
func TestPassesFitTheirSteps(t *testing.T) {
	s := DefaultSettings()
	s.Job = map[string]any{"training": map[string]any{"epochs": 16, "steps": 16}}
	_, err := s.JobOf("x", []string{"a", "b"})
	if err == nil || !strings.Contains(err.Error(), "training.steps of 32 would do") {
		t.Error(err)
	}
	set(s.Job, "training.steps", 32)
	if _, err := s.JobOf("x", []string{"a", "b"}); err != nil {
		t.Error(err)
	}
	for _, name := range Presets() {
		_, p, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range p.Points {
			if _, err := at.Settings.JobOf("x", someLabels(at.Settings)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// someLabels are what a job of these settings may have.
func someLabels(s Settings) []string {
	switch s.Job["task"] {
	case "answer", "causal", "pretrain", "span", "transcribe":
		return nil
	}
	return []string{"a", "b"}
}

// A run by an optimizer's own rates has another name than the one made when they were
// others, and the same as one that spells them out.
func TestNamesSpellTheServersRates(t *testing.T) {
	id := func(job map[string]any) string {
		s := DefaultSettings()
		s.Job = map[string]any{"server": job}
		id, err := s.ID()
		ok(t, err)
		return id
	}
	alone := id(map[string]any{"optimizer": "fedadam"})
	if alone != id(map[string]any{"optimizer": "fedadam", "learning_rate": 1e-3, "epsilon": 1e-5}) {
		t.Error("spelled out it is another run")
	}
	if alone == id(map[string]any{"optimizer": "fedadam", "learning_rate": 1.0}) {
		t.Error("at another rate it is the same run")
	}
	if id(map[string]any{"optimizer": "fedavgm"}) == id(map[string]any{"optimizer": "fedavgm", "learning_rate": 1.0}) {
		t.Error("names of the default optimizer changed")
	}
}

// Exact arithmetic has the name that it had before there was another, however it is said;
// fused is another run, and stays what a job says.
func TestNamesOfArithmetic(t *testing.T) {
	id := func(s Settings) string {
		id, err := s.ID()
		ok(t, err)
		return id
	}
	unsaid := DefaultSettings()
	unsaid.Job = map[string]any{"rounds": 3}
	if id(unsaid) != "f12d5c79bee32fa4" {
		t.Error("a job that says nothing has another name than runs of earlier versions: " + id(unsaid))
	}
	exact, fused := unsaid.WithArithmetic("exact"), unsaid.WithArithmetic("fused")
	if id(exact) != id(unsaid) {
		t.Error("exact arithmetic that is said is another run")
	}
	if id(fused) == id(unsaid) {
		t.Error("fused arithmetic is the same run")
	}
	if class, named := fused.WithArithmetic("exact").Arithmetic(); class != "fused" || !named {
		t.Errorf("what the job says was changed to %q", class)
	}
	if _, named := unsaid.Arithmetic(); named {
		t.Error("the settings that were asked have changed")
	}
}

// A cohort that is the true one is the true one, in its job and in its name.
func TestCohortMayBeTheTrueOne(t *testing.T) {
	small, whole := DefaultSettings(), DefaultSettings()
	small.Cohort, whole.Cohort = 10_000, 0
	a, err := small.JobOf("x", []string{"a", "b"})
	ok(t, err)
	b, err := whole.JobOf("x", []string{"a", "b"})
	ok(t, err)
	if a.Simulated() || a.Cohort != b.Cohort {
		t.Errorf("%+v, want %+v", a.Cohort, b.Cohort)
	}
	one, err := small.ID()
	ok(t, err)
	other, err := whole.ID()
	ok(t, err)
	if one != other {
		t.Error("they are two runs")
	}
	if small.Cohort++; small.Check() == nil {
		t.Error("a cohort above the true one is taken")
	}
}

// A cohort of one is for settings that promise no privacy, however they say so.
func TestACohortOfOne(t *testing.T) {
	for _, privacy := range []any{"none", map[string]any{"none": true}, map[string]any{"epsilon": 2.0}} {
		s := DefaultSettings()
		s.Population, s.Cohort = 3, 1
		s.Job = map[string]any{"cohort": map[string]any{"sampling": "fixed"}, "shard": map[string]any{"corrupt": 0}, "privacy": privacy}
		err := s.Check()
		if err == nil {
			_, err = s.JobOf("x", []string{"a", "b"})
		}
		keys, _ := privacy.(map[string]any)
		if _, private := keys["epsilon"]; (err != nil) != private {
			t.Errorf("%v: %v", privacy, err)
		}
	}
}

// The number of clients in a round is listed beside the job's section of the same name.
func TestFlatListsTheCohortAndItsSection(t *testing.T) {
	_, plan, err := Preset("paper002-table3-small")
	if err != nil {
		t.Fatal(err)
	}
	cohorts := map[string]bool{}
	for _, p := range plan.Points {
		flat, err := p.Settings.Flat()
		if err != nil {
			t.Fatal(err)
		}
		cohorts[flat["cohort"]] = true
		if flat["cohort.sampling"] != "fixed" {
			t.Errorf("cohort.sampling is %q", flat["cohort.sampling"])
		}
	}
	if !cohorts["1"] || !cohorts["2"] || !cohorts["3"] {
		t.Errorf("cohorts %v, want 1, 2 and 3", cohorts)
	}
}
