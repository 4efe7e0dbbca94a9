package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
)

// tutorialBase is the model that the tutorial fetches.
const tutorialBase = "HuggingFaceTB/SmolLM2-135M-Instruct"

// smallChat is SmolLM2's template.
const smallChat = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|endoftext|>' + '\n'}}{% endfor %}" +
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// tutorialFiles are what the hub has of the model: those of the folder STARLING_SMOLLM2, or a made decoder of one layer.
func tutorialFiles(t *testing.T) (files map[string][]byte, real bool) {
	if dir := os.Getenv("STARLING_SMOLLM2"); dir != "" {
		files = map[string][]byte{}
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				files[path], err = os.ReadFile(filepath.Join(dir, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files, true
	}
	b := tiny.Decoder(t, 16, 512)
	b.Config.Decoder.Chat.Template = smallChat
	files, err := model.Release{Base: b}.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files, false
}

// heard is what a command writes, while it writes.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *heard) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *heard) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// The tutorial's commands run as they are printed, in its order, in an empty folder: the hub is one of this test, and the
// coordinator listens where there is room. With STARLING_SMOLLM2 the model is the published one, and it learns.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile("../../../docs/TUTORIAL.md")
	if err != nil {
		t.Fatal(err)
	}
	files, real := tutorialFiles(t)
	limit := 3 * time.Minute
	if real {
		limit = time.Hour
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	home := t.TempDir()
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "HF_HUB_CACHE="+filepath.Join(home, "hub"),
		"HF_HUB_OFFLINE=", "HF_TOKEN=", "HF_ENDPOINT="+smallHub(t, tutorialBase, files).URL)
	dir := t.TempDir()
	var waiting []func() error
	ran, exact := 0, []string{}
	for _, block := range shells.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			line = strings.ReplaceAll(line, "starling serve ", "starling serve --listen 127.0.0.1:0 ")
			serves, joins := strings.HasPrefix(line, "starling serve"), strings.HasPrefix(line, "starling-edge join")
			if strings.HasPrefix(line, "starling evaluate") {
				for _, wait := range slices.Backward(waiting) { // a device that gives up keeps the coordinator waiting
					if err := wait(); err != nil {
						t.Fatal(err)
					}
				}
				waiting = nil
			}
			ran++
			out, began, shell := new(heard), time.Now(), line
			if serves || joins {
				shell = "exec " + line // so that the end of ctx ends it, too
			}
			cmd := exec.CommandContext(ctx, "sh", "-c", shell)
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
			cmd.WaitDelay = time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wait := func() error {
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
					return err
				}
				t.Logf("%s (%.0f s)\n%s", line, time.Since(began).Seconds(), out)
				return nil
			}
			switch {
			case serves:
				for !strings.Contains(out.String(), "starling2_") && ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				waiting = append(waiting, wait)
			case joins:
				waiting = append(waiting, wait)
			default:
				if wait() != nil {
					t.FailNow()
				}
			}
			if m := regexp.MustCompile(`exact match ([0-9.]+) %`).FindStringSubmatch(out.String()); m != nil {
				exact = append(exact, m[1])
			}
		}
	}
	if ran < 15 || len(exact) != 2 {
		t.Fatalf("%d commands ran, exact matches %q", ran, exact)
	}
	before, err := strconv.ParseFloat(exact[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	// It came to 52.5 of a hundred; of 40 commands a quarter is more than three standard deviations below.
	if after, err := strconv.ParseFloat(exact[1], 64); err != nil || real && after < before+25 {
		t.Errorf("%v: %v %% of the calls are right before, %v %% after", err, before, after)
	}
}
