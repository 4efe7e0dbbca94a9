package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// csvFile is a file of comma-separated values that is read record by record, each of which takes at most MaxLine bytes.
type csvFile struct {
	*csv.Reader
	limit *bounded
	name  string
}

func (s *scanner) csv(in io.Reader) *csvFile {
	limit := &bounded{r: in}
	return &csvFile{csv.NewReader(limit), limit, s.name}
}

// next returns the next record, and one of another length than the first beside its error; io.EOF if there is none. Other
// errors name the file, and the line where one is wrong.
func (t *csvFile) next() ([]string, error) {
	t.limit.left = MaxLine + 64<<10 // beyond the record: what is read ahead
	row, err := t.Read()
	if bad := new(csv.ParseError); errors.As(err, &bad) {
		return row, &LineError{t.name, bad.Line, bad.Err}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return row, err
}
