package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/starling-fl/starling/internal/leaf/named"
)

const (
	// MaxLine bounds one line of a data file, or one record of a CSV file, in bytes.
	MaxLine = 1 << 20
	// MaxLabel bounds a label's name, in bytes.
	MaxLabel = 256
	// MaxLabels bounds how many distinct labels a file may have.
	MaxLabels = 4096
	// maxUnpacked bounds what a compressed file's examples take in memory, about, in
	// bytes: a file of some megabytes can hold a thousand times as much, and anyone who got
	// it from elsewhere does not see it. One that is not compressed shows its size.
	maxUnpacked = 1 << 30
)

// LineError says which line of a data file cannot be used and why.
type LineError struct {
	File string // as it was given; "" where it is not known
	Line int    // from 1
	Err  error
}

func (e *LineError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// ErrEmpty is returned for a file without examples.
var ErrEmpty = errors.New("dataset: no examples")

// Load is Columns.Load with the default names.
func Load(path string) (*Set, error) { return Columns{}.Load(path) }

// Read is Columns.Read with the default names.
func Read(r io.Reader, name string) (*Set, error) { return Columns{}.Read(r, name) }

// Load reads a labelled file: lines of label<TAB>text (.tsv, .txt), JSON Lines
// with "text" (or "audio", the path of a recording beside the file), "label" and optionally "user" and "provider" (.jsonl, .ndjson),
// or CSV whose header names columns likewise (.csv, RFC 4180, with commas,
// semicolons or tabs, whichever the columns are found under); each may be gzipped
// (.gz). Parquet and Arrow (.parquet, .arrow, .feather; or a folder that datasets' save_to_disk wrote)
// are read as JSON Lines are, a row a line. JSON Lines without labels that ask something are questions about documents
// (scanner.document), whose set has no labels. A UTF-8 byte order mark is skipped. A folder
// holds images or recordings, one folder a label; CSV without texts whose other columns make square
// images holds those, their largest value (1, 16 or 255) being white. CSV that begins as
// Sentiment140's files is read as those are, each tweet with its user; a language's table of
// MINDS-14 is its recordings with their intents, or with what is said in them where Text is
// text_asr; a .bin is a batch of CIFAR-10's binary version, and a folder of these all of them
// but test_batch.bin. A folder of
// recordings leaves out what its validation_list.txt and testing_list.txt name; these are read
// by their own names. A folder or an archive (.tar.gz) of recordings named as in the Free
// Spoken Digit Dataset has their labels and users from their names. A line that cannot be used
// is a *LineError: nothing is skipped silently, except blank lines. Each error is a *named.Error.
func (c Columns) Load(path string) (*Set, error) {
	set, err := c.load(path)
	return set, named.Wrap(err)
}

func (c Columns) load(path string) (*Set, error) {
	f, err := named.OpenAny(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		if parts, err := savedParts(path); err != nil || parts != nil {
			return c.loadParts(path, parts, err)
		}
		batches, err := batchFiles(path)
		if err != nil {
			return nil, err
		}
		if len(batches) > 0 {
			return loadBatches(path, batches)
		}
		return loadFolder(path)
	}
	if publications && isList(path) {
		return loadList(path)
	}
	return c.Read(f, path)
}

// Read is Load for an open file; name decides the format.
func (c Columns) Read(r io.Reader, name string) (*Set, error) {
	if isArchive(name) {
		return readArchive(r, name, maxUnpacked)
	}
	return c.read(r, name, maxUnpacked)
}

// read holds a compressed file's examples to so many bytes.
func (c Columns) read(r io.Reader, name string, unpacked int) (*Set, error) {
	packed := strings.HasSuffix(name, ".gz") || stored(name)
	var examples []Example
	var names []string
	var tags, lists [][]string
	asked, written, spoken := 0, 0, 0
	distinct := map[string]string{} // also makes equal labels share memory
	err := c.scan(r, name, !c.Unlabelled, func(line int, l labelled) error {
		if unpacked -= l.held(); packed && unpacked < 0 {
			return errUnpacked
		}
		if c.Unlabelled && l.Questions != nil { // of which the document is left
			e := l.Questions[0]
			e.Question, e.Key, e.Answers, e.Line = "", "", nil, line
			examples = append(examples, e)
			return nil
		}
		if c.Unlabelled && l.Completion == "" && l.Messages == "" {
			if blank(l.Text) {
				return nil
			}
			l.Label = "-" // which no set has
		}
		if err := l.check(); err != nil {
			return err
		}
		if l.Completion != "" || l.Messages != "" {
			written++
			examples = append(examples, Example{Prompt: l.Prompt, Completion: l.Completion, Messages: l.Messages, Tools: l.Tools, Switches: l.Switches, Read: l.Read, User: l.User, Provider: l.Provider, Line: line})
			return nil
		}
		if c.Unlabelled {
			examples = append(examples, Example{Text: l.Text, User: l.User, Provider: l.Provider, Line: line})
			return nil
		}
		if l.Questions != nil {
			asked += len(l.Questions)
			for _, e := range l.Questions {
				e.Line = line
				examples = append(examples, e)
			}
			return nil
		}
		if l.Transcript {
			spoken++
			examples = append(examples, Example{Text: l.Text, User: l.User, Provider: l.Provider, Line: line, Recording: l.Recording})
			return nil
		}
		if l.Tags != nil {
			tags = append(tags, l.Tags)
			examples = append(examples, Example{Text: l.Text, Words: l.Words, User: l.User, Provider: l.Provider, Line: line})
			return nil
		}
		if l.Labels != nil {
			lists = append(lists, l.Labels)
			examples = append(examples, Example{Text: l.Text, User: l.User, Provider: l.Provider, Line: line})
			return nil
		}
		if _, known := distinct[l.Label]; !known {
			if len(distinct) == MaxLabels {
				return fmt.Errorf("more than %d distinct labels: is the column of labels the right one?", MaxLabels)
			}
			distinct[l.Label] = l.Label
		}
		examples = append(examples, Example{Text: l.Text, User: l.User, Provider: l.Provider, Line: line, Image: l.Image, Recording: l.Recording})
		names = append(names, distinct[l.Label])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(examples) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrEmpty)
	}
	if written > 0 && written != len(examples) {
		return nil, fmt.Errorf("%s: some examples are prompts with completions or conversations, others are none", name)
	}
	if c.Unlabelled || written > 0 {
		return &Set{Name: name, Examples: examples}, nil
	}
	if asked > 0 {
		if asked != len(examples) {
			return nil, fmt.Errorf("%s: some examples are questions about documents, others have labels", name)
		}
		return &Set{Name: name, Examples: examples}, nil
	}
	if spoken > 0 {
		if spoken != len(examples) {
			return nil, fmt.Errorf("%s: some recordings have a text, others a label", name)
		}
		return &Set{Name: name, Examples: examples}, nil
	}
	if len(tags) > 0 {
		if len(tags) != len(examples) {
			return nil, fmt.Errorf("%s: some examples have tags for their words, others a label", name)
		}
		return byTag(name, examples, tags, func(e *Example) *[]int { return &e.Tags })
	}
	if len(lists) > 0 {
		if len(lists) != len(examples) {
			return nil, fmt.Errorf("%s: some examples have a list of labels, others one label", name)
		}
		set, err := byTag(name, examples, lists, func(e *Example) *[]int { return &e.Labels })
		if err != nil {
			return nil, err
		}
		return set.Relabel(set.Labels) // in rising order
	}
	scalePixels(examples)
	return byName(name, examples, names), nil
}

// Texts calls each with every text of a file and its line, from 1, until each
// returns an error. JSON Lines and CSV need no labels; of a line
// label<TAB>text (.tsv) it is the text; a file of any other name holds one text
// a line, an empty line being an empty text. name decides the format, "" being
// that of plain lines.
func (c Columns) Texts(r io.Reader, name string, each func(line int, text string) error) error {
	return c.scan(r, name, false, func(line int, l labelled) error {
		if !utf8.ValidString(l.Text) || strings.IndexByte(l.Text, 0) >= 0 {
			return errNotText
		}
		return each(line, l.Text)
	})
}

// labelled is one record. Label is "" where none is wanted and there is none.
type labelled struct {
	Text, Label, User, Provider string
	Image                       *Image     // in place of a text
	Recording                   *Recording // in place of a text
	Transcript                  bool       // Text is what is said in Recording
	Words, Tags                 []string
	Labels                      []string  // in place of one
	Questions                   []Example // in place of all others
	Prompt, Completion          string    // in place of a text
	Messages, Tools, Switches   string    // in place of a text: JSON
	Read                        int       // of Messages
}

// held is about what a record takes in memory, in bytes.
func (l *labelled) held() int {
	const example = 256 // with its place in a list that grows
	n := example + len(l.Text) + len(l.Prompt) + len(l.Completion) + len(l.Messages) + len(l.Tools) + len(l.Switches) + len(l.User) + len(l.Provider) + len(l.Questions)*example
	for _, w := range l.Words {
		n += 32 + len(w)
	}
	n += 32 * len(l.Labels)
	if l.Image != nil {
		n += 4 * len(l.Image.Pixels)
		if l.Image.read != nil {
			n += cifarPixels
		}
	}
	return n
}

// scan reads records in the format of the file's name; without want a label may
// be missing.
func (c Columns) scan(r io.Reader, name string, want bool, each func(line int, l labelled) error) error {
	base := strings.TrimSuffix(name, ".gz")
	if stored(name) {
		return (&scanner{columns: c, name: name, want: want, each: each}).stored(r)
	}
	in, done, err := opened(r, name)
	if err != nil {
		return err
	}
	defer done()
	s := scanner{columns: c, name: cmp.Or(name, "input"), want: want, each: each}
	if publications && want && filepath.Ext(base) == ".bin" {
		return s.batches(in)
	}
	if publications && filepath.Ext(base) == ".csv" && !c.named() && tweets(in) {
		return s.sentiment(in)
	}
	ext := filepath.Ext(base)
	forced := rune(0)
	if ext == ".csv" || ext == ".tsv" {
		if forced = separatorLine(in); forced != 0 {
			s.above = 1
		}
	}
	sep, header := c.header(in, want)
	if forced != 0 {
		sep = forced
	}
	if want && header != nil {
		if pixels, label := c.pixelColumns(header); pixels != nil {
			return s.pixelTable(in, sep, header, pixels, label)
		}
		if _, ok := intentColumn(header); publications && ok && filepath.Ext(base) == ".csv" && (!c.named() || c.transcripts()) {
			return s.minds(in, sep)
		}
	}
	switch {
	case ext == ".csv" || forced != 0:
		return s.table(in, sep, false)
	case (ext == ".tsv" || want && ext == ".txt") && (c.named() || c.Others != ""):
		return s.table(in, '\t', true)
	case ext == ".jsonl" || ext == ".ndjson" || ext == ".json":
		if beginsList(in) {
			return s.array(in)
		}
		return s.lines(in, s.parseJSON)
	case ext == ".tsv" || want && ext == ".txt":
		return s.lines(in, s.parseTabbed)
	case want:
		return named.Errorf("%s: unknown format %q: want .tsv or .txt (label<TAB>text), "+
			".jsonl, .json (a list) or .csv with a header (text, label, user, provider), or .bin (CIFAR-10), plain or .gz%s", name, ext, storedFormats)
	}
	return s.lines(in, nil)
}

// Causes for which a file is no text.
var (
	errNotText = errors.New("not text in UTF-8")
	errNotUTF8 = errors.New("not valid UTF-8: if it is text in Windows-1252, convert it (iconv -f WINDOWS-1252 -t UTF-8)")
	errGzip    = errors.New("is compressed: its name must end in .gz")
	errUTF16   = errors.New("is text in UTF-16: save it as UTF-8")
	// errUnpacked is a bomb, or a file that is better unpacked before.
	errUnpacked = fmt.Errorf("unpacks to examples of more than %d MiB: if it is meant to, unpack it and give the file without .gz", maxUnpacked>>20)
)

// opened decompresses what is named so and refuses what is no text. The caller calls
// done at the end.
func opened(r io.Reader, name string) (in *bufio.Reader, done func(), err error) {
	done = func() {}
	if strings.HasSuffix(name, ".gz") {
		z, err := gunzip(r)
		if err != nil {
			return nil, nil, named.Errorf("%s: %w", name, err)
		}
		r, done = z, func() { _ = z.Close() }
	}
	if in, err = textReader(r); err != nil {
		done()
		return nil, nil, named.Errorf("%s: %w", cmp.Or(name, "input"), err)
	}
	return in, done, nil
}

// textReader skips a UTF-8 byte order mark and refuses what cannot be text.
func textReader(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	start, err := in.Peek(3)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		if _, err = in.Discard(3); err != nil {
			return nil, err
		}
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return nil, errGzip
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return nil, errUTF16
	}
	return oldLines(in), nil
}

