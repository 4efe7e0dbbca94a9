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

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/attack"
	"github.com/starling-fl/starling/internal/watchdog"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/tokenizer"
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

// robberyBase passes each place's pattern through and nothing else: words are all zero, so
// that an update of a word's row is the gradient at the places where it stands, which
// lacks exactly those places' patterns. Attention and feed-forward add nothing, and small
// embeddings make their gradients a thousand times all others'.
func robberyBase(t *testing.T, corpus []string) (*model.Base, *tokenizer.WordPiece) {
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
				for i, x := range pattern(p) {
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
func robs(t *testing.T, corpus []string) *robbery {
	t.Helper()
	r := &robbery{clip: 10, seed: [32]byte{7}}
	r.base, r.tok = robberyBase(t, corpus)
	folder := t.TempDir()
	if err := r.base.WriteDir(folder); err != nil {
		t.Fatal(err)
	}
	truth := servesJob(t, fmt.Sprintf("name: robbed\nlabels: [one, two]\nrounds: 500\nbase: %s\n"+
		"adapter: {method: full, sequence: %d}\ntraining: {steps: 1, batch: 1, optimizer: sgd, learning_rate: 0.5}\n"+
		"privacy: {simulated_population: 1000000, simulated_cohort: 10000, noise_multiplier: 1, epsilon: 8, clip_norm: %v}\n"+
		"shard: {size: 32, floor: 3, corrupt: 0, breach_bits: 0, anonymous: true}\ncohort: {population: 3, floor: 3}\n", folder, robberyPositions, r.clip)).learned()
	r.liar = truth.lies(t, func(job attack.Array) {
		job[attack.JobShardMax], job[attack.JobShardFloor], job[attack.JobCorrupt], job[attack.JobBits] = 24, 24, 50_000, 40
	})
	var err error
	method := model.Method{Kind: model.MethodFull, RMax: 1, Alpha: 1}
	if r.layout, err = model.NewLayout(r.base.Config, method, 2); err != nil {
		t.Fatal(err)
	}
	// The head looks along all places at once.
	start := make([]float32, r.layout.Size(0))
	for _, s := range r.layout.Spans(0) {
		if s.Kind != model.KindHead || len(s.Shape) != 2 {
			continue
		}
		for p := range robberyPositions {
			for i, x := range pattern(p) {
				x *= 0.3 / math.Sqrt(robberyPositions)
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
	reveal, err := s.Hear(ctx, attack.Reveal)
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

// right is how much of a text's characters a guess has at their places, by whole tokens.
func (r *robbery) right(guess []int32, text string) float64 {
	ids := r.tok.EncodeFixed(text, robberyPositions)
	found, all := 0, 0
	for p, id := range ids {
		if id == int32(r.base.Config.PadTokenID) || p == 0 {
			continue
		}
		if all++; guess[p] == id {
			found++
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
// (half a percent of its words do in the mean, by chance five of 46 with 1e-4).
func TestHostileRobbery(t *testing.T) {
	const policy = 310
	rnd := rand.New(rand.NewPCG(1, 2))
	texts, lines, corpus := robberyTexts(rnd)
	r := robs(t, corpus)
	ctx := watchdog.Context(t)
	robbed := func(flags ...string) *ours {
		return joinsWith(t, t.TempDir(), "data.tsv", lines, r.token, append([]string{"--policy", filepath.Join("..", "..", "..", "examples", "policy.yaml")}, flags...)...)
	}
	accepted := []string{"--own-noise=0", "--bits=0", "--bases=any", "--tensors=any", "--examples=1"}
	for i := range len(accepted) {
		flag, _, _ := strings.Cut(accepted[i], "=")
		device := robbed(slices.Delete(slices.Clone(accepted), i, i+1)...)
		if flag == "--examples" { // which a round's plan shows
			s := r.session(ctx, device)
			r.must(s.Assign(ctx, r.plan(nil)))
			if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != policy {
				t.Errorf("a round of one example: %v, %v", f, err)
			}
			device.says(regexp.QuoteMeta(flag + "="))
			device.stop()
			device.exit()
			continue
		}
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
	s := r.session(ctx, device)
	var vectors [][]int32
	var behind []string // each vector's text
	whole := 0
	for range 10 {
		vector := r.rob(ctx, s)
		guess := r.reads(vector)
		vectors, behind = append(vectors, vector), append(behind, r.nearest(guess, texts))
		if r.right(guess, behind[len(behind)-1]) == 1 {
			whole++
		}
	}
	if whole < 9 {
		t.Errorf("%d of 10 rounds give a text: the tests of the defences prove nothing", whole)
	}
	for _, v := range []float64{0.0094, 0.05, 0.1} {
		variance, err := dp.OwnNoise{Multiplier: v}.Variance(r.lattice().B2())
		r.must(err)
		most, sum := 0.0, 0.0
		for i := range uint64(50) {
			noisy := slices.Clone(vectors[i%10])
			r.must(dp.AddOwn(noisy, variance, edge.OwnNoise([]byte("a robbery's seed"), i)))
			got := r.right(r.reads(noisy), behind[i%10])
			most, sum = max(most, got), sum+got
		}
		t.Logf("own noise %v: of a text %.0f %% at most, %.1f %% in the mean of 50 rounds", v, 100*most, 2*sum)
		if v == 0.1 && most > 0.1 {
			t.Errorf("own noise of %v leaves %.0f %% of a text", v, 100*most)
		}
	}
}
