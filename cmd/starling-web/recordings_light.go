//go:build js && !full

package main

import (
	"errors"
	"syscall/js"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/web/client"
)

// errLight: jobs of recordings load the full build, and most jobs have texts.
var errLight = errors.New("this build reads no recordings: load edge-full.wasm")

func recorded(js.Value, string) (*dataset.Set, error) { return nil, errLight }

func recording(js.Value, string) (*dataset.Recording, error) { return nil, errLight }

func heard(dataset.Example, int, *client.Preview) (*client.Sound, error) { return nil, nil }

func words(int) (string, error) { return "", errLight }
