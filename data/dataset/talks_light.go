//go:build js && !full

package dataset

import (
	"encoding/json"
	"errors"
)

// The page's light build learns from no conversations: it loads the full one for a job that does.

func talks(func(string) json.RawMessage, string) bool { return false }

func parseTalk([]string, func(string) json.RawMessage) (labelled, error) {
	return labelled{}, errUnlearnt
}

func (Columns) written([]string) bool { return false }

func writtenRow(_, _ []string) (labelled, error) { return labelled{}, errUnlearnt }

var errUnlearnt = errors.New("it is a conversation, which this build does not read")
