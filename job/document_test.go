package job

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// words are defaults that docs/JOB.md says in words: what follows from another key, or is none.
var words = regexp.MustCompile(`^(required|embedded|as stored|calibrated|none|by the |half |8, or |0\.05, or |min\(|query and|.*` + "`" + `)`)

// unset are the keys that are empty by default, and what that stands for.
var unset = map[string]string{"method": string(model.MethodLoRA), "scale": "rank", "rank_distribution": uniformRanks,
	"arithmetic": Exact, "sampling": samplingPoisson, "noise": NoiseCentral, "mechanism": MechanismIndependent, "base_revision": "main", "base_sha256": "any", "blocks": strconv.Itoa(model.Method{}.BlockCount()),
	"statistics_every": strconv.Itoa(training.StatisticsEvery), "roots_every": strconv.Itoa(training.RootsEvery), "objectives": "all"}

// TestDefaultsAreDocumented: the defaults of docs/JOB.md are those that a job has.
func TestDefaultsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/JOB.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := strict.Encode(Default())
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := strict.Decode(text, &all); err != nil {
		t.Fatal(err)
	}
	section, in, held, worded := all, "", 0, 0
	documented := map[string]bool{} // section.key
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		keys, value := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		if name, ok := strings.CutPrefix(keys, "**"); ok {
			name = strings.TrimSuffix(name, "**")
			if section, ok = all[name].(map[string]any); !ok {
				t.Fatalf("a job has no section %s", name)
			}
			in = name + "."
			continue
		}
		if strings.HasPrefix(keys, "`") {
			for name := range strings.SplitSeq(strings.ReplaceAll(keys, "`", ""), ", ") {
				documented[in+name] = true
			}
		}
		if !strings.HasPrefix(keys, "`") || value == "" && !strings.Contains(keys, "rate") {
			continue
		}
		names := strings.Split(strings.ReplaceAll(keys, "`", ""), ", ")
		values := strings.Split(value, ", ")
		if words.MatchString(value) {
			worded++
			continue
		}
		if len(values) == 1 && len(names) > 1 {
			values = slices.Repeat(values, len(names))
		}
		if len(values) != len(names) {
			t.Errorf("%s: %d defaults in %q", keys, len(values), value)
			continue
		}
		for i, name := range names {
			has, ok := section[name]
			if !ok {
				t.Errorf("a job has no key %s; its section has %v", name, slices.Sorted(maps.Keys(section)))
			} else if !alike(has, values[i]) && unset[name] != values[i] {
				t.Errorf("%s is %v where nothing is said, docs/JOB.md says %s", name, has, values[i])
			}
			held++
		}
	}
	for name, value := range all {
		keys, ok := value.(map[string]any)
		if !ok {
			keys, name = map[string]any{name: value}, ""
		} else {
			name += "."
		}
		for key := range keys {
			if !documented[name+key] {
				t.Errorf("docs/JOB.md does not say what %s%s is", name, key)
			}
		}
	}
	if held < 35 || worded > 30 {
		t.Errorf("%d defaults were compared, %d are in words", held, worded)
	}
}

// TestServerOptimizersAreDocumented: docs/JOB.md and the field's comment name those that there are.
func TestServerOptimizersAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/JOB.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "| **server** |")
	_, section, _ = strings.Cut(section, "\n| `optimizer` |")
	section, _, _ = strings.Cut(section, "\n")
	source, err := os.ReadFile("job.go")
	if err != nil {
		t.Fatal(err)
	}
	_, comment, _ := strings.Cut(string(source), "type Server struct {")
	comment, _, _ = strings.Cut(comment, "}")
	for _, name := range optimizers {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(section) {
			t.Errorf("docs/JOB.md does not name the optimizer %s", name)
		}
		if !strings.Contains(comment, `"`+name+`"`) {
			t.Errorf("the comment of Server.Optimizer does not name %s", name)
		}
		j := Default().Server
		j.Optimizer = name
		if err := j.Derived().Validate(); err != nil {
			t.Errorf("%s is listed and refused: %v", name, err)
		}
	}
}

func alike(has any, says string) bool {
	switch v := has.(type) {
	case nil:
		return says == "0" || says == "false" || says == "none"
	case bool:
		return strconv.FormatBool(v) == says
	case string:
		a, errA := time.ParseDuration(v)
		b, errB := time.ParseDuration(says)
		return v == says || errA == nil && errB == nil && a == b
	case uint64:
		return strconv.FormatUint(v, 10) == says
	case int64:
		return strconv.FormatInt(v, 10) == says
	case float64:
		want, err := strconv.ParseFloat(says, 64)
		return err == nil && v == want
	}
	return false
}
