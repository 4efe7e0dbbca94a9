package wire

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// JobsPath is where a coordinator of several jobs lists those that are open, to anyone who asks;
// each is below JobPath and its name.
const (
	JobsPath = "/v1/jobs"
	JobPath  = "/jobs/"
)

// Limits of that answer.
const (
	MaxOffers   = 64
	MaxOffersIn = MaxOffers * 512 // bytes
	maxJobName  = 40
)

// An Offer is one job that a device of the fleet may take part in.
type Offer struct {
	Name      string `json:"name"`
	Pool      string `json:"pool"`                // whose devices it asks for
	Task      string `json:"task"`                // TaskID, in hexadecimal
	Authority string `json:"authority,omitempty"` // as Token has it, in hexadecimal
}

// Offers are a coordinator's answer.
type Offers struct {
	Jobs []Offer `json:"jobs"`
}

// OfferOf returns the offer of a job that a token leads to.
func OfferOf(name, pool string, t Token) Offer {
	return Offer{Name: name, Pool: pool, Task: hex.EncodeToString(t.Task), Authority: hex.EncodeToString(t.Authority)}
}

// Token leads to the job at the coordinator that the fleet's token leads to, with the fleet's
// secret, and to this job alone: whatever is offered names no other address.
func (o Offer) Token(fleet Token) (Token, error) {
	name := o.Name != "" && len(o.Name) <= maxJobName && o.Name[0] != '-'
	for _, r := range o.Name {
		name = name && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-')
	}
	if !name {
		return Token{}, fmt.Errorf("wire: offered job: name %.80q, want up to %d letters a to z, digits and -", o.Name, maxJobName)
	}
	t := Token{URL: strings.TrimRight(fleet.URL, "/") + JobPath + o.Name, Pin: fleet.Pin, Secret: fleet.Secret}
	var err error
	if t.Task, err = hex.DecodeString(o.Task); err != nil || len(t.Task) != 32 {
		return Token{}, fmt.Errorf("wire: offered job %s: task %.80q, want 64 hexadecimal digits", o.Name, o.Task)
	}
	if t.Authority, err = hex.DecodeString(o.Authority); err != nil {
		return Token{}, fmt.Errorf("wire: offered job %s: authority %.80q, want 64 hexadecimal digits or none", o.Name, o.Authority)
	}
	return t, t.Validate()
}
