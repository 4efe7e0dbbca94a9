// Command typescript writes the TypeScript types of what the coordinator's HTTP
// endpoints answer and of what a device tells its page, from the Go structs
// themselves, the sentence of whom a page's user trusts, and the charts' colours. It runs in package
// web's folder, by make generate.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"image/color"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/palette"
	"github.com/starling-fl/starling/web/client"
)

// files are what is written, each with the types it begins with; what they hold
// follows.
var files = map[string][]any{
	"src/api.ts": {coordinator.About{}, monitor.Status{}, monitor.PublicStatus{}, monitor.Overview{}, monitor.RoundRecord{}, monitor.Occurrence{},
		server.Invitation{}, server.FleetPage{}, server.Paused{}, server.Begun{}, server.Acts{}, server.Added{}, server.Invited{}, server.JobLine{}, jobs.Total{}, store.Invitation{}, store.Operator{},
		coordinator.Forecast{}, coordinator.Check{}},
	"edge/src/event.ts":  {edge.Event{}},
	"edge/src/client.ts": {client.Preview{}, client.Given{}, client.Prediction{}, client.Quote{}, client.Limits{}, client.Failed},
}

// sample names the classes of the built-in samples, for a page to tell whether one fits.
const sample = "src/sample.ts"

// paletteFile is of the colours and dashes of every chart's series.
const paletteFile = "src/palette.ts"

// trust is whom the user of a page trusts, word for word as package edge says it.
const trust = "edge/src/trust.ts"

func main() {
	log.SetFlags(0)
	for name, types := range files {
		g := generator{seen: map[reflect.Type]bool{}, commented: strings.HasPrefix(name, "edge/")}
		for _, t := range types {
			g.named(reflect.TypeOf(t))
		}
		write(name, "the Go structs", strings.Join(g.decls, "\n"))
	}
	digits, err := dataset.Digits(1, "train", 1, 1)
	if err != nil {
		log.Fatal(err)
	}
	spoken, err := dataset.Spoken(1, "train", 1, 1)
	if err != nil {
		log.Fatal(err)
	}
	write(sample, "package dataset", "/** The classes of the built-in samples. */\nexport const sampleLabels = {\n  texts: "+list(dataset.InvoiceLabels())+
		",\n  pictures: "+list(digits.Labels)+",\n  recordings: "+list(spoken.Labels)+",\n};\n")
	write(paletteFile, "package palette", "/** The colours of a chart's series, in their order. */\nexport const palette = {\n  light: "+
		colours(func(c palette.Colour) color.RGBA { return c.Light })+",\n  dark: "+colours(func(c palette.Colour) color.RGBA { return c.Dark })+",\n};\n\n"+
		"/** Where there are more series than colours these begin anew, with the next pattern of lines: pixels drawn and left out. */\n"+
		"export const dashes: number[][] = "+dashes()+";\n")
	write(trust, "package edge", fmt.Sprintf("/** Whom a browser's user trusts, to be shown before joining. */\nexport const browserTrust =\n  %q;\n", edge.BrowserTrust))
}

func list(words []string) string { return strings.ReplaceAll(fmt.Sprintf("%q", words), `" "`, `", "`) }

// colours lists one ground's as CSS writes them.
func colours(of func(palette.Colour) color.RGBA) string {
	var list []string
	for _, c := range palette.Series {
		rgb := of(c)
		list = append(list, fmt.Sprintf("\"#%02x%02x%02x\"", rgb.R, rgb.G, rgb.B))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// dashes lists the patterns of lines; a whole one is an empty list.
func dashes() string {
	var list []string
	for _, d := range palette.Dashes {
		list = append(list, "["+strings.Trim(strings.ReplaceAll(fmt.Sprint(d), " ", ", "), "[]")+"]")
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func write(name, from, text string) {
	text = "// Generated from " + from + " by make generate. Not to be edited.\n\n" + text
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}
}

type generator struct {
	seen      map[reflect.Type]bool
	decls     []string
	commented bool // as the npm package's users read them
}

// documented is a type's own comment and those of its fields, as its source has them.
func (g *generator) documented(t reflect.Type) (own string, fields map[string]string) {
	fields = map[string]string{}
	if !g.commented {
		return "", fields
	}
	for _, file := range g.sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, spec := range decl.Specs {
				named, ok := spec.(*ast.TypeSpec)
				if !ok || named.Name.Name != t.Name() {
					continue
				}
				own = cmp.Or(named.Doc.Text(), decl.Doc.Text())
				if s, ok := named.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, name := range f.Names {
							fields[name.Name] = cmp.Or(f.Doc.Text(), f.Comment.Text())
						}
					}
				}
			}
			return true
		})
	}
	return own, fields
}

