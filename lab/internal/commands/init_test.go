package commands

import (
	"bytes"
	"strings"
	"testing"
)

// What no flag gives is asked for; an empty answer takes what is proposed, and no answer ends it.
func TestInitAsks(t *testing.T) {
	ask := func(answers string, given ...string) (initFlags, string, error) {
		var f initFlags
		var out bytes.Buffer
		err := f.ask(strings.NewReader(answers), &out, func(flag string) bool { return strings.Contains(strings.Join(given, " "), flag) })
		return f, out.String(), err
	}
	f, said, err := ask("mail.csv\n12\n\n\ncoordinator\n")
	if err != nil || f.data != "mail.csv" || f.Devices != 12 || f.Examples != 0 || f.base != "" || f.From != "coordinator" {
		t.Errorf("%+v, %v", f, err)
	}
	if !strings.Contains(said, "How many devices may ever take part [40]? ") {
		t.Errorf("asked: %s", said)
	}
	if f, said, err = ask("\n\n\n", "data", "devices"); err != nil || strings.Contains(said, "Labelled") || f.From != "public" {
		t.Errorf("%+v, %q, %v", f, said, err)
	}
	if _, _, err = ask("mail.csv\nmany\n"); err == nil || !strings.Contains(err.Error(), `--devices "many": want a whole number`) {
		t.Error(err)
	}
	if _, _, err = ask("mail.csv\n"); err == nil || !strings.Contains(err.Error(), "--devices: no answer") {
		t.Error(err)
	}
}
