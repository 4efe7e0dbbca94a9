package task

import (
	"fmt"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// Special tokens by which a decoder is asked for what was hidden of a document.
const (
	mostSentinels = 100 // of an objective (Wang et al. 2023: L_M)
	locations     = 501 // of a coordinate: round(500 c)
)

// sentinels are those of a tokenizer, by the number of the hidden token and of the place.
type sentinels struct {
	text, layout, end, both []int32 // <text_l>, <layout_l>, </layout_l>, <text_layout_l>
	at                      []int32 // <loc_k>
	side                    int32   // of a page, in the base's boxes
}

// newSentinels finds a tokenizer's: at least one of each objective, and all places.
func newSentinels(tok tokenizer.Tokenizer, c model.Config) (s sentinels, err error) {
	ids := map[string]int32{}
	for id := range int32(tok.VocabSize()) {
		if p := tok.Piece(id); len(p) > 1 && p[0] == '<' && p[len(p)-1] == '>' {
			ids[p] = id
		}
	}
	s.side = int32(max(1, c.T5.Boxes-1))
	for _, f := range []struct {
		name string
		to   *[]int32
		most int
	}{{"<text_%d>", &s.text, mostSentinels}, {"<layout_%d>", &s.layout, mostSentinels}, {"</layout_%d>", &s.end, mostSentinels},
		{"<text_layout_%d>", &s.both, mostSentinels}, {"<loc_%d>", &s.at, locations}} {
		for n := range f.most {
			id, there := ids[fmt.Sprintf(f.name, n)]
			if !there && (n == 0 || f.most == locations) {
				return s, fmt.Errorf("task: the base's tokenizer lacks %s, which pretraining on documents needs: starling pretrain --architecture t5 makes one that has it",
					fmt.Sprintf(f.name, n))
			}
			if !there {
				break
			}
			*f.to = append(*f.to, id)
		}
	}
	s.layout = s.layout[:min(len(s.layout), len(s.end))]
	return s, nil
}

// place is a box in four tokens.
func (s sentinels) place(box [4]int32) (out []int32) {
	for _, x := range box {
		out = append(out, s.at[(x*(locations-1)+s.side/2)/s.side])
	}
	return out
}

// hideText is TM: <text_l> and t's place give <text_l> t.
func (s sentinels) hideText(l int, id int32, box [4]int32) ([]int32, [][4]int32, []int32) {
	return append([]int32{s.text[l]}, s.place(box)...), make([][4]int32, 5), []int32{s.text[l], id}
}

// hidePlace is LM: <layout_l> t </layout_l> nowhere gives <layout_l> and t's place.
func (s sentinels) hidePlace(l int, id int32, box [4]int32) ([]int32, [][4]int32, []int32) {
	return []int32{s.layout[l], id, s.end[l]}, make([][4]int32, 3), append([]int32{s.layout[l]}, s.place(box)...)
}

// hideBoth is TLM: <text_layout_l> nowhere gives <text_layout_l> t and t's place.
func (s sentinels) hideBoth(l int, id int32, box [4]int32) ([]int32, [][4]int32, []int32) {
	return []int32{s.both[l]}, make([][4]int32, 1), append([]int32{s.both[l], id}, s.place(box)...)
}
