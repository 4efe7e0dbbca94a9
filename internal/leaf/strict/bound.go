package strict

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file, several times what any of ours needs. The parser recurses into what is
// nested, keeps each value's path and compares each key with those beside it, so that its
// work grows with the square of depth and of keys; the decoder computes what an alias
// stands for each time anew. Neither has a limit of its own.
const (
	// MaxBytes is the largest size of a file.
	MaxBytes = 128 << 10

	maxDepth  = 32
	maxTokens = 1 << 15 // words and marks
	maxKeys   = 1 << 11
	maxValues = 1 << 15 // with those that aliases stand for
	maxShown  = 1 << 12 // words and marks of a file whose lines an error shows: the library joins all of them for it
)

var errBound = errors.New("YAML")

// fail is an error of the library, with the lines around it where there are few.
func fail(err error, tokens int) error {
	err = plain(err)
	var e yaml.Error
	if tokens > maxShown && errors.As(err, &e) {
		return errors.New(e.FormatError(false, false)) // without what it is of, which it would show
	}
	return fmt.Errorf("%w", err)
}

func refuse(line int, format string, a ...any) error {
	if line > 0 {
		return fmt.Errorf("%w, line %d: %s", errBound, line, fmt.Sprintf(format, a...))
	}
	return fmt.Errorf("%w: %s", errBound, fmt.Sprintf(format, a...))
}

// bounded refuses a file that would cost its parser or its decoder too much, or that has
// more than one document. It comes before both: first its length is looked at, then its
// tokens, which take time and memory linear in it, then the tree. It returns that, what its
// anchors name, and how many tokens there are.
func bounded(b []byte) (body ast.Node, anchors map[string]ast.Node, tokens int, err error) {
	if len(b) > MaxBytes {
		return nil, nil, 0, refuse(0, "%d bytes, the limit is %d", len(b), MaxBytes)
	}
	all := lexer.Tokenize(string(b))
	if err := checkTokens(all); err != nil {
		return nil, nil, len(all), err
	}
	f, err := parser.Parse(all, 0)
	if err != nil {
		return nil, nil, len(all), fail(err, len(all))
	}
	e := expansion{anchors: map[string]int{}, at: map[string]ast.Node{}}
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if _, err := e.values(doc.Body, 0); err != nil {
			return nil, nil, len(all), err
		}
		body = doc.Body
	}
	return body, e.at, len(all), nil
}

// checkTokens bounds number and depth. Depth is counted generously: each open bracket, each
// line that begins further right than the one it is under, and each dash or key that
// opens a list or a mapping on the line of another.
func checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return refuse(0, "%d words and marks, the limit is %d", len(tokens), maxTokens)
	}
	var columns []int // at which blocks begin that are open, each further right than the one before
	flow, keys, line := 0, 0, 0
	for _, t := range tokens {
		at := t.Position
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.MappingValueType, token.MappingKeyType:
			if keys++; keys > maxKeys {
				return refuse(at.Line, "more than %d keys", maxKeys)
			}
		case token.DocumentHeaderType:
			if line > 0 {
				return refuse(at.Line, "a second document; a file has one")
			}
		}
		opens := t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType || t.Type == token.MappingValueType
		if at.Line != line || opens {
			if at.Line != line {
				for len(columns) > 0 && columns[len(columns)-1] > at.Column {
					columns = columns[:len(columns)-1]
				}
			}
			if len(columns) == 0 || columns[len(columns)-1] < at.Column {
				columns = append(columns, at.Column)
			}
		}
		line = at.Line
		if flow+len(columns) > maxDepth {
			return refuse(at.Line, "nested more than %d deep", maxDepth)
		}
	}
	return nil
}

// expansion counts the values that a tree stands for once its aliases are followed.
type expansion struct {
	anchors map[string]int      // values of each, by name
	at      map[string]ast.Node // and what it names
}

// values counts those of a node. Aliases stand for what came before them, and a name for
// one anchor: the count does then not depend on the order in which a decoder goes.
func (e *expansion) values(n ast.Node, depth int) (int, error) {
	if depth > 4*maxDepth { // an anchor, a tag and an entry may stand around each value
		return 0, refuse(line(n), "nested more than %d deep", maxDepth)
	}
	total := 1
	add := func(children ...ast.Node) error {
		for _, c := range children {
			if c == nil {
				continue
			}
			k, err := e.values(c, depth+1)
			if err != nil {
				return err
			}
			if total += k; total > maxValues {
				return refuse(line(c), "aliases expand to more than %d values", maxValues)
			}
		}
		return nil
	}
	var err error
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := add(v); err != nil {
				return 0, err
			}
		}
	case *ast.MappingValueNode:
		err = add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		err = add(n.Value)
	case *ast.SequenceNode:
		err = add(n.Values...)
	case *ast.TagNode:
		err = add(n.Value)
	case *ast.AnchorNode:
		name := nameOf(n.Name)
		if _, twice := e.anchors[name]; twice {
			return 0, refuse(line(n), "a second anchor %.40s", name)
		}
		if err := add(n.Value); err != nil {
			return 0, err
		}
		e.anchors[name], e.at[name] = total, n.Value
	case *ast.AliasNode:
		name := nameOf(n.Value)
		values, known := e.anchors[name]
		if !known {
			return 0, refuse(line(n), "the alias %.40s of nothing before it", name)
		}
		total += values
	}
	return total, err
}

func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
