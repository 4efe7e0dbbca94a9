package service

import (
	"fmt"
	"io"

	"github.com/starling-fl/starling/internal/leaf/qrcode"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// printQR draws the join page's address for a phone to scan: on a terminal that has
// room for it, where the address is more than this machine's own; always where it
// was asked for.
func printQR(w io.Writer, link string, local, asked bool) {
	columns, live := terminal.Width(w)
	if !asked && (!live || local) {
		return
	}
	code, err := qrcode.New(link)
	if err != nil {
		if asked {
			fmt.Fprintf(w, "no QR code: %v\n", err)
		}
		return
	}
	if live && columns < code.Width() {
		fmt.Fprintf(w, "the QR code of that address needs a terminal of %d columns, this one has %d; the dashboard shows it as well\n", code.Width(), columns)
		return
	}
	fmt.Fprint(w, code.Terminal())
	if local {
		fmt.Fprintln(w, "only this machine reaches that address: --listen or --url names one for others")
	}
}
