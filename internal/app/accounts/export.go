package accounts

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
)

// jobGiven is what a data set has given to one job, with what that may have cost.
type jobGiven struct {
	ID string `json:"id"` // TaskID in hexadecimal
	edge.JobAccount
	Epsilon   *float64 `json:"epsilon,omitempty"`              // if the noise is as announced
	Untrusted *float64 `json:"untrusted_epsilon,omitempty"`    // if everybody else lies, by this device's own noise
	Bits      *float64 `json:"bits_at_most,omitempty"`         // that could be told then
	Example   *float64 `json:"example_bits_at_most,omitempty"` // about any one example
}

// givenTo are an account's jobs with what each may have cost.
func givenTo(account *edge.Account) (list []jobGiven) {
	finite := func(v float64, ok bool) *float64 {
		if !ok || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
		return &v
	}
	for _, j := range SortedJobs(account) {
		of := jobGiven{ID: j.Task, JobAccount: j}
		g, ok, err := j.Epsilon()
		of.Epsilon = finite(g.Epsilon, ok && err == nil)
		g, ok, err = j.Untrusted()
		of.Untrusted = finite(g.Epsilon, ok && err == nil)
		bits, ok := j.Bits()
		of.Bits = finite(bits, ok)
		bits, ok = j.ExampleBits()
		of.Example = finite(bits, ok)
		list = append(list, of)
	}
	return list
}

// Export writes an account into a file: JSON, or CSV with a line for each moment, by the ending of its path.
func (r Report) Export(path string, account *edge.Account) error {
	list := givenTo(account)
	var b []byte
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		var err error
		if b, err = json.MarshalIndent(struct {
			Report
			Jobs []jobGiven `json:"jobs"`
		}{r, list}, "", "\t"); err != nil {
			return err
		}
		b = append(b, '\n')
	case ".csv":
		var buffer bytes.Buffer
		if err := writeAccountCSV(&buffer, list); err != nil {
			return err
		}
		b = buffer.Bytes()
	default:
		return usage.Errorf("--export is %s, want a file that ends in .json or .csv", path)
	}
	return durable.Replace(path, b, 0o600)
}

// writeAccountCSV writes a line for each moment of each job, and one for a job without any.
// What another calls its job begins no formula in a table's program.
func writeAccountCSV(w io.Writer, list []jobGiven) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"job", "id", "time", "rounds", "promised", "bytes_sent", "bytes_received", "epsilon", "delta", "untrusted_epsilon", "bits_at_most"}); err != nil {
		return err
	}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	for _, j := range list {
		history := j.History
		if len(history) == 0 {
			history = []edge.Moment{{At: j.Last, Rounds: j.Contributed, Up: j.Up, Down: j.Down}}
		}
		for i, m := range history {
			at := ""
			if m.At > 0 {
				at = time.Unix(m.At, 0).UTC().Format(time.RFC3339)
			}
			row := []string{plainCell(j.Name), j.ID, at, strconv.FormatUint(m.Rounds, 10), strconv.FormatUint(j.Promised, 10),
				strconv.FormatInt(m.Up, 10), strconv.FormatInt(m.Down, 10), "", "", "", ""}
			if i == len(history)-1 { // what all of it costs
				row[7], row[8], row[9], row[10] = number(j.Epsilon), number(&j.Delta), number(j.Untrusted), number(j.Bits)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
