package dataset

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Sentiment140 (Go, Bhayani, Huang 2009) is CSV without a header: polarity, number, date,
// query, user and text of each tweet, in quotes, in ISO 8859-1.
const (
	tweetFields = 6
	tweetDate   = "Mon Jan 02 15:04:05 MST 2006"
	tweetUser   = 4
	tweetText   = 5
)

// polarities are the names of its labels.
var polarities = map[string]string{"0": "negative", "2": "neutral", "4": "positive"}

// tweets reports whether a file begins as Sentiment140's do: no header looks like that.
func tweets(in *bufio.Reader) bool {
	start, _ := in.Peek(64 << 10) // an error comes again when it is read
	r := csv.NewReader(strings.NewReader(string(start)))
	r.LazyQuotes = true
	row, err := r.Read()
	return err == nil && isTweet(row) == nil
}

func isTweet(row []string) error {
	if len(row) != tweetFields {
		return fmt.Errorf("%d columns, a tweet of Sentiment140 has %d", len(row), tweetFields)
	}
	if polarities[row[0]] == "" {
		return fmt.Errorf("polarity %.20q, want 0, 2 or 4", row[0])
	}
	if _, err := time.Parse(tweetDate, row[2]); err != nil {
		return fmt.Errorf("date %.40q, want one such as %q", row[2], tweetDate)
	}
	return nil
}

// sentiment reads tweets.
func (s *scanner) sentiment(in io.Reader) error {
	r := s.csv(in)
	r.LazyQuotes, r.ReuseRecord, r.FieldsPerRecord = true, true, -1
	for {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		if err = isTweet(row); err == nil {
			err = s.each(line, labelled{Text: unicoded(row[tweetText]), Label: polarities[row[0]], User: unicoded(row[tweetUser])})
		}
		if err != nil {
			return &LineError{s.name, line, err}
		}
	}
}

// unicoded is a text of its own memory: as it is where it is UTF-8, else from ISO 8859-1.
func unicoded(text string) string {
	if utf8.ValidString(text) {
		return strings.Clone(text)
	}
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(rune(text[i]))
	}
	return b.String()
}
