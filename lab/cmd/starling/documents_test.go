package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
)

var (
	shells   = regexp.MustCompile("(?s)```sh\n(.*?)```")
	segments = regexp.MustCompile(`\s(\|\||&&|\||&|;)(\s|$)`)
	comments = regexp.MustCompile(`(^|\s)#.*`)
	words    = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|\S)+`)
	programs = regexp.MustCompile(`(^|/)starling(-edge)?$`)
)

// printed are the command lines of the program in a document's blocks of sh, as words.
func printed(text string) (lines [][]string) {
	for _, block := range shells.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			for _, segment := range segments.Split(comments.ReplaceAllString(line, ""), -1) {
				all := words.FindAllString(segment, -1)
				if len(all) == 0 || !programs.MatchString(all[0]) {
					continue
				}
				args := all[1:]
				for i, word := range args {
					if strings.HasPrefix(word, ">") || strings.HasPrefix(word, "2>") || strings.HasPrefix(word, "<") {
						args = args[:i]
						break
					}
					args[i] = strings.Trim(word, `"'`)
				}
				lines = append(lines, args)
			}
		}
	}
	return lines
}

// Every command that README and documents print is one that the program has, with flags that it takes: what was renamed
// is found before a reader finds it.
func TestPrintedCommandsAreTaken(t *testing.T) {
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range append(files, "../../../README.md", "../../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range printed(string(text)) {
			total++
			root := command.Root(&command.App{}, newRootCmd) // anew: flags keep what they were given
			cmd, rest, err := root.Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			switch {
			case err != nil:
				t.Errorf("%s: starling %s: %v", filepath.Base(file), strings.Join(args, " "), err)
			case cmd.Hidden, cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0:
				t.Errorf("%s: starling %s: there is no such command", filepath.Base(file), strings.Join(args, " "))
			}
		}
	}
	if total < 40 {
		t.Errorf("%d commands were found", total)
	}
	t.Logf("%d commands", total)
}

func TestPrinted(t *testing.T) {
	got := printed("```sh\nbin/starling job check \"a b.yaml\" # why\necho x | starling predict \\\n  --checkpoint c >out & starling-edge doctor\nstarlings none\n```\n`starling no block`\n")
	want := [][]string{{"job", "check", "a b.yaml"}, {"predict", "--checkpoint", "c"}, {"doctor"}}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if strings.Join(got[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}
