package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
)

// separators may be between the columns of a table; the first is it where nothing
// speaks for another.
const separators = ",;\t"

// separatorNames are for people, who do not see a tab.
var separatorNames = map[rune]string{',': "commas", ';': "semicolons", '\t': "tabs", '|': "bars"}

// header is the first record of a table and what separates its columns, without reading
// it: the separator under which most of the columns that are needed are found, then of
// those that are known, then of all. One that merely is in a name, as the comma of
// "text;label;note, free", separates nothing. names is nil if the first record is not
// one of fields with names.
func (c Columns) header(in *bufio.Reader, want bool) (sep rune, names []string) {
	start, _ := in.Peek(64 << 10) // an error comes again when it is read
	sep = rune(separators[0])
	var best []int
	for _, s := range separators {
		row := firstRecord(start, s, len(start) == 64<<10)
		if row == nil {
			continue
		}
		if fit := c.fit(row, want); slices.Compare(fit, best) > 0 {
			sep, names, best = s, row, fit
		}
	}
	return sep, names
}

// separatorLine reads a first line that names what separates columns, as Excel writes it (sep=;); 0 if there is none.
func separatorLine(in *bufio.Reader) rune {
	start, _ := in.Peek(8) // an error comes again when it is read
	for _, end := range []string{"\r\n", "\n"} {
		if rest, ok := bytes.CutPrefix(start, []byte("sep=")); ok && len(rest) > len(end) && strings.IndexByte(separators+"|", rest[0]) >= 0 &&
			bytes.HasPrefix(rest[1:], []byte(end)) {
			if _, err := in.Discard(len("sep=") + 1 + len(end)); err != nil {
				return 0
			}
			return rune(rest[0])
		}
	}
	return 0
}

// fit is how well a header's names are those that are looked for, the weightiest first.
func (c Columns) fit(names []string, want bool) []int {
	needed, known := 0, 0
	for _, column := range []string{c.text(), c.label(), c.column("user"), c.column("provider")} {
		if find(names, column) >= 0 {
			known++
		}
	}
	if find(names, c.text()) >= 0 {
		needed++
	}
	if want && find(names, c.label()) >= 0 {
		needed++
	}
	if pixels, _ := c.pixelColumns(names); want && pixels != nil {
		needed = 2
	}
	return []int{needed, known, len(names)}
}

// firstRecord takes the first record off the start of a table; nil if it is none, or
// where the start is cut off before its end.
func firstRecord(start []byte, sep rune, cut bool) []string {
	r := csv.NewReader(bytes.NewReader(start))
	r.Comma = sep
	row, err := r.Read()
	if err != nil || cut && r.InputOffset() == int64(len(start)) {
		return nil
	}
	return trimmed(row)
}

func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimSpace(name)
	}
	return out
}
