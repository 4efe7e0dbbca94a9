package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-fl/starling/job/training"
)

func job() *Job {
	return &Job{
		Instance: [16]byte{1}, Name: "invoices", Labels: []string{"a", "b"}, Base: Blob{SHA256: [32]byte{9}, Size: 10},
		RankMin: 1, RankMax: 8, Alpha: 16, Sequence: 32, Announced: training.Announced{Batch: 8, Optimizer: "sgd"}, Rounds: 20,
		Uplink: "nf4", Providers: 12, ProviderRate: 0.5, ShardMax: 64, ShardFloor: 3, CorruptPPM: 50_000, BreachBits: 44,
		Privacy: Privacy{Private: true, SamplingRate: 0.5, NoiseMultiplier: 1, Delta: 1e-6, Budget: 2, Population: 100},
	}
}

func plan() *Plan {
	return &Plan{Task: [32]byte{1}, Round: 7, Version: 3, Rank: 4, Values: 1000, Seed: make([]byte, 8), Rotation: [32]byte{2},
		ClipNorm: 1, CountCoordinates: 3, CountSymbol: 12, Steps: 4, Rate: 0.1, Programs: []Program{{Host: "wazero", Blob: Blob{SHA256: [32]byte{3}, Size: 4}}}}
}

type maskedBytes []byte

func (m maskedBytes) AppendBinary(dst []byte) ([]byte, error) { return append(dst, m...), nil }
func (maskedBytes) MaskedUpdate()                             {}

