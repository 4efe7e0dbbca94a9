package strict

import (
	"strings"
	"testing"
	"time"
)

type file struct {
	Name   string            `yaml:"name"`
	Labels []string          `yaml:"labels"`
	Limit  map[string]string `yaml:"limit"`
	Wait   time.Duration     `yaml:"wait"`
}

func TestDecode(t *testing.T) {
	f := file{Name: "kept"}
	for _, nothing := range []string{"", "\n", "# name: x\n\n  # more\n"} {
		if err := Decode([]byte(nothing), &f); err != nil || f.Name != "kept" {
			t.Errorf("%q: %+v, %v", nothing, f, err)
		}
	}
	if err := Decode([]byte("labels: [a, b]\nwait: 3s\n"), &f); err != nil || f.Name != "kept" || len(f.Labels) != 2 || f.Wait != 3*time.Second {
		t.Errorf("%+v, %v", f, err)
	}
	if err := Decode([]byte("labels: [a]\nlabel: b\n"), &f); err == nil || !strings.Contains(err.Error(), "label") || !strings.Contains(err.Error(), "2") {
		t.Errorf("an unknown key: %v", err)
	}
}

// TestHostileYAML: what made the parser panic, or grow without end, is an error.
func TestHostileYAML(t *testing.T) {
	bomb := strings.Builder{}
	bomb.WriteString("limit: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		l := string(rune('0' + i))
		bomb.WriteString("k" + l + ": &m" + l + " [*l0, *l0, *l0, *l0, *l0, *l0, *l0, *l0, *l0]\n")
	}
	for name, text := range map[string]string{
		"a tag before a mapping": "labels: !x\na: b\n",
		"aliases of aliases":     bomb.String(),
		"an alias of itself":     "labels: &a [*a]\n",
		"an alias of nothing":    "labels: [*a]\n",
		"depth":                  "labels: " + strings.Repeat("[", 5000),
		"a merge of a list":      "<<: [1, 2]\nlabels: {<<: 3}\n",
	} {
		var f file
		if err := Decode([]byte(text), &f); err == nil {
			t.Errorf("%s was read: %+.200v", name, f)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("name: x\nlabels: [a, b]\n")
	f.Add("labels: !0\n0:0\n")
	f.Add("limit: &a {b: c}\nlabels: [*a, *a]\n<<: *a\n")
	for _, text := range bombs(500) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v file
		took := allocated(func() { _ = Decode([]byte(text), &v) }) // it ends, and does not panic
		if most := uint64(1<<20 + 2000*len(text)); took > most {
			t.Errorf("%d bytes took %d from the heap, want at most %d", len(text), took, most)
		}
	})
}

// A key that another section has is named with it.
func TestKeysOfOtherSectionsAreNamed(t *testing.T) {
	var v struct {
		Rounds  int
		Privacy struct {
			ClipNorm float64 `yaml:"clip_norm"`
			Noise    string
		}
		Training struct{ Steps, Batch int }
		Other    struct{ Noise string }
	}
	for text, want := range map[string]string{
		"training: {clip_norm: 3}": `unknown field "clip_norm"; did you mean privacy.clip_norm?`,
		"privacy: {rounds: 3}":     `unknown field "rounds"; did you mean rounds?`,
		"steps: 3":                 `unknown field "steps"; did you mean training.steps?`,
		"training: {noise: a}":     `unknown field "noise"`, // two sections have it
		"training: {stepz: 3}":     `did you mean steps?`,
	} {
		err := Decode([]byte(text), &v)
		if err == nil || !strings.Contains(err.Error(), want) || want == `unknown field "noise"` && strings.Contains(err.Error(), "mean") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
