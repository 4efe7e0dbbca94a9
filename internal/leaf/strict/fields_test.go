package strict

import (
	"fmt"
	"strings"
	"testing"
)

type numbers struct {
	Rounds int     `yaml:"rounds"`
	Small  int8    `yaml:"small"`
	Seed   uint64  `yaml:"seed"`
	Rate   float64 `yaml:"rate"`
	Name   string  `yaml:"name"`
	Free   bool    `yaml:"free"`
	Group  struct {
		Memory int   `yaml:"memory"`
		Ranks  []int `yaml:"ranks"`
	} `yaml:"group"`
	On []map[string]string `yaml:"on"`
}

// TestNumbersAreNotCut: what a file says is read as it is there, or refused by key and value.
func TestNumbersAreNotCut(t *testing.T) {
	for text, want := range map[string]string{
		"rounds: 3.9":                    `rounds: "3.9" is not a whole number`,
		"rounds: -0.5":                   `rounds: "-0.5" is not a whole number`,
		`rounds: "3.9"`:                  `rounds: "3.9" is not a whole number`,
		"rounds: 1e-3":                   `rounds: "1e-3" is not a whole number`,
		"rounds: 25e-1":                  `rounds: "25e-1" is not a whole number`,
		"rounds: .nan":                   `rounds: ".nan" is not a number in range`,
		"rounds: -.inf":                  `rounds: "-.inf" is not a number in range`,
		"rounds: nan":                    `rounds: "nan" is not a number in range`,
		"rounds: 1e400":                  `rounds: "1e400" is not a number in range`,
		"rounds: 1e19":                   `rounds: "1e19" is not a whole number in range`,
		"rounds: 9007199254740993.0":     `is not a whole number in range`,
		"rounds: 9223372036854775808":    `is not a whole number in range`,
		"small: 200":                     `small: "200" is not a whole number in range`,
		"small: -200":                    `small: "-200" is not a whole number in range`,
		"seed: -2.0":                     `seed: "-2.0" is not a whole number in range`,
		"small: 1e3":                     `small: "1e3" is not a whole number in range`,
		"seed: -1":                       `seed: "-1" is not a whole number in range`,
		"rounds: ten":                    `rounds: "ten" is not a whole number`,
		"rounds: 5 000":                  `rounds: "5 000" is not a whole number`,
		"rate: fast":                     `rate: "fast" is not a number`,
		"free: maybe":                    `free: "maybe" is not true or false`,
		"seed: 0.1":                      `seed: "0.1" is not a whole number`,
		"rounds: 010":                    `rounds: "010" begins with a 0`,
		"rate: 010":                      `rate: "010" begins with a 0`,
		"rate: .inf":                     `rate: ".inf" is not a number in range`,
		"rate: .NaN":                     `rate: ".NaN" is not a number in range`,
		"rate: infinity":                 `rate: "infinity" is not a number in range`,
		"name: 007":                      `name: "007" is read as the number 7: put it in quotes`,
		"name: 3.10":                     `name: "3.10" is read as the number 3.1`,
		"group: {memory: 64.9}":          `[1:17] group.memory: "64.9" is not a whole number`,
		"group:\n  memory: 64.9\n":       `[2:11] group.memory: "64.9" is not a whole number`,
		"group: {ranks: [1, 2.5]}":       `group.ranks: "2.5" is not a whole number`,
		"{\"rounds\": 3.9}":              `rounds: "3.9" is not a whole number`,
		"rate: &a 2.5\nrounds: *a":       `rounds: "2.5" is not a whole number`,
		"on: [&m {rounds: 2.5}]\n<<: *m": `rounds: "2.5" is not a whole number`,
		"on: [{a: &x 2.5}]\ngroup: {<<: {ranks: [*x]}}": `group.ranks: "2.5" is not a whole number`,
		"rounds: !!float 3.9":                           `rounds: "3.9" is not a whole number`,
		"? rounds\n: 3.9":                               `rounds: "3.9" is not a whole number`,
		"on: [{a: 0x10}]":                               `"0x10" is read as the number 16`,
		"rounds: 0_20":                                  `rounds: "0_20" begins with a 0`,
		"rounds: >-\n  3.9":                             "rounds: a block of text is not a number",
		"rate: >-\n  .inf":                              "rate: a block of text is not a number",
		"roundz: 3":                                     `unknown field "roundz"; did you mean rounds?`,
		"group: {memroy: 3}":                            `unknown field "memroy"; did you mean memory?`,
		"group: {<<: {memroy: 3}}":                      `unknown field "memroy"; did you mean memory?`,
		"budget: 3":                                     `unknown field "budget"`,
	} {
		var v numbers
		err := Decode([]byte(text), &v)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (%+v), want %s", text, err, v, want)
		}
	}
	for _, text := range []string{"a: 010", "a: [{b: 0_20}]", "a: &x 010\nb: *x"} {
		for _, v := range []any{&map[string]any{}, &Pairs{}} {
			if err := Decode([]byte(text), v); err == nil || !strings.Contains(err.Error(), "begins with a 0") {
				t.Errorf("%s into %T: %v", text, v, err)
			}
		}
	}
	var words map[string]Words
	if err := Decode([]byte("a: [1.10, 0x10, yes, true, 1_0]\nb: 1e3\nc: '007'\nd: |\n  x\n"), &words); err != nil ||
		fmt.Sprintf("%q", words) != `map["a":["1.10" "0x10" "yes" "true" "1_0"] "b":["1e3"] "c":["007"] "d":["x\n"]]` {
		t.Errorf("%q, %v", words, err)
	}
	for _, rounds := range []string{"3000", "3000.0", "3e3", "3.0e3", "3_000", "0xbb8", `"3000"`, "+3000"} {
		var v numbers
		if err := Decode([]byte("rounds: "+rounds+"\nrate: 1.5e308\nname: \"007\"\non: [{a: 3.1, b: 0}]\n"), &v); err != nil || v.Rounds != 3000 || v.Name != "007" || v.Rate != 1.5e308 {
			t.Errorf("%s: %+v, %v", rounds, v, err)
		}
	}
}
