package wire

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMessagesAreDocumented: docs/PROTOCOL.md has every message with its number, who sends it and as many fields as it has,
// and none that there is not.
func TestMessagesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "; a frame is the kind byte, then the array of that kind\n")
	if !ok {
		t.Fatal("docs/PROTOCOL.md has no list of messages")
	}
	section, _, _ = strings.Cut(section, "\n\n")
	row := regexp.MustCompile(`^(\w+)\s*= \[(.*)\]\s*; (?:kind )?(\d+), (device|coordinator|both)$`)
	senders := map[string]Direction{"device": FromDevice, "coordinator": FromCoordinator, "both": FromDevice | FromCoordinator}
	listed := map[Kind]bool{}
	for line := range strings.Lines(section) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Errorf("docs/PROTOCOL.md: no message is listed by %q", line)
			continue
		}
		number, err := strconv.Atoi(m[3])
		k := Kind(number)
		if err != nil || k == 0 || k >= kindEnd || listed[k] {
			t.Errorf("docs/PROTOCOL.md lists a message %s as number %s", m[1], m[3])
			continue
		}
		listed[k] = true
		if m[1] != flow[k].name || senders[m[4]] != flow[k].from {
			t.Errorf("docs/PROTOCOL.md: message %d is %s, sent by %s; it is %s, sent by %v", k, m[1], m[4], flow[k].name, flow[k].from)
		}
		if got, want := topLevel(m[2]), count(reflect.TypeOf(flow[k].make()).Elem()); got != want {
			t.Errorf("docs/PROTOCOL.md: %s has %d fields, it has %d", m[1], got, want)
		}
	}
	for k := Kind(1); k < kindEnd; k++ {
		if !listed[k] {
			t.Errorf("docs/PROTOCOL.md does not list message %d, %s", k, k)
		}
	}
}

// TestWhatMessagesCarryIsDocumented: the same for what is in them.
func TestWhatMessagesCarryIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]any{"plan": Plan{}, "job": Job{}, "privacy": Privacy{}, "deadlines": Deadlines{}} {
		m := regexp.MustCompile(`(?ms)^` + name + ` *= \[(.*?)\](?:$|  )`).FindSubmatch(doc)
		if m == nil {
			t.Errorf("docs/PROTOCOL.md does not say what %s is", name)
			continue
		}
		if got, want := topLevel(string(m[1])), count(reflect.TypeOf(of)); got != want {
			t.Errorf("docs/PROTOCOL.md: %s has %d fields, it has %d", name, got, want)
		}
	}
}

// count counts what crosses the wire of a struct.
func count(of reflect.Type) (n int) {
	for i := range of.NumField() {
		switch f := of.Field(i); {
		case f.Anonymous:
			n += count(f.Type)
		case f.IsExported():
			n++
		}
	}
	return n
}

// topLevel counts the entries of a list, those of parentheses and brackets in it as one.
func topLevel(list string) int {
	if strings.TrimSpace(list) == "" {
		return 0
	}
	n, depth := 1, 0
	for _, c := range list {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				n++
			}
		}
	}
	return n
}