// comment writes a Go comment as TypeScript has it.
func comment(b *strings.Builder, indent, text string) {
	switch lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "*/", "* /"), "\n"); {
	case lines[0] == "":
	case len(lines) == 1:
		fmt.Fprintf(b, "%s/** %s */\n", indent, lines[0])
	default:
		fmt.Fprintf(b, "%s/**\n", indent)
		for _, line := range lines {
			fmt.Fprintf(b, "%s\n", strings.TrimRight(indent+" * "+line, " "))
		}
		fmt.Fprintf(b, "%s */\n", indent)
	}
}

// union declares a string type as its constants, once, and returns its name.
func (g *generator) union(t reflect.Type) string {
	if g.seen[t] {
		return t.Name()
	}
	g.seen[t] = true
	var b, said strings.Builder
	own, _ := g.documented(t)
	for _, file := range g.sources(t) {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, spec := range decl.Specs {
				v := spec.(*ast.ValueSpec)
				if of, ok := v.Type.(*ast.Ident); !ok || of.Name != t.Name() {
					continue
				}
				name := v.Values[0].(*ast.BasicLit).Value
				fmt.Fprintf(&b, "\n  | %s", name)
				if about := strings.TrimSpace(cmp.Or(v.Doc.Text(), v.Comment.Text())); about != "" {
					fmt.Fprintf(&said, "\n- `%s`: %s", strings.Trim(name, `"`), about)
				}
			}
		}
	}
	if b.Len() == 0 {
		log.Fatalf("%v has no constants", t)
	}
	var out strings.Builder
	comment(&out, "", strings.TrimSpace(own)+"\n"+said.String())
	fmt.Fprintf(&out, "export type %s =%s;\n", t.Name(), b.String())
	g.decls = append(g.decls, out.String())
	return t.Name()
}

// sources are the files of a type's package.
func (g *generator) sources(t reflect.Type) (parsed []*ast.File) {
	dir := filepath.Join("..", strings.TrimPrefix(t.PkgPath(), "github.com/starling-fl/starling/"))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			log.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	return parsed
}

// named declares a struct once and returns its name.
func (g *generator) named(t reflect.Type) string {
	if t.Kind() == reflect.String {
		return g.union(t)
	}
	if g.seen[t] {
		return t.Name()
	}
	g.seen[t] = true
	at := len(g.decls)
	g.decls = append(g.decls, "") // before the types it holds
	var b strings.Builder
	own, _ := g.documented(t)
	comment(&b, "", own)
	fmt.Fprintf(&b, "export interface %s {\n", t.Name())
	g.fields(&b, t)
	b.WriteString("}\n")
	g.decls[at] = b.String()
	return t.Name()
}

func (g *generator) fields(b *strings.Builder, t reflect.Type) {
	_, said := g.documented(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			g.fields(b, f.Type)
			continue
		}
		if name == "" {
			log.Fatalf("%s.%s has no name in JSON", t.Name(), f.Name)
		}
		mark := ""
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			mark = "?"
		}
		typed := g.typed(f.Type)
		if mark != "" {
			typed = strings.TrimSuffix(typed, " | null") // left out instead
		}
		comment(b, "  ", said[f.Name])
		fmt.Fprintf(b, "  %s%s: %s;\n", name, mark, typed)
	}
}

// typed is the TypeScript type of a Go type as encoding/json writes it.
func (g *generator) typed(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "number"
	}
	if t == reflect.TypeFor[time.Time]() || t.Implements(reflect.TypeFor[fmt.Stringer]()) && t.Kind() == reflect.String {
		return "string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		if g.commented && t.Name() != "string" {
			return g.union(t)
		}
		return "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Pointer:
		return g.typed(t.Elem()) + " | null"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string" // base64
		}
		elem := g.typed(t.Elem())
		if strings.Contains(elem, " ") {
			elem = "(" + elem + ")"
		}
		return elem + "[]"
	case reflect.Map:
		return "Record<string, " + g.typed(t.Elem()) + ">"
	case reflect.Struct:
		return g.named(t)
	}
	log.Fatalf("no TypeScript type for %v", t)
	return ""
}
