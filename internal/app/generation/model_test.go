package generation

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/internal/testkit/pets"
)

// learned is a model of bytes that writes "dog. é" behind "cat".
func learned(t *testing.T) *Model {
	t.Helper()
	g, err := Open(nil, pets.Learned(t), 0, 24)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestWrite(t *testing.T) {
	m := learned(t)
	plain := Sampling{TopP: 1, Repetition: 1}
	for name, c := range map[string]struct {
		r    Request
		want Text
	}{
		"to its end":   {Request{Prompt: "cat", Most: 20, Sampling: plain}, Text{Text: "dog. é", Ended: EndStop, Read: 3, Tokens: 7}},
		"cut":          {Request{Prompt: "cat", Most: 2, Sampling: plain}, Text{Text: "do", Ended: EndLength, Read: 3, Tokens: 2}},
		"a character":  {Request{Prompt: "cat", Most: 6, Sampling: plain}, Text{Text: "dog. \uFFFD", Ended: EndLength, Read: 3, Tokens: 6}},
		"stopped":      {Request{Prompt: "cat", Most: 20, Sampling: plain, Stops: []string{"x", ". "}}, Text{Text: "dog", Ended: EndStop, Read: 3, Tokens: 5}},
		"nearly":       {Request{Prompt: "cat", Most: 20, Sampling: plain, Stops: []string{"g.x"}}, Text{Text: "dog. é", Ended: EndStop, Read: 3, Tokens: 7}},
		"full context": {Request{Prompt: strings.Repeat("cat", 7) + "at", Most: 20, Sampling: plain}, Text{Text: "", Ended: EndLength, Read: 23, Tokens: 1}},
	} {
		var parts []string
		got, err := m.Write(t.Context(), c.r, func(part Part) error {
			parts = append(parts, part.Text)
			return nil
		})
		if name == "full context" {
			c.want.Text, c.want.Tokens, c.want.Ended = got.Text, got.Tokens, got.Ended // whatever it writes there
			if got.Tokens > 1 {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if err != nil || !reflect.DeepEqual(got, c.want) || strings.Join(parts, "") != got.Text {
			t.Errorf("%s: %+v in %q, %v, want %+v", name, got, parts, err, c.want)
		}
	}
	if _, err := m.Write(t.Context(), Request{Prompt: strings.Repeat("x", 24), Most: 1, Sampling: plain}, nil); !errors.Is(err, ErrPrompt) {
		t.Error(err)
	}
	if _, err := m.Write(t.Context(), Request{Most: 1, Sampling: plain}, nil); !errors.Is(err, ErrPrompt) {
		t.Error(err)
	}
	broken := errors.New("nobody reads on")
	if got, err := m.Write(t.Context(), Request{Prompt: "cat", Most: 9, Sampling: plain}, func(Part) error { return broken }); !errors.Is(err, broken) || got.Tokens != 1 {
		t.Error(got, err)
	}
	for _, bad := range []Request{{Prompt: "cat", Sampling: plain}, {Prompt: "cat", Most: 1}, {Prompt: "cat", Most: 1, Sampling: plain, Stops: []string{""}}} {
		if _, err := m.Write(t.Context(), bad, nil); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// The likelihoods of an echoed prompt are those of the same tokens where they are written, and the end is told, too.
func TestTold(t *testing.T) {
	m := learned(t)
	r := Request{Prompt: "cat", Most: 20, Sampling: Sampling{TopP: 1, Repetition: 1, Presence: 0.5}, Told: true, Likely: 2}
	written, err := m.Write(t.Context(), r, nil)
	if err != nil || len(written.Told) != written.Tokens+1 || written.Told[written.Tokens].Text != "<|endoftext|>" {
		t.Fatalf("%+v, %v", written, err)
	}
	r.Prompt, r.Echo, r.Most = "cat"+written.Text, true, 0
	echoed, err := m.Write(t.Context(), r, nil)
	if err != nil || echoed.Text != r.Prompt || len(echoed.Told) != 3+written.Tokens || !math.IsNaN(echoed.Told[0].Logprob) || echoed.Ended != EndLength {
		t.Fatalf("%+v, %v", echoed, err)
	}
	text := ""
	for i, k := range echoed.Told {
		if k.At != len([]rune(text)) && k.Text[0] != 'b' { // of bytes: they are spelled out
			t.Errorf("token %d is at %d of %q", i, k.At, text)
		}
		text += k.Text
		if i < 3 {
			continue
		}
		w := written.Told[i-3]
		if d := math.Abs(k.Logprob - w.Logprob); k.ID != w.ID || !(d < 1e-5) || k.Logprob > 0 || len(k.Top) != 2 || k.Top[0].Logprob < k.Top[1].Logprob {
			t.Errorf("token %d: %+v, written it was %+v", i, k, w)
		}
		if k.Top[0].ID == k.ID && k.Top[0].Logprob != k.Logprob {
			t.Errorf("token %d has two likelihoods: %+v", i, k)
		}
	}
	if want := "dog. bytes:\\xc3bytes:\\xa9"; text != "cat"+want {
		t.Errorf("spelled %q", text)
	}
	sum := 0.0
	for _, k := range mustLikelihoods(t, []float32{1, 2, 3, 1000}).top {
		sum += math.Exp(k.Logprob)
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("probabilities add up to %v", sum)
	}
	if _, err := m.likelihoods([]float32{1, float32(math.NaN())}, 1); err == nil {
		t.Error("what is no number has a likelihood")
	}
}

func mustLikelihoods(t *testing.T, scores []float32) *likelihoods {
	t.Helper()
	l, err := learned(t).likelihoods(scores, len(scores))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A prompt may be tokens, or spell special tokens out, which else are text.
func TestPrompts(t *testing.T) {
	m := learned(t)
	plain := Request{Most: 1, Sampling: Sampling{TopP: 1, Repetition: 1}}
	read := func(change func(*Request)) []int32 {
		r := plain
		change(&r)
		r, err := m.Read(r)
		if err != nil {
			t.Error(err)
		}
		return r.read
	}
	if got := read(func(r *Request) { r.Tokens = []int32{99, 256} }); !slices.Equal(got, []int32{99, 256}) {
		t.Errorf("tokens: %v", got)
	}
	if got := read(func(r *Request) { r.Prompt, r.Marks = "c<|endoftext|>", true }); !slices.Equal(got, []int32{'c', 256}) {
		t.Errorf("marks: %v", got)
	}
	if got := read(func(r *Request) { r.Prompt = "c<|endoftext|>" }); len(got) != 14 {
		t.Errorf("text: %v", got)
	}
	bad := plain
	if bad.Tokens = []int32{1, 999}; true {
		if _, err := m.Read(bad); !errors.Is(err, ErrPrompt) || !strings.Contains(err.Error(), "token 1 is 999") {
			t.Error(err)
		}
	}
}

// A text that must be a JSON object is one, as far as it gets, whatever the model would write.
func TestWritesObject(t *testing.T) {
	m := learned(t)
	got, err := m.Write(t.Context(), Request{Prompt: "cat", Most: 20, Sampling: Sampling{TopP: 1, Repetition: 1, Bias: map[int32]float64{'}': 90}}, Object: true}, nil)
	if err != nil || got.Text != "{}" || got.Ended != EndStop {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = m.Write(t.Context(), Request{Prompt: "cat", Most: 20, Sampling: Sampling{Temperature: 2, TopP: 1, Repetition: 1, Seed: 3}, Object: true}, nil)
	if _, n := reads(got.Text); err != nil || got.Text[0] != '{' && got.Text[0] != ' ' || n != len(got.Text) {
		t.Errorf("%+v, %v: %d bytes may come", got, err, n)
	}
}
