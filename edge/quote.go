package edge

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/quant/nf4"
	"github.com/starling-fl/starling/wasm"
)

// A Quote is the cost of a round on this device, measured before joining with the job's own program
// at its largest rank, on made-up weights and examples.
type Quote struct {
	Step   float64 `json:"step_seconds"`  // of one batch
	Start  float64 `json:"start_seconds"` // once: compiling the program, writing the weights
	Memory int64   `json:"memory_bytes"`  // of the program, the base's weights included

	Round RoundSize `json:"round"`
	Base  uint64    `json:"base_bytes"` // fetched once
}

// RoundSize is what a device transfers and computes in a round of the largest rank, as the
// coordinator states it.
type RoundSize struct {
	Batch  int    `json:"batch"`
	Steps  int    `json:"steps"` // at most, where the job counts epochs
	Epochs int    `json:"epochs"`
	Down   uint64 `json:"down"` // bytes
	Up     uint64 `json:"up"`
}

// Work estimates how long a round with the given number of examples computes, in seconds.
func (q Quote) Work(examples int) float64 {
	steps := q.Round.Steps
	if q.Round.Epochs > 0 {
		steps = min(steps, q.Round.Epochs*((examples+q.Round.Batch-1)/q.Round.Batch))
	}
	return float64(max(1, steps)) * q.Step
}

// programsPath is where a coordinator names the programs of its greatest rank.
const programsPath = aboutPath + "/programs"

// offered is a program as the coordinator names it there.
type offered struct {
	Host   string `json:"host"`
	SHA256 string `json:"sha256"`
	Size   uint64 `json:"size"`
}

// mostOffered bounds that answer, bytes.
const mostOffered = 4096

// longestTrial is the most work that a trial begins, in units: some ten seconds of dense
// vector code on one core. What is more is not tried, since a step cannot be cut short.
const longestTrial = unitsAMinute / 6

// ErrLongTrial reports a program whose single step takes too long to be tried.
var ErrLongTrial = errors.New("edge: one step of the job takes too long to be tried")

// AskAbout fetches what the coordinator says of its job, the JSON of /v1/job, into a value. Nobody enrols. It reads
// these fields of the configuration: Token, AllowPlain, HTTP and Handshake.
func AskAbout(ctx context.Context, cfg Config, into any) error {
	blobs, done, err := cfg.asking()
	if err != nil {
		return err
	}
	defer done()
	return blobs.told(ctx, cfg.Handshake, aboutPath, mostAbout, into)
}

// AskCard fetches the job's signed privacy card, the bytes of /v1/job/card; nil if the coordinator has none. Nobody
// enrols. It reads these fields of the configuration: Token, AllowPlain, HTTP and Handshake.
func AskCard(ctx context.Context, cfg Config) ([]byte, error) {
	blobs, done, err := cfg.asking()
	if err != nil {
		return nil, err
	}
	defer done()
	b, status, err := blobs.answer(ctx, cfg.Handshake, aboutPath+"/card", mostAbout)
	if err != nil || status != statusOK {
		return nil, err
	}
	return b, nil
}

// AskQuote fetches the job's program and runs its steps for the given time, at least one. Nobody
// enrols, nothing is sent, and neither base nor data is touched. It reads these fields of the
// configuration: Token, Policy, TrustLocal, AllowPlain, MaxBlob, HTTP and Handshake. The error lists the limits of memory
// and work that the program is beyond (PolicyErrors).
func AskQuote(ctx context.Context, cfg Config, cores int, lasts time.Duration) (q Quote, err error) {
	blobs, done, err := cfg.asking()
	if err != nil {
		return Quote{}, err
	}
	defer done()
	var about struct {
		Round     RoundSize `json:"round"`
		BaseBytes uint64    `json:"base_bytes"`
	}
	if err := blobs.told(ctx, cfg.Handshake, aboutPath, mostAbout, &about); err != nil {
		return Quote{}, err
	}
	if n := about.Round.Batch; n < 1 || n > cfg.Policy.Batch {
		return Quote{}, fmt.Errorf("%w: a batch of %d examples, this device's limit is %d", ErrPolicy, n, cfg.Policy.Batch)
	}
	var list []offered
	if err := blobs.told(ctx, cfg.Handshake, programsPath, mostOffered, &list); err != nil {
		return Quote{}, err
	}
	ref, err := chooseOffered(list)
	if err != nil {
		return Quote{}, err
	}
	code, err := blobs.get(ctx, ref, false, nil)
	if err != nil {
		return Quote{}, fmt.Errorf("%w: program: %w", ErrUnreachable, err)
	}
	if q, err = timeProgram(ctx, code, about.Round, cores, lasts, cfg.Policy); err != nil {
		return Quote{}, err
	}
	q.Round, q.Base = about.Round, about.BaseBytes
	return q, nil
}

// told reads what a coordinator answers to anyone who asks, as JSON.
func (f *fetcher) told(ctx context.Context, within time.Duration, path string, most int64, to any) error {
	b, status, err := f.answer(ctx, within, path, most+1)
	if err != nil {
		return err
	}
	if status != statusOK {
		return fmt.Errorf("%w: it answers %d to a question for %s", ErrUnreachable, status, path)
	}
	if int64(len(b)) > most {
		return &ProtocolError{fmt.Errorf("%s: more than %d bytes", path, most)}
	}
	if err := json.Unmarshal(b, to); err != nil {
		return &ProtocolError{fmt.Errorf("%s: %w", path, err)}
	}
	return nil
}

