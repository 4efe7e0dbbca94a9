package dataset

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/named"
)

const (
	// MaxClients bounds the clients that a partition's file names.
	MaxClients = 1 << 22
	// maxPartition bounds a partition's file, unpacked, in bytes.
	maxPartition = 256 << 20
	// maxClientName bounds a client's name, in bytes.
	maxClientName = 256
)

// LoadPartition reads a file that says which of a set's n examples each client has, by
// their numbers in the order of the set, from 0:
//
//   - .json: [[0, 5], [2]], a list for each client, or {"alice": [0, 5], "bob": [2]};
//   - .csv, .tsv, .jsonl: a column or key "client", and with it "example"; without that
//     line i is of example i, and the labelled file itself will do.
//
// Each may be gzipped (.gz). An example belongs to one client or to none; clients come in
// the order in which the file names them.
func LoadPartition(path string, n int) ([][]int, error) {
	f, err := named.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadPartition(f, path, n)
}

// ReadPartition is LoadPartition for an open file; name decides the format.
func ReadPartition(r io.Reader, name string, n int) ([][]int, error) {
	in, done, err := opened(r, name)
	if err != nil {
		return nil, err
	}
	defer done()
	in = bufio.NewReader(&bounded{r: in, left: maxPartition, end: errLongPartition})
	a := assignment{most: MaxClients, owner: make([]int32, n), at: make(map[string]int)}
	switch ext := filepath.Ext(strings.TrimSuffix(name, ".gz")); ext {
	case ".json":
		err = a.readLists(in)
	case ".jsonl", ".ndjson":
		err = a.readLines(in)
	case ".csv":
		err = a.readTable(in, rune(0))
	case ".tsv":
		err = a.readTable(in, '\t')
	default:
		err = fmt.Errorf("unknown format %q: want .json (a list of examples for each client), or .csv, .tsv or .jsonl with a column \"client\", plain or .gz", ext)
	}
	if err == nil && a.given == 0 {
		err = errors.New("gives no client an example")
	}
	if err != nil {
		return nil, named.Wrap(fmt.Errorf("partition %s: %w", name, err))
	}
	return a.parts, nil
}

var errLongPartition = fmt.Errorf("longer than %d MiB", maxPartition>>20)

// assignment is a partition as it is read.
type assignment struct {
	most  int     // clients
	owner []int32 // of each of the set's examples: its client, from 1; 0: nobody
	given int     // examples that have one
	parts [][]int
	names []string       // of clients; empty if they are numbered
	at    map[string]int // clients by their names
}

// client begins the next client.
func (a *assignment) client(name string) error {
	if len(name) > maxClientName {
		return fmt.Errorf("a client's name has %d bytes, the limit is %d", len(name), maxClientName)
	}
	if len(a.parts) == a.most {
		return fmt.Errorf("more than %d clients", a.most)
	}
	a.parts, a.names = append(a.parts, nil), append(a.names, name)
	return nil
}

func (a *assignment) called(client int) string {
	if name := a.names[client]; name != "" {
		return fmt.Sprintf("client %.40q", name)
	}
	return fmt.Sprintf("client %d", client)
}

// give gives a client an example.
func (a *assignment) give(client, example int) error {
	if example < 0 || example >= len(a.owner) {
		return fmt.Errorf("%s has example %d: the data hold %d, which count from 0", a.called(client), example, len(a.owner))
	}
	if other := a.owner[example]; other > 0 {
		return fmt.Errorf("%s has example %d, which %s has too: each belongs to one client at most", a.called(client), example, a.called(int(other-1)))
	}
	a.owner[example] = int32(client + 1) // below MaxClients
	a.given++
	a.parts[client] = append(a.parts[client], example)
	return nil
}

// giveTo is give for a client that is named with each of its examples.
func (a *assignment) giveTo(name string, example int) error {
	client, known := a.at[name]
	if !known {
		client = len(a.parts)
		if err := a.client(name); err != nil {
			return err
		}
		a.at[name] = client
	}
	return a.give(client, example)
}

