//go:build js && full

package main

import (
	"encoding/json"
	"strings"
)

// spoken is a conversation in a line: what is said in it, by all but the system.
func spoken(messages string) string {
	var list []struct {
		Role    string
		Content json.RawMessage
	}
	if json.Unmarshal([]byte(messages), &list) != nil {
		return messages
	}
	var said []string
	for _, m := range list {
		var text string
		if json.Unmarshal(m.Content, &text) != nil {
			text = string(m.Content) // parts, or a call in place of a text
		}
		if m.Role != "system" {
			said = append(said, text)
		}
	}
	return strings.Join(said, " \u2192 ")
}
