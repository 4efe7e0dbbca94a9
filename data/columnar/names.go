//go:build !js

package columnar

import (
	"encoding/json"
	"strconv"
)

// names are what numbers of a column stand for, as datasets keeps classes.
type names []string

func (n names) append(dst []byte, x int64) []byte {
	if x < 0 || x >= int64(len(n)) {
		return strconv.AppendInt(dst, x, 10)
	}
	out, err := json.Marshal(n[x])
	if err != nil { // not of a string
		return strconv.AppendInt(dst, x, 10)
	}
	return append(dst, out...)
}

// feature is what datasets says of a column.
type feature struct {
	Names   names    `json:"names"`
	Feature *feature `json:"feature"` // of each in a list
}

// features reads what datasets writes into a file beside its schema: the names of classes by columns' names.
func features(raw string) map[string]names {
	var d struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	found := map[string]names{}
	if json.Unmarshal([]byte(raw), &d) != nil {
		return found
	}
	for column, raw := range d.Info.Features {
		var f feature
		if json.Unmarshal(raw, &f) != nil {
			continue // of another form: a struct, a list of one
		}
		for at := &f; at != nil; at = at.Feature {
			if len(at.Names) > 0 {
				found[column] = at.Names
			}
		}
	}
	return found
}
