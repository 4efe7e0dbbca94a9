package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-fl/starling/secagg/log"
)

// A witness that knows another log than is thought is asked once more, and never for ever;
// one that is nothing of the kind is an error.
func TestWitnessesThatAnswerOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string // status and body
		want    string   // part of the error; "": signed
		asked   int
	}{
		"knows nothing":    {[]string{"200 line\n"}, "", 1},
		"knows some":       {[]string{"409 4\n", "200 line\n"}, "", 2},
		"knows more":       {[]string{"409 11\n"}, "an older copy", 1},
		"changes its mind": {[]string{"409 4\n", "409 5\n", "409 6\n"}, "then others", 2},
		"repeats itself":   {[]string{"409 4\n", "409 4\n"}, "conflict", 2},
		"talks nonsense":   {[]string{"409 many\n"}, "conflict", 1},
		"says nothing":     {[]string{"200 "}, "nothing", 1},
		"refuses":          {[]string{"403 who are you"}, "who are you", 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				status, body := 500, ""
				if asked < len(c.answers) {
					fmt.Sscanf(c.answers[asked], "%d", &status)
					body = c.answers[asked][4:]
				}
				asked++
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}))
			defer at.Close()
			w := &Witness{URL: at.URL, HTTP: at.Client()}
			lines, err := w.Cosign(context.Background(), log.Head{Size: 10}, []byte("head"), func(int64) ([]log.Hash, error) { return nil, nil })
			if c.want == "" && (err != nil || string(lines) != "line\n") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || asked != c.asked {
				t.Errorf("%q, %v, asked %d times", lines, err, asked)
			}
		})
	}
}
