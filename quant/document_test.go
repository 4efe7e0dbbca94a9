package quant

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSchemesAreDocumented: peers round and check sums by the constants that docs/PROTOCOL.md gives.
func TestSchemesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(doc), "| uplink | Q | L | m | sd | width |\n")
	if !ok {
		t.Fatal("docs/PROTOCOL.md has no table of schemes")
	}
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[strings.Trim(cells[1], "`")] = cells[2:7]
	}
	for _, spec := range registry {
		s := Scheme{spec}
		row := rows[s.Name()]
		if row == nil {
			t.Errorf("docs/PROTOCOL.md has no row for %s", s.Name())
			continue
		}
		m, sd := s.Moments()
		q, width := fmt.Sprint(s.MaxSymbol()), ""
		if s.MaxSymbol() == 1<<20-1 {
			q = "2^20-1"
		}
		if s.spec.width != 0 {
			width = fmt.Sprint(s.spec.width)
		}
		for i, want := range []string{q, fmt.Sprint(s.ClipPoint()), fmt.Sprintf("%.14g", m), fmt.Sprintf("%.7g", sd), width} {
			if row[i] != want {
				t.Errorf("%s: docs/PROTOCOL.md says %q, it is %q", s.Name(), row[i], want)
			}
		}
	}
}
