package audit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Attendance is the availability of a fleet in one round.
type Attendance struct {
	Online  float64 // share of the enrolled that is there before the draw, each by itself
	Dropout float64 // share of the drawn that vanishes behind the cut, each by itself
}

// maxTrace bounds the rounds of a trace.
const maxTrace = 1 << 20

// ReadTrace reads a fleet's attendance, round by round: CSV with a header and the columns online
// and dropout, each in 0..1. A job with more rounds starts over at the first line.
func ReadTrace(r io.Reader) ([]Attendance, error) {
	c := csv.NewReader(r)
	c.Comment, c.FieldsPerRecord, c.ReuseRecord = '#', 2, true
	var out []Attendance
	for line := 1; ; line++ {
		row, err := c.Read()
		switch {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("audit: the trace has no round: want the head online,dropout and a line for each round")
		case err != nil:
			return nil, fmt.Errorf("audit: trace: %w", err)
		case line == 1:
			if row[0] != "online" || row[1] != "dropout" {
				return nil, fmt.Errorf("audit: the trace's head is %q, must be online,dropout", strings.Join(row, ","))
			}
			continue
		case len(out) == maxTrace:
			return nil, fmt.Errorf("audit: the trace has more than %d rounds", maxTrace)
		}
		var a Attendance
		for i, to := range []*float64{&a.Online, &a.Dropout} {
			if *to, err = strconv.ParseFloat(strings.TrimSpace(row[i]), 64); err != nil || !(*to >= 0 && *to <= 1) {
				return nil, fmt.Errorf("audit: trace, round %d: %s is %q, must be a number in 0..1", len(out)+1, [...]string{"online", "dropout"}[i], row[i])
			}
		}
		out = append(out, a)
	}
}
