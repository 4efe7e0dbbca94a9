package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Where a document or a command's help shows a token it is of the form that is printed.
func TestTokensShownAreOfTheFormPrinted(t *testing.T) {
	form, _, _ := strings.Cut(wire.Token{URL: "http://127.0.0.1"}.String(), "_")
	shown := regexp.MustCompile(`(starling\d+)_\.\.\.`)
	texts := map[string]string{}
	for _, pattern := range []string{"../../../*.md", "../../../docs/*.md", "../../../web/edge/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(b)
		}
	}
	for _, cmd := range newRootCmd(&command.App{}).Commands() {
		texts[cmd.Name()] = cmd.Long + cmd.Example
	}
	found := 0
	for name, text := range texts {
		for _, m := range shown.FindAllStringSubmatch(text, -1) {
			if found++; m[1] != form {
				t.Errorf("%s shows %s, serve prints %s_...", name, m[0], form)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d tokens are shown in %d texts", found, len(texts))
	}
}
