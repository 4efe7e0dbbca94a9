package calls

import (
	"encoding/json"

	"github.com/starling-fl/starling/data/dataset"
)

// System is said before each command by Talk.
const System = "Answer with one function call."

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Talk makes a conversation of a command: System, the command, and the call as the assistant's text. Templates that lay
// no tools out, as that of SmolLM2-135M, take no tool calls.
func Talk(e dataset.Example) (dataset.Example, error) {
	said, err := json.Marshal([]message{{"system", System}, {"user", e.Prompt}, {"assistant", e.Completion}})
	return dataset.Example{Messages: string(said), User: e.User}, err
}
