package federation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/starling-fl/starling/data/dataset"
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
// title, if any, is above as a row of its own.
func layOut(title string, rows [][]string) (words []string, boxes [][4]uint16) {
	if title = strings.TrimSpace(title); title != "" {
		rows = append([][]string{{title}}, rows...)
	}
	var page dataset.Example
	for r, row := range rows {
		for c, cell := range row {
			page.AddLine(cell, [4]uint16{part(c, len(row)), part(r, len(rows)), part(c+1, len(row)), part(r+1, len(rows))})
		}
	}
	return page.Words, page.Boxes
}

// part is where the i-th of n equal parts of a page begins.
func part(i, n int) uint16 { return uint16(dataset.PageSide * i / n) }