// readLists reads JSON, value by value: no list is in memory before it is checked.
func (a *assignment) readLists(in io.Reader) error {
	dec := json.NewDecoder(in)
	dec.UseNumber()
	next := func() (json.Token, error) {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return t, err
	}
	open, err := next()
	if err != nil {
		return err
	}
	if open != json.Delim('[') && open != json.Delim('{') {
		return errors.New("want a list of lists of examples, one for each client, or an object of them")
	}
	for dec.More() {
		name := ""
		if open == json.Delim('{') {
			t, err := next()
			if err != nil {
				return err
			}
			name, _ = t.(string) // a key is nothing else
			if _, twice := a.at[name]; twice {
				return fmt.Errorf("client %.40q occurs twice", name)
			}
			a.at[name] = len(a.parts)
		}
		if err := a.client(name); err != nil {
			return err
		}
		if err := a.readList(next, dec.More); err != nil {
			return err
		}
	}
	if _, err := next(); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the lists")
	}
	return nil
}

// readList reads the examples of the client that was begun last.
func (a *assignment) readList(next func() (json.Token, error), more func() bool) error {
	client := len(a.parts) - 1
	if t, err := next(); err != nil {
		return err
	} else if t != json.Delim('[') {
		return fmt.Errorf("%s has %.40q, want a list of examples", a.called(client), fmt.Sprint(t))
	}
	for more() {
		t, err := next()
		if err != nil {
			return err
		}
		number, _ := t.(json.Number)
		i, err := strconv.Atoi(string(number))
		if err != nil {
			return fmt.Errorf("%s has %.40q, want the number of an example", a.called(client), fmt.Sprint(t))
		}
		if err := a.give(client, i); err != nil {
			return err
		}
	}
	_, err := next()
	return err
}

// row gives the example of a record: the one that it names, else the next.
func (a *assignment) row(at int, client, example string, named bool) error {
	if named {
		var err error
		if at, err = strconv.Atoi(strings.TrimSpace(example)); err != nil {
			return fmt.Errorf("example is %.40q, want its number", example)
		}
	}
	if client == "" { // nobody's
		return nil
	}
	return a.giveTo(client, at)
}

// whole refuses a file that has not one record for each example.
func (a *assignment) whole(rows int) error {
	if rows != len(a.owner) {
		return fmt.Errorf("names a client in %d records, and the data hold %d examples: give a record for each, or a column \"example\" with their numbers, from 0", rows, len(a.owner))
	}
	return nil
}

func (a *assignment) readLines(in *bufio.Reader) error {
	rows, named := 0, false
	s := scanner{each: func(int, labelled) error { return nil }}
	err := s.lines(in, func(line []byte) (labelled, error) {
		keys, value, err := object(line)
		if err != nil {
			return labelled{}, err
		}
		client, err := scalar("client", value("client"))
		if err != nil {
			return labelled{}, err
		}
		if client == "" && len(value("client")) == 0 {
			return labelled{}, &ColumnError{Column: "client", Have: keys}
		}
		example, err := scalar("example", value("example"))
		if err != nil {
			return labelled{}, err
		}
		if has := len(value("example")) > 0; rows == 0 {
			named = has
		} else if has != named {
			return labelled{}, errors.New(`"example" stands in some lines and not in others`)
		}
		rows++
		return labelled{}, a.row(rows-1, client, example, named)
	})
	if err != nil || named {
		return err
	}
	return a.whole(rows)
}

// readTable reads CSV under a header; without a separator it is the one that "client"
// is found under.
func (a *assignment) readTable(in *bufio.Reader, sep rune) error {
	if sep == 0 {
		sep, _ = Columns{Text: "client", Label: "example"}.header(in, false)
	}
	s := scanner{columns: Columns{Text: "client", Label: "example"}}
	rows, named := 0, false
	s.header = func(names []string) { named = find(names, "example") >= 0 }
	s.each = func(_ int, l labelled) error {
		rows++
		return a.row(rows-1, l.Text, l.Label, named)
	}
	if err := s.table(in, sep, sep == '\t'); err != nil {
		return err
	}
	if named {
		return nil
	}
	return a.whole(rows)
}
