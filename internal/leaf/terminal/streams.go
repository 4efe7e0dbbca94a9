package terminal

import (
	"encoding/json"
	"io"
)

// Streams are a command's.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer // results only
	Stderr io.Writer // progress and errors
	JSON   bool      // one JSON value a report on Stdout

	reported bool
}

// Emit reports v: as one line of JSON if that is asked for, else through human.
func (s *Streams) Emit(v any, human func(w io.Writer) error) error {
	s.reported = true
	if s.JSON {
		return json.NewEncoder(s.Stdout).Encode(v)
	}
	return human(Plain{To: s.Stdout})
}

// Reported says that something was emitted.
func (s *Streams) Reported() bool { return s.reported }
