package strict

import (
	"strings"
	"testing"
	"time"
)

// A value of the wrong kind is told in the file's words, not in the program's.
func TestWrongKindsAreToldPlainly(t *testing.T) {
	var v struct {
		Rounds int           `yaml:"rounds"`
		Small  int8          `yaml:"small"`
		Rate   float64       `yaml:"rate"`
		On     bool          `yaml:"on"`
		Wait   time.Duration `yaml:"wait"`
		Inner  struct {
			Rank uint `yaml:"rank"`
		} `yaml:"inner"`
	}
	for text, want := range map[string]string{
		"rounds: ten":          `[1:9] rounds: "ten" is not a whole number`,
		"small: 1000":          `"1000" is not a whole number in range`,
		"rate: fast":           `"fast" is not a number`,
		"on: 7":                `"7" is not true or false`,
		"inner: {rank: -1}":    "is not a whole number",
		"inner: {rank: great}": `"great" is not a whole number`,
	} {
		err := Decode([]byte(text), &v)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
