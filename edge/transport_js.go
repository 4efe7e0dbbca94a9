package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall/js"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// host names the code shape of programs that this build runs best.
const host = "v8"

// HTTPClient is a placeholder that a browser does not use: blobs are fetched by the browser itself.
type HTTPClient struct{}

// blobClient asks for blobs with the browser's fetch. net/http would do the
// same, but brings a TLS stack that is never used: a third of the binary.
type blobClient struct{}

// newBlobClient: Config.HTTP is not used in a browser.
func newBlobClient(wire.Token, *HTTPClient) (blobClient, func()) {
	return blobClient{}, func() {}
}

// open asks for a blob from a byte on, if it still has the tag. The caller
// closes the body.
func (blobClient) open(ctx context.Context, url string, from uint64, etag string) (*answer, error) {
	headers := map[string]any{}
	if from > 0 {
		headers["Range"] = fmt.Sprintf("bytes=%d-", from)
		headers["If-Range"] = etag
	}
	abort := js.Global().Get("AbortController").New()
	stop := context.AfterFunc(ctx, func() { abort.Call("abort") })
	body := &fetched{close: func() { stop(); abort.Call("abort") }}
	resp, err := await(js.Global().Call("fetch", url, map[string]any{"headers": headers, "signal": abort.Get("signal"), "redirect": "error"}))
	if err != nil {
		body.Close()
		return nil, err
	}
	if stream := resp.Get("body"); stream.Truthy() {
		body.reader = stream.Call("getReader")
	}
	contentRange := ""
	if r := resp.Get("headers").Call("get", "Content-Range"); r.Type() == js.TypeString {
		contentRange = r.String()
	}
	return &answer{resp.Get("status").Int(), contentRange, body}, nil
}

// fetched is the body of a response.
type fetched struct {
	reader js.Value // ReadableStreamDefaultReader; undefined: no body
	piece  js.Value // Uint8Array, what of it is left
	left   int      // bytes in piece
	close  func()
}

func (f *fetched) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for f.left == 0 {
		if f.reader.IsUndefined() {
			return 0, io.EOF
		}
		next, err := await(f.reader.Call("read"))
		if err != nil {
			return 0, err
		}
		if next.Get("done").Bool() {
			return 0, io.EOF
		}
		f.piece = next.Get("value")
		f.left = f.piece.Length()
	}
	n := js.CopyBytesToGo(p, f.piece)
	f.piece = f.piece.Call("subarray", n)
	f.left -= n
	return n, nil
}

// Close ends the request where it is not over.
func (f *fetched) Close() error { f.close(); return nil }

// await waits for a promise. A request that is aborted rejects its promises, so
// it needs no context.
func await(promise js.Value) (js.Value, error) {
	type settled struct {
		value js.Value
		err   error
	}
	done := make(chan settled, 1)
	yes := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- settled{value: args[0]}
		return nil
	})
	defer yes.Release()
	no := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- settled{err: errors.New("edge: fetch: " + args[0].Call("toString").String())}
		return nil
	})
	defer no.Release()
	promise.Call("then", yes, no)
	s := <-done
	return s.value, s.err
}