// answer reads the first most bytes of what a coordinator answers to anyone who asks, and its status. The error wraps
// ErrUnreachable.
func (f *fetcher) answer(ctx context.Context, within time.Duration, path string, most int64) (b []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	resp, err := f.client.open(ctx, strings.TrimRight(f.token.URL, "/")+path, 0, "")
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer resp.body.Close()
	b, err = io.ReadAll(io.LimitReader(resp.body, most))
	if err != nil && resp.status == statusOK {
		return b, 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return b, resp.status, nil
}

// chooseOffered takes this host's program, or else the first.
func chooseOffered(list []offered) (ref wire.Blob, err error) {
	if len(list) == 0 {
		return ref, &ProtocolError{errors.New("list of programs: it is empty")}
	}
	of := list[max(0, slices.IndexFunc(list, func(p offered) bool { return p.Host == host }))]
	sum, err := hex.DecodeString(of.SHA256)
	if err != nil || len(sum) != len(ref.SHA256) {
		return ref, &ProtocolError{fmt.Errorf("list of programs: sha256 %.80q is not 64 hexadecimal digits", of.SHA256)}
	}
	return wire.Blob{SHA256: [32]byte(sum), Size: of.Size}, nil
}

// mostSteps is more than any policy allows in a round.
const mostSteps = 1 << 20

// timeProgram runs steps of a program on made-up values until the time is up, within a
// policy's limits.
func timeProgram(ctx context.Context, code []byte, round RoundSize, cores int, lasts time.Duration, policy *Policy) (q Quote, err error) {
	cfg := wasm.Config{Cores: cores}
	cfg.Limits.MemoryPages = mostPages // the owner's limit, below, is the one
	began := time.Now()
	program, err := wasm.Load(ctx, code, cfg)
	if err != nil {
		return q, fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	b := &loaded{program: program}
	defer func() { err = errors.Join(err, b.close()) }()
	m := program.Manifest()
	rows := madeUpRows(m, round.Batch)
	b.proof = newProof(program, round.Batch, rows)
	pieces := round.Batch / rows
	if err := errors.Join(checkMemory(b.pages, policy.Memory), checkWork(b.bound(min(max(1, round.Steps), mostSteps)*pieces), policy.Work)); err != nil {
		return q, err
	}
	if err := b.tooLong(pieces); err != nil {
		return q, err
	}
	q.Memory = int64(b.pages) << 16
	if b.instance, err = program.NewInstance(ctx); err != nil {
		return q, err
	}
	if err := b.madeUp(m); err != nil {
		return q, err
	}
	step := func() error {
		for range pieces {
			if err := b.instance.Step(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	first := time.Now()
	if err := step(); err != nil { // it also prepares
		return q, err
	}
	q.Start, q.Step = first.Sub(began).Seconds(), time.Since(first).Seconds()
	n, from := 0, time.Now()
	for time.Since(began)+time.Duration(q.Step*float64(time.Second)) < lasts {
		if err := step(); err != nil {
			return q, err
		}
		n++
		q.Step = time.Since(from).Seconds() / float64(n)
	}
	return q, nil
}

// tooLong refuses to try so many steps of a program where they may take longer than a trial.
func (p proof) tooLong(steps int) error {
	if units := p.bound(steps); units > longestTrial {
		return fmt.Errorf("%w: some %.0f s", ErrLongTrial, 60*units/unitsAMinute)
	}
	return nil
}

// madeUpRows is how many examples a program takes at once: its inputs' first dimension,
// where that divides the batch.
func madeUpRows(m *wasm.Manifest, batch int) int {
	for _, in := range m.Inputs {
		if len(in.Shape) > 0 && in.Shape[0] >= 1 && batch%in.Shape[0] == 0 {
			return in.Shape[0]
		}
	}
	return batch
}

// madeUp fills a program: weights around zero and none of them tiny, since processors take
// longer for numbers close to zero; examples of the first token, all of which count.
func (b *loaded) madeUp(m *wasm.Manifest) error {
	numbers := func(n int, at func(i int) float32) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = at(i)
		}
		return v
	}
	weight := func(i int) float32 { return float32(i%7-3) / 64 }
	one := func(int) float32 { return 1 }
	for i := range m.Frozen {
		f := &m.Frozen[i]
		n := elements(f.Shape)
		var err error
		if f.NF4 == nil {
			err = b.instance.WriteFrozen(f.Name, numbers(n, weight))
		} else {
			err = b.instance.WriteFrozenNF4(f.Name, make([]byte, (n+1)/2), numbers(nf4.Blocks(n, f.NF4.Block), one))
		}
		if err != nil {
			return err
		}
	}
	for _, s := range m.State {
		if err := b.instance.WriteFloat32(s.Name, make([]float32, elements(s.Shape))); err != nil {
			return err
		}
	}
	for _, in := range m.Inputs {
		var err error
		switch {
		case in.DType == wasm.Int32:
			err = b.instance.WriteInt32(in.Name, make([]int32, elements(in.Shape)))
		case in.Name == trainer.InputRate:
			err = b.instance.WriteFloat32(in.Name, []float32{1e-6})
		case in.Name == trainer.InputKept: // the whole step is timed, convolutions and all
			err = b.instance.WriteFloat32(in.Name, []float32{0})
		default:
			err = b.instance.WriteFloat32(in.Name, numbers(elements(in.Shape), one))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
