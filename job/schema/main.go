// Command schema writes the JSON Schema of the job file from package job: keys, types and defaults from the structs and
// job.Default, descriptions from the comments.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/starling-fl/starling/job"
)

func main() {
	out := flag.String("out", "schema.json", "file to write")
	src := flag.String("src", "job.go,bounds.go,training/training.go,statement/statement.go", "sources of the comments, with commas")
	flag.Parse()
	if err := write(*out, *src); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func write(out, src string) error {
	comments, err := read(src)
	if err != nil {
		return err
	}
	root, err := object(reflect.ValueOf(job.Default()), comments)
	if err != nil {
		return err
	}
	schema := append(properties{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Starling job"},
	}, root...)
	schema = append(schema, property{"required", []string{"name", "labels"}})
	compact, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return fmt.Errorf("indent: %w", err)
	}
	b.WriteByte('\n')
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// docs are comments by type and field: docs["Privacy"]["ClipNorm"]; the type's own is under "".
type docs map[string]map[string]string

func read(sources string) (docs, error) {
	d := docs{}
	for src := range strings.SplitSeq(sources, ",") {
		if err := d.read(src); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d docs) read(src string) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, src, nil, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			s, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			d[t.Name.Name] = map[string]string{"": text(g.Doc)}
			last, line := text(g.Doc), 0
			for _, field := range s.Fields.List {
				// A comment above the first of several fields is theirs together, up to an
				// empty line.
				if own := text(field.Doc); own != "" {
					last = own
				} else if line > 0 && files.Position(field.Pos()).Line > line+1 {
					last = ""
				}
				line = files.Position(field.End()).Line
				for _, n := range field.Names {
					d[t.Name.Name][n.Name] = last
				}
			}
		}
	}
	return nil
}

func text(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	return strings.Join(strings.Fields(g.Text()), " ")
}

// properties is an object whose keys keep their order.
type (
	property struct {
		key   string
		value any
	}
	properties []property
)

// MarshalJSON writes the keys in order.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, kv := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		for k, v := range []any{kv.key, kv.value} {
			part, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			if k == 1 {
				b.WriteByte(':')
			}
			b.Write(part)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func object(v reflect.Value, d docs) (properties, error) {
	var keys properties
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			return nil, fmt.Errorf("%s.%s has no key", v.Type(), f.Name)
		}
		value, err := schema(v.Field(i), d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		description := d[v.Type().Name()][f.Name]
		if description == "" {
			description = d[f.Type.Name()][""]
		}
		if description == "" {
			return nil, fmt.Errorf("%s.%s has no comment", v.Type(), f.Name)
		}
		keys = append(keys, property{name, append(value, property{"description", description})})
	}
	if v.Type() == reflect.TypeFor[job.Privacy]() { // or a word, see its UnmarshalYAML
		return properties{{"type", []string{"object", "string"}}, {"pattern", "^none$"}, {"additionalProperties", false}, {"properties", keys}}, nil
	}
	return properties{{"type", "object"}, {"additionalProperties", false}, {"properties", keys}}, nil
}

func schema(v reflect.Value, d docs) (properties, error) {
	withDefault := func(p properties) properties {
		if v.IsZero() {
			return p // the comment says what follows
		}
		return append(p, property{"default", v.Interface()})
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return properties{{"type", "string"}, {"pattern", `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
			{"default", v.Interface().(time.Duration).String()}}, nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return object(v, d)
	case reflect.String:
		return withDefault(properties{{"type", "string"}}), nil
	case reflect.Bool:
		return append(properties{{"type", "boolean"}}, property{"default", v.Bool()}), nil
	case reflect.Int, reflect.Uint64:
		return withDefault(properties{{"type", "integer"}}), nil
	case reflect.Float64:
		return withDefault(properties{{"type", "number"}}), nil
	case reflect.Slice:
		item, err := schema(reflect.New(v.Type().Elem()).Elem(), d)
		return properties{{"type", "array"}, {"items", item}}, err
	}
	return nil, fmt.Errorf("no schema for %s", v.Type())
}
