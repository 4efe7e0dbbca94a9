package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// The robbery: a coordinator that wants one device's texts, and lies about all else. Its
// base has been made for the purpose, every tensor is trained, a step takes one example,
// and all 23 other devices of the shard are its own.

// robbery is the coordinator's part.
type robbery struct {
	*liar
	base   *model.Base
	layout *model.Layout
	tok    *tokenizer.WordPiece
	clip   float64
	seed   [32]byte // the rotation
	first  int      // places that it reads; 0: all
}

const (
	robberyWidth     = 64
	robberyPositions = 60
	robberyPeers     = 23
	robberyScale     = 1e-3
)

// pattern is a place's: orthogonal to any other's, without a mean, of length 1.
func pattern(place int) []float64 {
	u := make([]float64, robberyWidth)
	for i := range u {
		u[i] = 1 - 2*float64(bits.OnesCount(uint(i&(place+1)))%2)
		u[i] /= math.Sqrt(robberyWidth)
	}
	return u
}

// common is what all places share in a base that lets only the first ones tell.
const common = robberyWidth - 3

// pattern is a place's in this robbery's base. Where it reads the first places alone all others
// look the same, and their words' gradients vanish: the whole of the update is the first ones'.
func (r *robbery) pattern(place int) []float64 {
	switch u, c := pattern(place), pattern(common); {
	case r.first == 0:
		return u
	case place == 0 || place > r.first: // 0 is [CLS]
		return c
	default:
		for i := range u {
			u[i] = (u[i] + c[i]) / math.Sqrt2
		}
		return u
	}
}

