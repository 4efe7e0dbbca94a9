package exposure

import (
	"context"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp/audit/memorization"
	"github.com/starling-fl/starling/model"
)

// Disclosed counts a model's answers when documents of others are asked for something that they do
// not print and that names a provider, such as a tax number (Tito et al. 2023, appendix D.1.4): how
// often the answer is a member's, letter for letter, and as a control how often it is another
// non-member's.
type Disclosed struct {
	Key         string `json:"key"`
	Documents   int    `json:"documents"`
	Secrets     int    `json:"members_values"` // different ones that could have been said
	Said        int    `json:"said_a_members"`
	Distinct    int    `json:"distinct"` // different ones among those said
	SaidOthers  int    `json:"said_an_others"`
	BaseSaid    int    `json:"base_said_a_members"`
	OthersValue int    `json:"others_values"`
}

// mostAsked documents of one provider (as the paper's 5).
const mostAsked = 5

// Disclose asks for a key.
func (s *subject) Disclose(ctx context.Context, p *People, key string) (d Disclosed, err error) {
	d.Key = key
	var questions []string
	for _, e := range p.Examples {
		if e.Key == key {
			questions = append(questions, e.Question)
		}
	}
	v := p.valuesOf(key)
	d.Secrets, d.OthersValue = len(v.members), len(v.others)
	if len(questions) == 0 {
		return d, nil
	}
	documents, of := distinct(p.Examples)
	done, asked := map[int]bool{}, map[string]int{}
	var ask []dataset.Example
	var owns [][]string
	for i, at := range of {
		if who := p.Owner[i]; p.Member[i] || done[at] || asked[who] == mostAsked {
			continue
		}
		done[at] = true
		e := documents[at]
		own := p.answersOf(p.Owner[i], key)
		if _, found, _ := memorization.Redact(e, own); found || len(own) == 0 {
			continue // it is printed, or nobody knows
		}
		asked[p.Owner[i]]++
		e.Question = questions[len(ask)%len(questions)]
		ask, owns = append(ask, e), append(owns, own)
	}
	d.Documents = len(ask)
	distinctly := map[string]bool{}
	for base, a := range map[bool]*model.Adapter{false: s.Checkpoint.Adapter, true: s.Start} {
		slice := a.Slice(s.Rank)
		answers, err := inChunks(s.Progress, "documents asked for a "+key, ask, func(some []dataset.Example) ([]string, error) {
			replies, err := s.examiner.Replies(ctx, slice, s.Rank, some)
			var out []string
			for _, r := range replies {
				out = append(out, said(r.Text))
			}
			return out, err
		})
		if err != nil {
			return d, err
		}
		for i, x := range answers {
			if x == "" || strings.Contains(strings.ToLower(ask[i].Text), x) {
				continue
			}
			switch member, other := v.whose(x, owns[i]); {
			case member && base:
				d.BaseSaid++
			case member:
				d.Said++
				distinctly[x] = true
			case other && !base:
				d.SaidOthers++
			}
		}
	}
	d.Distinct = len(distinctly)
	return d, nil
}

// values are the answers to questions for one key: members' alone, and others'. What a member
// has in common with another, its country say, is nobody's to disclose.
type values struct{ members, others map[string]bool }

func (p *People) valuesOf(key string) values {
	v := values{map[string]bool{}, map[string]bool{}}
	for i, e := range p.Examples {
		if e.Key != key {
			continue
		}
		for _, a := range e.Answers {
			if p.Member[i] {
				v.members[said(a)] = true
			} else {
				v.others[said(a)] = true
			}
		}
	}
	for a := range v.others {
		delete(v.members, a)
	}
	return v
}

// whose reports whether an answer to an other who has these of its own is a member's, or another
// other's.
func (v values) whose(answer string, own []string) (member, other bool) {
	mine := slices.ContainsFunc(own, func(a string) bool { return said(a) == answer })
	return v.members[answer], v.others[answer] && !mine
}

// answersOf are a provider's answers to questions for a key.
func (p *People) answersOf(who, key string) (out []string) {
	for i, e := range p.Examples {
		if p.Owner[i] == who && e.Key == key {
			out = append(out, e.Answers...)
		}
	}
	return out
}

func said(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
