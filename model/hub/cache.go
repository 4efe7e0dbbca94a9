// Package hub finds models in Hugging Face's local cache, and fetches them into it from a hub. It
// uses the layout of huggingface_hub (https://huggingface.co/docs/huggingface_hub, "Understand
// caching"), so that both share one copy. [Find] looks in the cache alone; [FromEnv] and
// [Client.Fetch] download.
//
//	dir, err := hub.Find("sentence-transformers/all-MiniLM-L6-v2") // in the local cache
package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/starling-fl/starling/model"
)

// repoName is a model's name on Hugging Face's hub: owner/name, or a bare name.
var repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$`)

// FindAt is Find for a given commit of a model in the cache; Find if revision is empty.
func FindAt(name, revision string) (string, error) {
	if revision == "" {
		return Find(name)
	}
	if !repoName.MatchString(name) || !commitName.MatchString(revision) {
		return "", fmt.Errorf("base %s: a revision, %.60q, is the commit of a model in the local cache: owner/name and 40 hexadecimal digits", name, revision)
	}
	cache := cacheDir()
	dir := filepath.Join(folder(cache, name), "snapshots", revision)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("base %s: the local cache %s does not have revision %s: fetch it with `starling base fetch %s --revision %s`", name, cache, revision, name, revision)
	}
	return dir, nil
}

// Find returns the folder of a base: the path itself if it exists, else the snapshot in Hugging
// Face's local cache of the model with that name. It fetches nothing.
func Find(name string) (string, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return name, nil
	}
	if err == nil {
		return "", fmt.Errorf("base %s: a base is a folder with %s, %s and %s", name, model.ConfigFile, model.WeightsFile, model.TokenizerFile)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("base %s: %w", name, err)
	}
	return Cached(name)
}

// Cached returns the folder of a model's newest snapshot in Hugging Face's local cache. It fetches nothing, and
// takes no path.
func Cached(name string) (string, error) {
	if !repoName.MatchString(name) {
		return "", fmt.Errorf("base %.200s: no such folder, and not a model's name: owner/name", name)
	}
	cache := cacheDir()
	repo := folder(cache, name)
	revision, err := os.ReadFile(filepath.Join(repo, "refs", "main"))
	if err == nil && commitName.Match(revision) {
		dir := filepath.Join(repo, "snapshots", string(revision))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("base %s: neither a folder nor a model in the local cache %s: fetch it with `starling base fetch %s`, "+
		"or copy its %s, %s and %s into a folder and name that", name, cache, name, model.ConfigFile, model.WeightsFile, model.TokenizerFile)
}

// commitName is a revision that never changes.
var commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Revision returns the commit whose snapshot a folder of the cache is; "-" for any other folder.
func Revision(dir string) string {
	if name := filepath.Base(dir); commitName.MatchString(name) && filepath.Base(filepath.Dir(dir)) == "snapshots" {
		return name
	}
	return "-"
}

// Published returns the model whose snapshot a folder of the cache is, and its commit; both are
// empty for any other folder.
func Published(dir string) (name, revision string) {
	revision = Revision(dir)
	repo := filepath.Base(filepath.Dir(filepath.Dir(dir)))
	name, ok := strings.CutPrefix(repo, "models--")
	if name = strings.ReplaceAll(name, "--", "/"); revision == "-" || !ok || !repoName.MatchString(name) {
		return "", ""
	}
	return name, revision
}

// folder is a model's in the cache.
func folder(cache, name string) string {
	return filepath.Join(cache, "models--"+strings.ReplaceAll(name, "/", "--"))
}

// cacheDir is where huggingface_hub keeps what it fetches.
func cacheDir() string {
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return filepath.Join(dir, "hub")
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = "."
	}
	return filepath.Join(dir, ".cache", "huggingface", "hub")
}
