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

	"github.com/starling-fl/starling/internal/strict"
	"github.com/starling-fl/starling/model"
)

// words are defaults that docs/JOB.md says in words: what follows from another key, or is none.
var words = regexp.MustCompile(`^(required|embedded|as stored|calibrated|none|by the base|half |8, or |0\.05, or |min\(|query and|.*` + "`" + `)`)

// unset are the keys that are empty by default, and what that stands for.
var unset = map[string]string{"method": string(model.MethodLoRA), "scale": "rank", "rank_distribution": uniformRanks,
	"arithmetic": exact, "blocks": strconv.Itoa(model.Method{}.BlockCount())}

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
	section, held, worded := all, 0, 0
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
			continue
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
	if held < 35 || worded > 25 {
		t.Errorf("%d defaults were compared, %d are in words", held, worded)
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
