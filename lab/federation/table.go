package federation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/starling-fl/starling/dataset"
)

// Limits of a table: beyond them it is refused.
const (
	maxTable = 1 << 20 // bytes
	maxCells = 1 << 14
)

// readTable reads the cells of a table, row by row, whose columns sep separates. Cells
// stand in quotes or without; within quotes WikiTableQuestions escapes a quote by a
// backslash.
func readTable(text []byte, sep rune) ([][]string, error) {
	if len(text) > maxTable || !utf8.Valid(text) {
		return nil, fmt.Errorf("a table of %d bytes, want at most %d of UTF-8", len(text), maxTable)
	}
	escaped := strings.NewReplacer(`\\`, `\`, `\"`, `""`).Replace(string(text))
	r := csv.NewReader(strings.NewReader(escaped))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = sep, true, -1
	var rows [][]string
	cells := 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if cells += len(row); cells > maxCells {
			return nil, fmt.Errorf("more than %d cells", maxCells)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// layOut is a table as a page: each row has an equal part of its height, each cell an
// equal part of its row, and each word the part of its cell that its letters have.
// title, if any, stands above as a row of its own.
func layOut(title string, rows [][]string) (words []string, boxes [][4]uint16) {
	if title = strings.TrimSpace(title); title != "" {
		rows = append([][]string{{title}}, rows...)
	}
	for r, row := range rows {
		top, bottom := dataset.PageSide*r/len(rows), dataset.PageSide*(r+1)/len(rows)
		for c, cell := range row {
			left, right := dataset.PageSide*c/len(row), dataset.PageSide*(c+1)/len(row)
			letters := []rune(cell)
			place := func(at int) uint16 { return uint16(left + (right-left)*at/len(letters)) }
			from := -1
			for i := 0; i <= len(letters); i++ {
				switch space := i == len(letters) || unicode.IsSpace(letters[i]); {
				case !space && from < 0:
					from = i
				case space && from >= 0:
					words = append(words, string(letters[from:i]))
					boxes = append(boxes, [4]uint16{place(from), uint16(top), place(i), uint16(bottom)})
					from = -1
				}
			}
		}
	}
	return words, boxes
}
