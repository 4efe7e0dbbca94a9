package generation

import (
	"math"
	"strings"
)

// Bounds of a JSON object that is written: a model that may write anything between tokens writes spaces for ever.
const (
	deepest    = 64 // objects and lists within each other
	mostSpaces = 20 // between two tokens
)

// object reads a JSON object (RFC 8259) byte by byte, and says what it may go on with. Its zero value is before the object.
type object struct {
	at     place
	spaces int           // read since the last byte that is none
	rest   string        // of a literal: true, false, null
	digits int           // of \u, still to come
	depth  int           // of what is open
	list   [deepest]bool // what is open: a list, or an object
	key    bool          // a string that is read is one
}

// place is where in an object the next byte is.
type place byte

const (
	inNothing  place = iota // before the object
	atFirstKey              // behind {
	atKey                   // behind a comma in an object
	atColon
	atFirstItem // behind [
	atValue
	behindValue
	inString
	inEscape
	inHex
	inLiteral
	atDigit    // behind a minus
	behindZero // of a number's beginning
	inDigits   // before a point
	atFraction // behind a point
	inFraction
	atExponent  // behind e
	atExponents // behind the exponent's sign
	inExponent
	atEnd // the object is whole
)

// whole reports whether the object has been closed.
func (o *object) whole() bool { return o.at == atEnd }

// take reads bytes, and reports whether all of them may come.
func (o *object) take(bytes []byte) bool {
	for _, b := range bytes {
		if !o.next(b) {
			return false
		}
	}
	return true
}

// mask leaves no score to tokens that may not come, and reports whether one may.
func (o *object) mask(scores []float32, vocabulary [][]byte) (left bool) {
	for id, text := range vocabulary {
		then := *o
		if len(text) > 0 && then.take(text) {
			left = true
			continue
		}
		scores[id] = float32(math.Inf(-1))
	}
	return left
}

func (o *object) next(b byte) bool {
	if o.at == inString {
		return o.inText(b)
	}
	if isSpace := b == ' ' || b == '\n' || b == '\t' || b == '\r'; isSpace && o.betweenTokens() { // none comes before the object
		o.spaces++
		return o.spaces <= mostSpaces
	}
	o.spaces = 0
	switch o.at {
	case inNothing:
		return b == '{' && o.open(false)
	case atFirstKey:
		return b == '}' && o.shut(false) || o.begins(b)
	case atKey:
		return o.begins(b)
	case atColon:
		o.at = atValue
		return b == ':'
	case atFirstItem:
		return b == ']' && o.shut(true) || o.value(b)
	case atValue:
		return o.value(b)
	case inEscape:
		if o.at = inString; b == 'u' {
			o.at, o.digits = inHex, 4
			return true
		}
		return strings.IndexByte(`"\/bfnrt`, b) >= 0
	case inHex:
		if o.digits--; o.digits == 0 {
			o.at = inString
		}
		return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
	case inLiteral:
		ok := o.rest[0] == b
		if o.rest = o.rest[1:]; o.rest == "" {
			o.at = behindValue
		}
		return ok
	case behindValue:
		return o.behind(b)
	case atEnd:
		return false
	}
	return o.number(b)
}

// betweenTokens reports whether white space may come; behind a number it ends the number.
func (o *object) betweenTokens() bool {
	switch o.at {
	case behindZero, inDigits, inFraction, inExponent:
		o.at = behindValue
	case inNothing, inEscape, inHex, inLiteral, atDigit, atFraction, atExponent, atExponents, atEnd:
		return false
	}
	return true
}

// open begins a list or an object.
func (o *object) open(list bool) bool {
	if o.depth == deepest {
		return false
	}
	o.list[o.depth] = list
	o.depth++
	if o.at = atFirstKey; list {
		o.at = atFirstItem
	}
	return true
}

// shut ends what is open, if it is that.
func (o *object) shut(list bool) bool {
	if o.list[o.depth-1] != list {
		return false
	}
	o.depth--
	if o.at = behindValue; o.depth == 0 {
		o.at = atEnd
	}
	return true
}

// begins reads the quote before a key.
func (o *object) begins(b byte) bool {
	o.at, o.key = inString, true
	return b == '"'
}

func (o *object) value(b byte) bool {
	switch b {
	case '{', '[':
		return o.open(b == '[')
	case '"':
		o.at, o.key = inString, false
	case 't', 'f', 'n':
		o.at, o.rest = inLiteral, map[byte]string{'t': "rue", 'f': "alse", 'n': "ull"}[b]
	case '-':
		o.at = atDigit
	case '0':
		o.at = behindZero
	default:
		o.at = inDigits
		return isDigit(b)
	}
	return true
}

// behind reads what comes behind a value.
func (o *object) behind(b byte) bool {
	switch list := o.list[o.depth-1]; {
	case b == ',' && list:
		o.at = atValue
	case b == ',':
		o.at = atKey
	default:
		return (b == ']' || b == '}') && o.shut(b == ']')
	}
	return true
}

func (o *object) inText(b byte) bool {
	switch {
	case b == '\\':
		o.at = inEscape
	case b == '"' && o.key:
		o.at = atColon
	case b == '"':
		o.at = behindValue
	}
	return b >= ' '
}

// number reads on in a number.
func (o *object) number(b byte) bool {
	digit, point, e := isDigit(b), b == '.', b == 'e' || b == 'E'
	switch at := o.at; {
	case at == atDigit && b == '0':
		o.at = behindZero
	case at == atDigit:
		o.at = inDigits
		return digit
	case at == inDigits && digit, at == inFraction && digit, at == inExponent && digit:
	case (at == behindZero || at == inDigits) && point:
		o.at = atFraction
	case (at == behindZero || at == inDigits || at == inFraction) && e:
		o.at = atExponent
	case at == atFraction:
		o.at = inFraction
		return digit
	case at == atExponent && (b == '+' || b == '-'):
		o.at = atExponents
	case at == atExponent || at == atExponents:
		o.at = inExponent
		return digit
	default:
		o.at = behindValue
		return o.behind(b)
	}
	return true
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