// oldLines has a line end at each CR where the start of a file holds CRs and no LF, as files of the first Macs.
func oldLines(in *bufio.Reader) *bufio.Reader {
	start, _ := in.Peek(64 << 10) // an error comes again when it is read
	if bytes.IndexByte(start, '\n') >= 0 || bytes.IndexByte(start, '\r') < 0 {
		return in
	}
	return bufio.NewReaderSize(carriage{in}, 64<<10)
}

// carriage reads LF for CR.
type carriage struct{ r io.Reader }

func (c carriage) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// errEmptyText is a text that shows nothing.
var errEmptyText = errors.New("text is empty")

// blank reports whether a text has nothing that anybody sees: white space and characters without a shape, as U+200B,
// of which tokenizers make no token.
func blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
	}) < 0
}

func (l labelled) check() error {
	switch {
	case l.Questions != nil: // which document has checked
		return nil
	case l.Tags != nil:
		return l.checkTags()
	case l.Transcript:
		return l.checkTranscript()
	case l.Completion != "" || l.Messages != "":
		return l.checkPrompt()
	}
	switch {
	case l.Labels != nil && blank(l.Text):
		return errEmptyText
	case l.Labels != nil:
		return l.checkLabels()
	case l.Label == "":
		return errors.New("label is empty")
	case len(l.Label) > MaxLabel:
		return fmt.Errorf("label has %d bytes, the limit is %d: is the column of labels the right one?", len(l.Label), MaxLabel)
	case l.Image == nil && l.Recording == nil && blank(l.Text):
		return errEmptyText
	case !utf8.ValidString(l.Text) || !utf8.ValidString(l.Label) || !utf8.ValidString(l.User) || !utf8.ValidString(l.Provider):
		return errNotUTF8
	}
	return nil
}
