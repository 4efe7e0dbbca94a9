//go:build !js

package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// repoName is a model's name on Hugging Face's hub: owner/name, or a bare name.
var repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$`)

// FindBase returns the folder that a base is in: the path itself where there is
// one, else the snapshot that Hugging Face's local cache has for a model of that
// name. It fetches nothing.
func FindBase(name string) (string, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return name, nil
	}
	if err == nil {
		return "", fmt.Errorf("base %s: a base is a folder with %s, %s and %s", name, ConfigFile, WeightsFile, TokenizerFile)
	}
	if !errors.Is(err, fs.ErrNotExist) || !repoName.MatchString(name) {
		return "", fmt.Errorf("base %s: %w", name, err)
	}
	cache := hubCache()
	repo := filepath.Join(cache, "models--"+strings.ReplaceAll(name, "/", "--"))
	revision, err := os.ReadFile(filepath.Join(repo, "refs", "main"))
	if err == nil && regexp.MustCompile(`^[0-9a-f]{40}$`).Match(revision) {
		dir := filepath.Join(repo, "snapshots", string(revision))
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("base %s: neither a folder nor a model in the local cache %s: fetch it with `hf download %s`, "+
		"or copy its %s, %s and %s into a folder and name that", name, cache, name, ConfigFile, WeightsFile, TokenizerFile)
}

// hubCache is where huggingface_hub keeps what it fetches.
func hubCache() string {
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
