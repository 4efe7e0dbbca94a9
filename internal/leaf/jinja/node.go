package jinja

// A node is a part of a template: an expression or a statement.
type node struct {
	op   op
	line int
	text string // name, operator or text
	lit  value
	kids []node // by op, see there
	else_,
	body []node
	names []string
	args  *arguments
	flag  bool
}

type op uint8

// Statements, and what their nodes hold.
const (
	opText       op = iota // text
	opPrint                // kids[0]
	opIf                   // kids[0], body, else_
	opFor                  // names, kids[0] what is gone over, kids[1] a condition where there is one, body, else_
	opSet                  // kids[0] the target, a list of several, kids[1] its value
	opMacro                // text its name, names and kids its parameters and their values where they have some, body
	opBreak                //
	opContinue             //
	opGeneration           // body
	opWith                 // names, kids their values, body
)

// Expressions.
const (
	opLiteral  op = iota + 20 // lit
	opName                    // text
	opList                    // kids; flag: a tuple
	opDict                    // kids: key, value, key, value
	opAttr                    // kids[0], text
	opItem                    // kids[0], kids[1]
	opSlice                   // kids[0], and from, to and step, each opNone where it is not given
	opNone                    // nothing
	opCall                    // kids[0], args; body[0]: the macro that a call block hands over
	opFilter                  // kids[0], text, args
	opTest                    // kids[0], text, args; flag: is not
	opUnary                   // text, kids[0]
	opBinary                  // text, kids[0], kids[1]
	opCompare                 // kids[0], and names and kids of what it is compared with, in turn
	opChoose                  // kids: value, condition, other
	opCaptured                // what body writes
)

// arguments are those of a call, a filter or a test.
type arguments struct {
	list  []node
	named []string
	by    []node // of the names
	lists []node // *x: each a list of further arguments
	dicts []node // **x: each a mapping of further names
}
