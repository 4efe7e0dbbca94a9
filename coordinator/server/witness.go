package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/secagg/log"
)

// Witness signs heads of a log that it has seen grow, by C2SP's tlog-witness. Its methods are for one goroutine.
type Witness struct {
	URL  string // to which /add-checkpoint is appended
	HTTP *http.Client

	known int64 // keys of the log as it knows it, where it has said so
}

// mostWitness bounds a witness's answer in bytes.
const mostWitness = 4096

// Cosign is coordinator.Config's.
func (w *Witness) Cosign(ctx context.Context, head log.Head, signed []byte, prove func(from int64) ([]log.Hash, error)) ([]byte, error) {
	for range 2 { // the first answer may be how far it knows the log
		lines, known, err := w.ask(ctx, head, signed, prove)
		if err != nil {
			return nil, err
		}
		if w.known = known; lines != nil {
			return lines, nil
		}
	}
	return nil, fmt.Errorf("server: the witness %s knows %d keys, then others", w.URL, w.known)
}

// ask sends the head with what was added since the witness saw it; without lines it says
// how many keys it knows in truth.
func (w *Witness) ask(ctx context.Context, head log.Head, signed []byte, prove func(from int64) ([]log.Hash, error)) (lines []byte, known int64, err error) {
	if w.known > head.Size {
		return nil, 0, fmt.Errorf("server: the witness %s knows %d keys, and this folder has %d: was an older copy of it put back?", w.URL, w.known, head.Size)
	}
	proof, err := prove(w.known)
	if err != nil {
		return nil, 0, err
	}
	body := fmt.Appendf(nil, "old %d\n", w.known)
	for _, h := range proof {
		body = append(append(body, base64.StdEncoding.EncodeToString(h[:])...), '\n')
	}
	body = append(append(body, '\n'), signed...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(w.URL, "/")+"/add-checkpoint", bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("server: witness: %w", err)
	}
	resp, err := w.HTTP.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("server: witness: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostWitness))
	if err != nil {
		return nil, 0, fmt.Errorf("server: witness: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if len(answer) == 0 {
			return nil, 0, fmt.Errorf("server: the witness %s answers nothing", w.URL)
		}
		return answer, head.Size, nil
	case http.StatusConflict:
		known, err := strconv.ParseInt(strings.TrimSpace(string(answer)), 10, 64)
		if err != nil || known < 0 || known == w.known {
			return nil, 0, fmt.Errorf("server: the witness %s has a conflict, and knows %.40q keys", w.URL, answer)
		}
		return nil, known, nil
	}
	return nil, 0, fmt.Errorf("server: the witness %s answers %s: %.200q", w.URL, resp.Status, answer)
}