// messages is one valid value of every kind.
func messages(t testing.TB) []Message {
	p, err := plan().AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job().AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	u, err := NewUpload(7, maskedBytes("0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	chunk, _ := u.Chunk(0)
	return []Message{
		&Hello{MinVersion: 1, MaxVersion: 1, Nonce: [32]byte{4}, Agent: "test"},
		&Welcome{Version: 1, Challenge: [32]byte{5}},
		&Enrol{Identity: [32]byte{6}, Session: []byte("abc"), Task: make([]byte, 32)},
		&Enrolled{Session: make([]byte, 32), Job: j},
		&Wait{RetryMillis: 10, Reason: "not drawn"},
		&Assignment{Plan: p, Patches: []Patch{{Blob: Blob{Size: 1}}}, Millis: 100},
		&Turn{Round: 7, Number: 2, Payload: []byte{1, 2}},
		chunk,
		&Resume{Round: 7, Held: 3},
		&Outcome{Round: 7, Result: OutcomeCommitted},
		&Refuse{Round: 7, Code: CodePlan, Reason: "no"},
		&Finished{Version: 20, Model: Model{Rank: 2, Adapter: Blob{Size: 4}, Programs: []Program{{Host: "v8", Blob: Blob{Size: 9}}}, Archive: Blob{Size: 5}}},
		&Ready{},
		&Error{Code: CodeBusy, Text: "full", RetryMillis: 1},
	}
}

func encoded(t testing.TB, m Message) []byte {
	t.Helper()
	b, err := Append(nil, m)
	if err != nil {
		t.Fatalf("%s: %v", m.Kind(), err)
	}
	return b
}

func sender(k Kind) Direction {
	if flow[k].from == FromCoordinator {
		return FromCoordinator
	}
	return FromDevice
}

func TestEveryKindSurvives(t *testing.T) {
	seen := map[Kind]bool{}
	for _, m := range messages(t) {
		seen[m.Kind()] = true
		frame := encoded(t, m)
		back, err := Decode(frame, sender(m.Kind()))
		if err != nil {
			t.Fatalf("%s: %v", m.Kind(), err)
		}
		if reflect.TypeOf(back) != reflect.TypeOf(m) || !bytes.Equal(encoded(t, back), frame) {
			t.Errorf("%s: came back as %#v", m.Kind(), back)
		}
	}
	for k := Kind(1); k < kindEnd; k++ {
		if !seen[k] {
			t.Errorf("no example of %s", k)
		}
		if flow[k].make().Kind() != k {
			t.Errorf("flow makes a %s for %s", flow[k].make().Kind(), k)
		}
	}
}

func TestWrongDirectionIsRefused(t *testing.T) {
	for _, m := range messages(t) {
		if flow[m.Kind()].from == FromDevice|FromCoordinator {
			continue
		}
		if _, err := Decode(encoded(t, m), flow[m.Kind()].from^3); !errors.Is(err, ErrDirection) {
			t.Errorf("%s from the wrong side: %v", m.Kind(), err)
		}
	}
}

func TestFramesThatAreNotCanonicalAreRefused(t *testing.T) {
	w := encoded(t, &Resume{Round: 7, Held: 3, Received: 10})
	for name, frame := range map[string][]byte{
		"empty":           {},
		"kind 0":          {0, 0x80},
		"unknown kind":    {200, 0x80},
		"truncated":       w[:len(w)-1],
		"trailing byte":   append(bytes.Clone(w), 0),
		"long integer":    {byte(KindResume), 0x83, 0x18, 7, 3, 10},
		"one field less":  {byte(KindResume), 0x82, 7, 3},
		"one field more":  {byte(KindResume), 0x84, 7, 3, 10, 1},
		"indefinite":      {byte(KindResume), 0x9f, 7, 3, 10, 0xff},
		"map":             {byte(KindResume), 0xa0},
		"tagged":          {byte(KindResume), 0x83, 0xc1, 7, 3, 10},
		"negative":        {byte(KindResume), 0x83, 0x20, 3, 10},
		"null":            {byte(KindResume), 0xf6},
		"null field":      {byte(KindResume), 0x83, 0xf6, 3, 10},
		"short challenge": {byte(KindWelcome), 0x82, 1, 0x41, 1},
		"huge array":      {byte(KindResume), 0x9b, 0, 0, 0, 1, 0, 0, 0, 0},
		"huge string":     {byte(KindTurn), 0x84, 7, 1, 0x5b, 0, 0, 0, 1, 0, 0, 0, 0},
	} {
		if m, err := Decode(frame, FromCoordinator); err == nil {
			t.Errorf("%s: accepted as %#v", name, m)
		}
	}
}

func TestSizeIsCheckedBeforeTheBody(t *testing.T) {
	frame := make([]byte, smallMessage+1)
	frame[0] = byte(KindWait)
	var limit *LimitError
	if _, err := Decode(frame, FromCoordinator); !errors.As(err, &limit) || limit.Most != smallMessage {
		t.Errorf("oversize frame: %v", err)
	}
}

func TestOnlyAMaskedUpdateCanBeFramed(t *testing.T) {
	if _, err := Append(nil, &Update{Round: 1, Total: 4, Data: []byte("data")}); !errors.Is(err, ErrUnmasked) {
		t.Errorf("hand-made update was framed: %v", err)
	}
}

func TestFieldsOutOfRangeAreRefused(t *testing.T) {
	for name, m := range map[string]Message{
		"hello.min_version":     &Hello{MinVersion: 2, MaxVersion: 1},
		"hello.agent":           &Hello{MinVersion: 1, MaxVersion: 1, Agent: strings.Repeat("x", 65)},
		"enrol.task":            &Enrol{Task: []byte{1}},
		"enrolled.session":      &Enrolled{Session: []byte{1}},
		"turn.number":           &Turn{Number: 6},
		"resume.held":           &Resume{Held: 0x20},
		"outcome.result":        &Outcome{Result: 9},
		"refuse.code":           &Refuse{Code: 100},
		"error.code":            &Error{Code: 0},
		"assignment.plan":       &Assignment{},
		"assignment.patch.blob": &Assignment{Plan: []byte{1}, Patches: []Patch{{}}},
		"wait.reason":           &Wait{Reason: strings.Repeat("x", MaxText+1)},
	} {
		if _, err := Append(nil, m); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Job){
		"job.labels":                func(j *Job) { j.Labels = []string{"a", "a"} },
		"job.label ":                func(j *Job) { j.Labels = []string{"a", ""} },
		"job.rank_min":              func(j *Job) { j.RankMin = 9 },
		"job.providers":             func(j *Job) { j.Providers = MaxProviders + 1 },
		"job.provider_rate":         func(j *Job) { j.ProviderRate = 1.5 },
		"both or neither":           func(j *Job) { j.Providers = 0 },
		"job.alpha":                 func(j *Job) { j.Alpha = math.Inf(1) },
		"job.corrupt_ppm":           func(j *Job) { j.CorruptPPM = 1_000_001 },
		"job.shard_floor":           func(j *Job) { j.ShardFloor = 1 },
		"job.privacy.delta":         func(j *Job) { j.Privacy.Delta = math.NaN() },
		"job.privacy.accountant":    func(j *Job) { j.Privacy.Accountant = "moments" },
		"job.base.size":             func(j *Job) { j.Base = Blob{} },
		"job.privacy.sampling_rate": func(j *Job) { j.Privacy.SamplingRate = 1.5 },
	} {
		j := job()
		change(j)
		if _, err := j.AppendBinary(nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Plan){
		"plan.round":             func(p *Plan) { p.Round = 0 },
		"plan.seed":              func(p *Plan) { p.Seed = []byte{1} },
		"both seed":              func(p *Plan) { p.Slice.Format = "f32" },
		"plan.slice.blob":        func(p *Plan) { p.Seed = nil },
		"plan.rate":              func(p *Plan) { p.Rate = -1 },
		"plan.clip_norm":         func(p *Plan) { p.ClipNorm = 0 },
		"plan.count_coordinates": func(p *Plan) { p.CountCoordinates = MaxCount + 1 },
		"plan.count_symbol ":     func(p *Plan) { p.CountSymbol = 1 << 31 },
		"both or neither":        func(p *Plan) { p.CountSymbol = 0 },
		"plan.programs":          func(p *Plan) { p.Programs = make([]Program, MaxPrograms+1) },
		"plan.program.bl":        func(p *Plan) { p.Programs[0].Blob.Size = 0 },
		"plan.steps is 0,":       func(p *Plan) { p.Steps = 0 },
	} {
		p := plan()
		change(p)
		if _, err := p.AppendBinary(nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each field of the plan must move its bytes, over which P is the hash: a
// server cannot change one and keep P.
func TestEveryFieldOfThePlanMovesItsBytes(t *testing.T) {
	base, _ := plan().AppendBinary(nil)
	for i, change := range []func(*Plan){
		func(p *Plan) { p.Task[31]++ }, func(p *Plan) { p.Round++ }, func(p *Plan) { p.Version++ }, func(p *Plan) { p.Rank++ },
		func(p *Plan) { p.Values++ }, func(p *Plan) { p.Seed[0]++ }, func(p *Plan) { p.Rotation[0]++ }, func(p *Plan) { p.Steps++ },
		func(p *Plan) { p.Rate *= 2 }, func(p *Plan) { p.Programs[0].Blob.SHA256[0]++ },
		func(p *Plan) { p.ClipNorm *= 2 }, func(p *Plan) { p.CountCoordinates++ }, func(p *Plan) { p.CountSymbol++ },
		func(p *Plan) { p.Head = append(p.Head, 1) }, func(p *Plan) { p.Groups++ },
	} {
		p := plan()
		change(p)
		b, err := p.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(b, base) {
			t.Errorf("change %d leaves the bytes", i)
		}
	}
}

func TestAssemblyInAnyCut(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 3*MaxChunk+17)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	up, err := NewUpload(5, maskedBytes(data))
	if err != nil {
		t.Fatal(err)
	}
	as, err := NewAssembly(5, up.Size())
	if err != nil {
		t.Fatal(err)
	}
	for {
		u, _ := up.Chunk(as.Received())
		if u == nil {
			break
		}
		back, err := Decode(encoded(t, u), FromDevice)
		if err != nil {
			t.Fatal(err)
		}
		if err := as.Add(back.(*Update)); err != nil {
			t.Fatal(err)
		}
		again, _ := up.Chunk(u.Offset / 2) // a reconnect may go back to any place
		if err := as.Add(again); err != nil {
			t.Fatalf("same bytes again: %v", err)
		}
	}
	if got, whole := as.Bytes(); !whole || !bytes.Equal(got, data) {
		t.Error("assembled bytes differ")
	}
	for name, u := range map[string]*Update{
		"other bytes": {Round: 5, Total: up.Size(), Offset: 0, Data: []byte{data[0] + 1}},
		"other round": {Round: 6, Total: up.Size(), Offset: 0, Data: data[:1]},
		"other total": {Round: 5, Total: up.Size() + 1, Offset: 0, Data: data[:1]},
		"past end":    {Round: 5, Total: up.Size(), Offset: up.Size(), Data: data[:1]},
	} {
		if as.Add(u) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	fresh, _ := NewAssembly(5, up.Size())
	if fresh.Add(&Update{Round: 5, Total: up.Size(), Offset: 1, Data: data[1:2]}) == nil {
		t.Error("gap: accepted")
	}
}

func TestProofsBindEverySide(t *testing.T) {
	h, w, id := &Hello{MinVersion: 1, MaxVersion: 1}, &Welcome{Version: 1}, [32]byte{1}
	p := DeviceProof([]byte("s"), h, w, id)
	if !EqualProof(p, DeviceProof([]byte("s"), h, w, id)) {
		t.Error("proof does not repeat")
	}
	if p == CoordinatorProof([]byte("s"), h, w, id, [32]byte{}) || p == DeviceProof([]byte("t"), h, w, id) ||
		p == DeviceProof([]byte("s"), &Hello{MinVersion: 1, MaxVersion: 1, Nonce: [32]byte{1}}, w, id) ||
		p == DeviceProof([]byte("s"), h, &Welcome{Version: 1, Challenge: [32]byte{1}}, id) ||
		p == DeviceProof([]byte("s"), h, w, [32]byte{2}) {
		t.Error("proof leaves something out")
	}
	if bytes.Equal(EnrolBytes(h, w, id, 0, nil, nil), EnrolBytes(h, w, id, 0, nil, []byte{1})) ||
		bytes.Equal(EnrolBytes(h, w, id, 0, nil, []byte{1}), EnrolBytes(h, w, id, 0, []byte{1}, nil)) ||
		bytes.Equal(EnrolBytes(h, w, id, 0, nil, nil), EnrolBytes(h, w, id, 2, nil, nil)) ||
		bytes.Equal(EnrolBytes(h, w, id, 0, nil, nil), EnrolBytes(h, &Welcome{Version: w.Version, Challenge: w.Challenge, Task: [32]byte{1}}, id, 0, nil, nil)) {
		t.Error("signature leaves something out")
	}
}

func TestToken(t *testing.T) {
	tok := Token{URL: "https://example.org:8443", Pin: make([]byte, 32), Secret: []byte("secret")}
	back, err := ParseToken(tok.String())
	if err != nil || !reflect.DeepEqual(back, tok) {
		t.Fatalf("token came back as %+v: %v", back, err)
	}
	first, err := code.Append(nil, &oldToken{URL: tok.URL, Pin: tok.Pin, Secret: tok.Secret})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseToken(oldTokenPrefix + base64.RawURLEncoding.EncodeToString(first)); err != nil || !reflect.DeepEqual(back, tok) {
		t.Errorf("a token of the first form came back as %+v: %v", back, err)
	}
	tok.Task, tok.Authority = make([]byte, 32), make([]byte, 32)
	if back, err := ParseToken(tok.String()); err != nil || !reflect.DeepEqual(back, tok) {
		t.Fatalf("token came back as %+v: %v", back, err)
	}
	if got := tok.Endpoint(); got != "wss://example.org:8443/v1/join" {
		t.Errorf("endpoint %s", got)
	}
	if got := (Token{URL: "http://127.0.0.1:80/"}).BlobURL([32]byte{0xab}); !strings.HasPrefix(got, "http://127.0.0.1:80/blob/ab00") {
		t.Errorf("blob at %s", got)
	}
	for _, url := range []string{"https://example.org/fl/two", "https://example.org/fl/two/"} { // below a proxy's path
		below, err := ParseToken(Token{URL: url}.String())
		if err != nil || below.Endpoint() != "wss://example.org/fl/two/v1/join" || !strings.HasPrefix(below.BlobURL([32]byte{}), "https://example.org/fl/two/blob/00") {
			t.Errorf("%s: %s, %s, %v", url, below.Endpoint(), below.BlobURL([32]byte{}), err)
		}
	}
	for name, s := range map[string]string{
		"other word": "hello", "bad base64": tokenPrefix + "!!", "not cbor": tokenPrefix + "AAAA",
		"short pin":        Token{URL: "https://a", Pin: []byte{1}}.String(),
		"pin on http":      Token{URL: "http://a", Pin: make([]byte, 32)}.String(),
		"ftp":              Token{URL: "ftp://a"}.String(),
		"a path upwards":   Token{URL: "http://a/b/../c"}.String(),
		"a doubled slash":  Token{URL: "http://a//b"}.String(),
		"an escaped path":  Token{URL: "http://a/b%2fc"}.String(),
		"a path of spaces": Token{URL: "http://a/b c"}.String(),
		"with a fragment":  Token{URL: "http://a/b#c"}.String(),
		"an empty query":   Token{URL: "http://a/b?"}.String(),
		"with a query":     Token{URL: "http://a?b"}.String(),
		"short task":       Token{URL: "http://a", Task: []byte{1}}.String(),
		"long secret":      Token{URL: "http://a", Secret: make([]byte, MaxSecret+1)}.String(),
	} {
		if _, err := ParseToken(s); !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A token that was copied in part, or broken over lines, is said to be so, and how one looks.
func TestBrokenTokens(t *testing.T) {
	whole := Token{URL: "https://a.example", Secret: make([]byte, 32)}.String()
	for s, want := range map[string]string{
		whole[:30] + " " + whole[30:]: "its character 31 is none of these",
		whole[:len(tokenPrefix)+5]:    "it is cut",
		whole[:len(tokenPrefix)+8]:    "it is damaged or cut",
	} {
		if _, err := ParseToken(s); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "base64") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range messages(f) {
		f.Add(encoded(f, m), uint8(sender(m.Kind())))
	}
	f.Fuzz(func(t *testing.T, frame []byte, from uint8) {
		m, err := Decode(frame, Direction(from))
		if err != nil {
			return
		}
		again, err := Append(nil, m)
		if err != nil || !bytes.Equal(again, frame) {
			t.Fatalf("%x decodes, but encodes as %x (%v)", frame, again, err)
		}
	})
}

func FuzzParseJob(f *testing.F) {
	b, _ := job().AppendBinary(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := ParseJob(b)
		if err != nil {
			return
		}
		if again, err := j.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x parses, but encodes as %x (%v)", b, again, err)
		}
	})
}

func FuzzParsePlan(f *testing.F) {
	b, _ := plan().AppendBinary(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePlan(b)
		if err != nil {
			return
		}
		if again, err := p.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x parses, but encodes as %x (%v)", b, again, err)
		}
	})
}

func FuzzParseToken(f *testing.F) {
	f.Add(Token{URL: "https://example.org", Pin: make([]byte, 32), Secret: []byte("x")}.String())
	f.Fuzz(func(t *testing.T, s string) {
		tok, err := ParseToken(s)
		if err != nil {
			return
		}
		if got := tok.String(); got != strings.TrimSpace(s) {
			t.Fatalf("%q parses, but prints as %q", s, got)
		}
	})
}
