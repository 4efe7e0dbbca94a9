package jinja

import (
	"reflect"
	"strings"
)

// comparison is what two values may be asked.
type comparison func(r *run, x, y value) (bool, error)

// compares are comparisons by sign and by the name of a test.
var compares = map[string]comparison{
	"==": same, "eq": same, "equalto": same, "!=": other, "ne": other,
	"<": less, "lt": less, "lessthan": less, ">": more, "gt": more, "greaterthan": more,
	"<=": atMost, "le": atMost, ">=": atLeast, "ge": atLeast,
	"in": (*run).in, "not in": notIn, "divisibleby": divisible, "sameas": identical,
}

func same(r *run, x, y value) (bool, error) { return r.equal(x, y) }

func other(r *run, x, y value) (bool, error) {
	is, err := r.equal(x, y)
	return !is, err
}

// identical reports whether two values are one, as Python's is.
func identical(r *run, x, y value) (bool, error) {
	switch x := x.(type) {
	case *list:
		l, is := y.(*list)
		return is && l == x, nil
	case *Dict:
		d, is := y.(*Dict)
		return is && d == x, nil
	case *space:
		s, is := y.(*space)
		return is && s == x, nil
	}
	if reflect.TypeOf(x) != reflect.TypeOf(y) {
		return false, nil
	}
	return r.equal(x, y)
}

func less(r *run, x, y value) (bool, error) {
	o, err := r.order(x, y)
	return o < 0, err
}

func more(r *run, x, y value) (bool, error) { return less(r, y, x) }

func atMost(r *run, x, y value) (bool, error) {
	o, err := r.order(x, y)
	return o <= 0, err
}

func atLeast(r *run, x, y value) (bool, error) { return atMost(r, y, x) }

func notIn(r *run, x, y value) (bool, error) {
	is, err := r.in(x, y)
	return !is, err
}

func divisible(r *run, x, y value) (bool, error) {
	v, err := r.arithmetic("%", x, y)
	return err == nil && !truth(v), err
}

// test says what `x is name` says.
func (r *run) test(name string, x value, a given) (bool, error) {
	if err := r.charge(len(name)); err != nil {
		return false, err
	}
	if f := compares[name]; f != nil && name != "not in" {
		if len(a.list) != 1 {
			return false, r.fail("test %s takes one argument", name)
		}
		return f(r, x, a.list[0])
	}
	if len(a.list) > 0 {
		return false, r.fail("test %.40q takes no argument here", name)
	}
	_, n, isWhole, isNumber := number(x)
	_, isBool := x.(bool)
	switch name {
	case "defined", "undefined":
		_, un := x.(undefined)
		return un == (name == "undefined"), nil
	case "none":
		return x == nil, nil
	case "true":
		return x == true, nil
	case "false":
		return x == false, nil
	case "boolean":
		return isBool, nil
	case "string":
		_, is := x.(string)
		return is, nil
	case "number":
		return isNumber, nil
	case "integer":
		return isNumber && isWhole && !isBool, nil
	case "float":
		_, is := x.(float64)
		return is, nil
	case "mapping":
		_, is := x.(*Dict)
		return is, nil
	case "iterable", "sequence":
		switch x.(type) {
		case string, *list, *Dict:
			return true, nil
		case undefined:
			return true, nil
		}
		return false, nil
	case "lower", "upper":
		s, err := r.text(x)
		if err == nil {
			err = r.charge(lowerCost * len(s))
		}
		made := strings.ToLower
		if name == "upper" {
			made = strings.ToUpper
		}
		return made(s) == s && strings.ToLower(s) != strings.ToUpper(s), err
	case "callable":
		_, is := x.(function)
		return is, nil
	case "odd", "even":
		if !isNumber || !isWhole {
			return false, r.fail("%s is neither odd nor even", kindOf(x))
		}
		return (n%2 == 0) == (name == "even"), nil
	}
	return false, r.fail("test %.40q is not known here", name)
}
