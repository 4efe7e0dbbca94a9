//go:build js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"syscall/js"

	"github.com/starling-fl/starling/data/dataset"
)

// read reads a labelled file as dataset does for every device, or takes pictures or recordings.
func read(source js.Value) (*dataset.Set, error) {
	if pictures := source.Get("pictures"); pictures.Type() == js.TypeObject {
		return pictured(pictures, source.Get("decode"), text(source.Get("fileName")))
	}
	if recordings := source.Get("recordings"); recordings.Type() == js.TypeObject {
		return recorded(recordings, text(source.Get("fileName")))
	}
	columns := dataset.Columns{Text: text(source.Get("textColumn")), Label: text(source.Get("labelColumn")), Unlabelled: source.Get("unlabelled").Truthy()}
	return columns.Read(bytes.NewReader(octets(source.Get("data"))), text(source.Get("fileName")))
}

// maxBlobs bounds how many pictures or recordings a source may have.
const maxBlobs = 1 << 17

// pictured are a page's pictures. Each stays where the browser has it until a step's
// rows are made of it.
func pictured(list, decode js.Value, name string) (*dataset.Set, error) {
	n := list.Length()
	if n > maxBlobs {
		return nil, fmt.Errorf("%s: %d pictures, want at most %d", name, n, maxBlobs)
	}
	examples, labels := make([]dataset.Example, n), make([]string, n)
	for i := range n {
		at := list.Index(i)
		labels[i] = text(at.Get("label"))
		examples[i] = dataset.Example{Image: picture(at.Get("picture"), decode, text(at.Get("name"))), User: text(at.Get("user")),
			Provider: text(at.Get("provider"))}
	}
	return dataset.Named(name, examples, labels)
}

// picture is one that the browser decodes when it is asked for.
func picture(blob, decode js.Value, name string) *dataset.Image {
	return dataset.Deferred(func() (*dataset.Image, error) {
		if decode.Type() != js.TypeFunction {
			return nil, errors.New("pictures need a function that decodes them")
		}
		got, err := wait(decode.Invoke(blob))
		if err != nil {
			return nil, fmt.Errorf("%s: the browser does not read it as a picture: %w", name, err)
		}
		w, h := got.Get("width").Int(), got.Get("height").Int()
		m, err := dataset.FromRGBA(w, h, octets(got.Get("pixels")))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return m, nil
	})
}

// wait blocks until a promise is settled, and gives what it yields.
func wait(promise js.Value) (js.Value, error) {
	type settled struct {
		value js.Value
		err   error
	}
	done := make(chan settled, 1)
	yes := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- settled{args[0], nil}
		return nil
	})
	defer yes.Release()
	no := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- settled{js.Undefined(), errors.New(args[0].Call("toString").String())}
		return nil
	})
	defer no.Release()
	promise.Call("then", yes, no)
	s := <-done
	return s.value, s.err
}
