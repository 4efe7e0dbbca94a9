package strict

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"
)

// plain says of a value of the wrong kind what is wanted in its place, where the library
// names the program's own types.
func plain(err error) error {
	var (
		kind *yaml.TypeError
		over *yaml.OverflowError
	)
	switch {
	case errors.As(err, &kind):
		return &yaml.SyntaxError{Message: wanted(kind.Token, kind.DstType), Token: kind.Token}
	case errors.As(err, &over):
		return &yaml.SyntaxError{Message: wanted(over.Token, over.DstType) + " in range", Token: over.Token}
	}
	return err
}

func wanted(at *token.Token, of reflect.Type) string {
	what := "another kind of value"
	switch of.Kind() { //nolint:exhaustive // what is left says so
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		what = "a whole number"
		if of == reflect.TypeFor[time.Duration]() {
			what = "a duration such as 30s"
		}
	case reflect.Float32, reflect.Float64:
		what = "a number"
	case reflect.Bool:
		what = "true or false"
	case reflect.String:
		what = "a text"
	case reflect.Slice, reflect.Array:
		what = "a list"
	case reflect.Struct, reflect.Map:
		what = "keys with values"
	}
	if at == nil {
		return "want " + what
	}
	return fmt.Sprintf("%.40q is not %s", at.Value, what)
}