// robberyBase passes each place's pattern through and nothing else: words are all zero, so
// that an update of a word's row is the gradient at the places where it stands, which
// lacks exactly those places' patterns. Attention and feed-forward add nothing, and small
// embeddings make their gradients a thousand times all others'.
func (r *robbery) robberyBase(t *testing.T, corpus []string) (*model.Base, *tokenizer.WordPiece) {
	t.Helper()
	tok, err := tokenizer.Train(slices.Values(corpus), 400)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	c := model.BERT(tok.VocabSize(), robberyWidth, 1, 1, robberyPositions)
	c.TypeVocabSize = 0
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		data := make([]float32, model.Elements(s.Shape))
		switch {
		case strings.Contains(s.Name, "position_embeddings"):
			for p := range robberyPositions {
				for i, x := range r.pattern(p) {
					data[p*robberyWidth+i] = float32(robberyScale * math.Sqrt(robberyWidth) * x)
				}
			}
		case s.Name == "pooler.dense.weight":
			for i := range robberyWidth {
				data[i*robberyWidth+i] = 1
			}
		case strings.HasSuffix(s.Name, "LayerNorm.weight"):
			for i := range data {
				data[i] = 1
			}
		}
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	base, err := model.NewBase(c, tensors, text, model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return base, tok
}

// robs makes job and plan: a real coordinator's, from whom the programs are, and then what
// makes it a robbery.
func robs(t *testing.T, corpus []string, first int) *robbery {
	t.Helper()
	r := &robbery{clip: 10, seed: [32]byte{7}, first: first}
	r.base, r.tok = r.robberyBase(t, corpus)
	method, asJob := model.Method{Kind: model.MethodFull, RMax: 1, Alpha: 1}, "method: full"
	if first > 0 { // places' rows would take half of the update
		method.Kind, method.Also, asJob = model.MethodHead, "word_embeddings", "method: head, also: [word_embeddings]"
	}
	folder := t.TempDir()
	if err := r.base.WriteDir(folder); err != nil {
		t.Fatal(err)
	}
	truth := servesJob(t, fmt.Sprintf("name: robbed\nlabels: [one, two]\nrounds: 500\nbase: %s\n"+
		"adapter: {%s, sequence: %d}\ntraining: {steps: 1, batch: 1, optimizer: sgd, learning_rate: 0.5}\n"+
		"privacy: {simulated_population: 1000000, simulated_cohort: 10000, noise_multiplier: 1, epsilon: 8, clip_norm: %v}\n"+
		"shard: {size: 32, floor: 3, corrupt: 0, breach_bits: 0, anonymous: true}\ncohort: {population: 3, floor: 3}\n", folder, asJob, robberyPositions, r.clip)).learned()
	r.liar = truth.lies(t, func(job attack.Array) {
		job[attack.JobShardMax], job[attack.JobShardFloor], job[attack.JobCorrupt], job[attack.JobBits] = 24, 24, 50_000, 40
	})
	var err error
	if r.layout, err = model.NewLayout(r.base.Config, method, 2); err != nil {
		t.Fatal(err)
	}
	// The head looks along all places at once.
	start := make([]float32, r.layout.Size(0))
	for _, s := range r.layout.Spans(0) {
		if s.Kind != model.KindHead || len(s.Shape) != 2 {
			continue
		}
		along := make([][]float64, 0, robberyPositions)
		for p := range robberyPositions {
			along = append(along, pattern(p))
		}
		if first > 0 {
			along = [][]float64{pattern(common)}
		}
		for _, u := range along {
			for i, x := range u {
				x *= 0.3 / math.Sqrt(float64(len(along)))
				start[s.Offset+i] += float32(x)
				start[s.Offset+robberyWidth+i] -= float32(x)
			}
		}
	}
	msg, decoded, err := quant.PackUpdate(start, nil, "f32", "none")
	if err != nil {
		t.Fatal(err)
	}
	digest := quant.Digest(decoded)
	blob := r.Blob(msg)
	r.plans = slices.Clone(r.plans)
	r.plans[attack.PlanSeed], r.plans[attack.PlanSlice] = nil, attack.Array{blob, digest[:], "f32", "none"}
	r.plans[attack.PlanRate], r.plans[attack.PlanClip], r.plans[attack.PlanRotation] = 100.0, r.clip, r.seed[:]
	return r
}

// rob plays a round, and returns the victim's integer vector.
func (r *robbery) rob(ctx context.Context, s *attack.Session) []int32 {
	r.t.Helper()
	sh, err := attack.NewShard(ctx, r.Coordinator, s, r.plan(nil), robberyPeers)
	r.must(err)
	r.must(sh.Keyed(ctx))
	all := sh.Peers[0].All()
	r.must(sh.Masked(ctx, all))
	r.must(s.Say(ctx, sh.Round, attack.Masked, sh.Survivors(all, all)))
	signature := r.confirmed(ctx, s)
	r.must(s.Say(ctx, sh.Round, attack.Confirm, sh.Confirmations(signature, all, all, robberyPeers+1)))
	reveal, err := s.Receive(ctx, attack.Reveal)
	r.must(err)
	for _, m := range sh.Peers {
		m.U3 = all
	}
	vector, err := sh.Unmask(reveal)
	r.must(err)
	r.must(s.Send(ctx, attack.Outcome, attack.Array{r.round, attack.Abandoned, "", 0}))
	return vector
}

// lattice is the one that the vector was rounded on.
func (r *robbery) lattice() *quant.Lattice {
	r.t.Helper()
	scheme, err := quant.Lookup("nf4")
	r.must(err)
	l, err := quant.NewLattice(scheme, r.layout.Size(0), r.clip, r.seed)
	r.must(err)
	return l
}

// reads guesses the token at each place of the example behind a vector: the word whose row
// lacks that place's pattern most.
func (r *robbery) reads(vector []int32) []int32 {
	r.t.Helper()
	wide := make([]int64, len(vector))
	for i, x := range vector {
		wide[i] = int64(x)
	}
	update, err := r.lattice().DecodeMean(wide, 1)
	r.must(err)
	var rows []float32
	for _, s := range r.layout.Spans(0) {
		if strings.Contains(s.Name, "word_embeddings") {
			rows = update[s.Offset : s.Offset+s.Len]
		}
	}
	words := len(rows) / robberyWidth
	if r.first > 0 {
		return r.readsFirst(rows)
	}
	along := make([][]float64, words) // each word's row along each place's pattern
	total := 0.0
	for v := range words {
		along[v] = make([]float64, robberyPositions)
		for p := range robberyPositions {
			for i, x := range pattern(p) {
				along[v][p] += x * float64(rows[v*robberyWidth+i])
			}
			total += along[v][p]
		}
	}
	sign := 1.0
	if total < 0 { // the label's
		sign = -1
	}
	guess := make([]int32, robberyPositions)
	for p := range guess {
		best := math.Inf(-1)
		for v := range words {
			mean := 0.0
			for q, x := range along[v] {
				if q != p {
					mean += x / (robberyPositions - 1)
				}
			}
			if lacks := sign * (mean - along[v][p]); lacks > best {
				best, guess[p] = lacks, int32(v)
			}
		}
	}
	return guess
}

// readsFirst guesses the words at the first places, the clearest before the others: a word's
// row is what all places share less the place's own.
func (r *robbery) readsFirst(rows []float32) (guess []int32) {
	c, best := pattern(common), math.Inf(-1)
	for _, sign := range []float64{1, -1} { // the label's
		score := make([][]float64, r.first+1)
		for p := 1; p <= r.first; p++ {
			u := pattern(p)
			score[p] = make([]float64, len(rows)/robberyWidth)
			for v := range score[p] {
				for i := range u {
					score[p][v] += sign * (c[i] - u[i]) / math.Sqrt2 * float64(rows[v*robberyWidth+i])
				}
				if !r.word(int32(v)) {
					score[p][v] = math.Inf(-1)
				}
			}
		}
		found, total := make([]int32, robberyPositions), 0.0
		for range r.first {
			at, top := 0, math.Inf(-1)
			for p := 1; p <= r.first; p++ {
				if m := slices.Max(append(score[p], math.Inf(-1))); m > top {
					at, top = p, m
				}
			}
			v := slices.Index(score[at], top)
			found[at], total = int32(v), total+top
			clear(score[at])
			score[at] = nil
			for p := range score { // half of what is at one place is seen at every other
				if len(score[p]) > 0 {
					score[p][v] -= top / 2
				}
			}
		}
		if total > best {
			best, guess = total, found
		}
	}
	return guess
}

// word reports whether a token is one of those that texts are known to be of: a whole word.
func (r *robbery) word(id int32) bool {
	text := r.tok.Piece(id)
	return len(text) > 2 && !strings.HasPrefix(text, "##") && !strings.HasPrefix(text, "[")
}

// right is how much of a text's characters a guess has at their places, by whole tokens.
func (r *robbery) right(guess []int32, text string) float64 {
	ids := r.tok.EncodeFixed(text, robberyPositions)
	found, all := 0, 0
	for p, id := range ids {
		if id == int32(r.base.Config.PadTokenID) || p == 0 {
			continue
		}
		n := len(strings.TrimPrefix(r.tok.Piece(id), "##"))
		if all += n; guess[p] == id {
			found += n
		}
	}
	return float64(found) / float64(all)
}

// nearest is the text that a guess has most of.
func (r *robbery) nearest(guess []int32, texts []string) string {
	return slices.MaxFunc(texts, func(a, b string) int { return cmp.Compare(r.right(guess, a), r.right(guess, b)) })
}

// robberyTexts are a device's, of words that any text has, and a corpus of the words.
func robberyTexts(rnd *rand.Rand) (texts []string, lines string, corpus []string) {
	words := strings.Fields("account after again amount before bill branch called cash check clinic credit daughter dear doctor dollar evening family fever friday garden " +
		"happy hotel house illness invoice january kitchen lawyer letter loan medicine meeting monday money morning mother night number office order paid payment phone " +
		"please police private rent school secret seven silver sister station street summer sunday surgery taxi teacher ticket today train travel tuesday uncle visit water winter")
	var b strings.Builder
	for i := range 30 {
		var text []string
		for range 45 {
			text = append(text, words[rnd.IntN(len(words))])
		}
		texts = append(texts, strings.Join(text, " "))
		fmt.Fprintf(&b, "%s\t%s\n", []string{"one", "two"}[i%2], texts[i])
	}
	return texts, b.String(), slices.Repeat([]string{strings.Join(words, " ")}, 20)
}

// Against a device whose owner has accepted all that is asked for the robbery gives a text
// in every round, word for word. Each of the owner's limits by itself keeps it from
// beginning, and with a device's own noise of a tenth of the clip norm, added to what was
// read before as the device adds it, no text of 50 rounds comes back by more than a tenth
// (seven characters in a thousand do in the mean).
func TestHostileRobbery(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	texts, lines, corpus := robberyTexts(rnd)
	r := robs(t, corpus, 0)
	ctx := watchdog.Context(t)
	robbed := func(flags ...string) *ours {
		return joinsWith(t, t.TempDir(), "data.tsv", lines, r.token, append([]string{"--policy", filepath.Join("..", "..", "..", "examples", "policy.yaml")}, flags...)...)
	}
	accepted := []string{"--own-noise=0", "--example-bits=0", "--bits=0", "--unlogged", "--bases=any", "--tensors=any", "--examples=1"}
	for i := range len(accepted) {
		flag, _, _ := strings.Cut(accepted[i], "=")
		device := robbed(slices.Delete(slices.Clone(accepted), i, i+1)...)
		t.Cleanup(watchdog.Recv(t, "a session", r.Sessions, device.String).End)
		if code := device.exit(); code != 1 || !strings.Contains(device.String(), flag+"=") {
			t.Errorf("without %s it ends with %d: %s", flag, code, device)
		}
	}

	// Trying the job shows it, where its coordinator is one to distrust.
	leaks := robbed(append(slices.Clone(accepted), "--leak=0.1")...)
	t.Cleanup(watchdog.Recv(t, "a session", r.Sessions, leaks.String).End)
	if code := leaks.exit(); code != 1 || !regexp.MustCompile(`one update of yours, of 1 examples, shows (\d+) of \d+ tokens`).MatchString(leaks.String()) || !strings.Contains(leaks.String(), "--leak=") {
		t.Errorf("with a limit on what one update shows it ends with %d: %s", code, leaks)
	}

	device := robbed(accepted...)
	vectors, behind := r.robsTen(ctx, device, texts, 1)
	for _, v := range []float64{0.0094, 0.05, 0.1} {
		most, _ := r.readsThrough(v, vectors, behind)
		if v == 0.1 && most > 0.1 {
			t.Errorf("own noise of %v leaves %.0f %% of a text's characters", v, 100*most)
		}
	}
}

// robsTen plays ten rounds, of which nine or more must give so much of a text's characters as
// the robbery reads without noise, and returns the vectors and the text behind each.
func (r *robbery) robsTen(ctx context.Context, device *ours, texts []string, share float64) (vectors [][]int32, behind []string) {
	r.t.Helper()
	s := r.session(ctx, device)
	whole := 0
	for range 10 {
		vector := r.rob(ctx, s)
		guess := r.reads(vector)
		vectors, behind = append(vectors, vector), append(behind, r.nearest(guess, texts))
		if r.right(guess, behind[len(behind)-1]) >= share {
			whole++
		}
	}
	if whole < 9 {
		r.t.Errorf("%d of 10 rounds give a text: the tests of the defences prove nothing", whole)
	}
	return vectors, behind
}

// readsThrough adds a device's own noise to what ten rounds gave, as the device adds it, for
// 50 rounds, and says how much of a text's characters is read: at most, and in the mean.
func (r *robbery) readsThrough(v float64, vectors [][]int32, behind []string) (most, mean float64) {
	r.t.Helper()
	const rounds = 50
	variance, err := dp.OwnNoise{Multiplier: v}.Variance(r.lattice().B2())
	r.must(err)
	for i := range rounds {
		noisy := slices.Clone(vectors[i%len(vectors)])
		r.must(dp.AddOwn(noisy, variance, edge.OwnNoise([]byte("a robbery's seed"), uint64(i))))
		got := r.right(r.reads(noisy), behind[i%len(vectors)])
		most, mean = max(most, got), mean+got/rounds
	}
	r.t.Logf("%d places, own noise %v: of a text's characters %.0f %% at most, %.1f %% in the mean of %d rounds", r.first, v, 100*most, 100*mean, rounds)
	return most, mean
}

// The sharpest robbery that we have: a base in which all but the first places look the same,
// so that the whole of an update's norm is spent on the words that are there. Noise of a
// tenth of the clip norm leaves some of them, as its bound says: 72 bits are eleven words of
// 75. What comes back is within the bound, and little where the noise is three times that.
func TestHostileSharpRobbery(t *testing.T) {
	t.Parallel()
	const places, whole = 8, 0.12 // eight words of 45 have so much of the characters at least
	rnd := rand.New(rand.NewPCG(1, 2))
	texts, lines, corpus := robberyTexts(rnd)
	r := robs(t, corpus, places)
	device := joinsWith(t, t.TempDir(), "data.tsv", lines, r.token, "--policy", filepath.Join("..", "..", "..", "examples", "policy.yaml"),
		"--own-noise=0", "--example-bits=0", "--bits=0", "--unlogged", "--bases=any", "--tensors=any", "--examples=1")
	vectors, behind := r.robsTen(watchdog.Context(t), device, texts, whole)
	word := math.Log2(float64(len(strings.Fields(corpus[0]))))
	for _, v := range []float64{0.05, 0.1, 0.2, 0.3} {
		_, mean := r.readsThrough(v, vectors, behind)
		if bits, bound := mean*45*word, 1/(2*v*v*math.Ln2); bits > bound {
			t.Errorf("own noise of %v: %.0f bits a round come back, of %.0f that can", v, bits, bound)
		}
		if v == 0.3 && mean > 0.05 {
			t.Errorf("own noise of %v leaves %.1f %% of a text's characters in the mean", v, 100*mean)
		}
	}
}
