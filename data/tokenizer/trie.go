package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
)

// trie finds all pieces that a text begins with.
type trie struct {
	root  [256]int32 // node by first byte, 0: none
	nodes []trieNode // 0 is no node
	bytes []byte     // labels of all children, those of a node side by side in order
	child []int32    // the nodes they lead to
}

type trieNode struct {
	id          int32 // of the piece that ends here, -1: none
	first, past int32 // children are bytes[first:past]
}

// prefixes calls f with the length and id of every piece that s begins with,
// shortest first.
func (t *trie) prefixes(s []byte, f func(n int, id int32)) {
	if len(s) == 0 {
		return
	}
	at := t.root[s[0]]
	for i := 1; at != 0; i++ {
		node := &t.nodes[at]
		if node.id >= 0 {
			f(i, node.id)
		}
		if i == len(s) {
			return
		}
		at = 0
		labels := t.bytes[node.first:node.past]
		if len(labels) > 8 {
			if k, ok := slices.BinarySearch(labels, s[i]); ok {
				at = t.child[int(node.first)+k]
			}
			continue
		}
		for k, b := range labels {
			if b == s[i] {
				at = t.child[int(node.first)+k]
				break
			}
		}
	}
}

// trieBuilder collects the pieces of a trie.
type trieBuilder struct{ words []trieWord }

type trieWord struct {
	text string
	id   int32
}

func (b *trieBuilder) add(text string, id int32) { b.words = append(b.words, trieWord{text, id}) }

// maxTrie bounds the nodes: a piece adds at most one for each of its bytes.
const maxTrie = 1 << 24

// build makes the trie; two equal pieces are refused. The children of a node come to
// lie side by side as nodes are expanded one after the other.
func (b *trieBuilder) build() (*trie, error) {
	slices.SortFunc(b.words, func(x, y trieWord) int { return cmp.Compare(x.text, y.text) })
	total := 0
	for i, w := range b.words {
		if i > 0 && w.text == b.words[i-1].text {
			return nil, fmt.Errorf("%w: piece %.40q has ids %d and %d", ErrVocab, w.text, b.words[i-1].id, w.id)
		}
		total += len(w.text)
	}
	if total > maxTrie {
		return nil, fmt.Errorf("%w: the pieces have %d bytes in all, the limit is %d", ErrVocab, total, maxTrie)
	}
	t := &trie{nodes: make([]trieNode, 1, len(b.words)+1)}
	type span struct {
		node   int32
		words  []trieWord
		depth  int
		nested int // pieces that end on the way here
	}
	var open []span
	split := func(words []trieWord, depth, nested int, take func(label byte, node int32)) {
		for len(words) > 0 {
			label := words[0].text[depth]
			n := 1
			for n < len(words) && words[n].text[depth] == label {
				n++
			}
			node := int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{id: -1})
			take(label, node)
			open = append(open, span{node, words[:n], depth + 1, nested})
			words = words[n:]
		}
	}
	split(b.words, 0, 0, func(label byte, node int32) { t.root[label] = node })
	for len(open) > 0 {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		words := s.words
		if len(words[0].text) == s.depth { // the shortest sorts first
			t.nodes[s.node].id = words[0].id
			if s.nested++; s.nested > maxNested {
				return nil, fmt.Errorf("%w: %d pieces begin piece %.40q and one another, the limit is %d", ErrVocab, s.nested, words[0].text, maxNested)
			}
			words = words[1:]
		}
		first := int32(len(t.bytes))
		split(words, s.depth, s.nested, func(label byte, node int32) {
			t.bytes, t.child = append(t.bytes, label), append(t.child, node)
		})
		t.nodes[s.node].first, t.nodes[s.node].past = first, int32(len(t.bytes))
	}
	return t, nil
}
