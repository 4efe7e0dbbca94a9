package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvFile is a file of comma-separated values that is read record by record, each of which takes at most MaxLine bytes.
type csvFile struct {
	*csv.Reader
	limit *bounded
	name  string

	behind int // the last line of the last record
	above  int // lines above the first record
}

// end is the line in which a record's last field ends.
func (t *csvFile) end(row []string) int {
	line, _ := t.FieldPos(len(row) - 1)
	return line + strings.Count(row[len(row)-1], "\n")
}

func (s *scanner) csv(in io.Reader) *csvFile {
	limit := &bounded{r: in}
	return &csvFile{Reader: csv.NewReader(limit), limit: limit, name: s.name, above: s.above}
}

// next returns the next record, and one of another length than the first beside its error; io.EOF if there is none. Other
// errors name the file, and the line where one is wrong.
func (t *csvFile) next() ([]string, error) {
	t.limit.left = MaxLine + 64<<10 // beyond the record: what is read ahead
	row, err := t.Read()
	bad := new(csv.ParseError)
	quote := errors.As(err, &bad) && errors.Is(bad.Err, csv.ErrQuote)
	switch {
	case quote || errors.Is(err, errLong): // row is what precedes the field whose quote does not close
		if quote {
			err = fmt.Errorf("a quote opens here, and does not close before a separator or the end of its line (seen in line %d): %w", bad.Line+t.above, bad.Err)
		}
		at := t.behind + 1
		if quote {
			at = bad.StartLine
		}
		if len(row) > 0 {
			at = t.end(row)
		}
		return nil, &LineError{t.name, at + t.above, err}
	case errors.As(err, &bad):
		return row, &LineError{t.name, bad.Line + t.above, bad.Err}
	case err == nil && len(row) > 0:
		t.behind = t.end(row)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return row, err
}
