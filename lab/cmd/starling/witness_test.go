package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/secagg/log"
)

// aWitness signs what continues from what it has seen (C2SP tlog-witness).
type aWitness struct {
	key ed25519.PrivateKey

	mu    sync.Mutex
	size  int64    // by mu
	root  log.Hash // by mu
	asked int      // by mu
}

const witnessName = "witness.example"

// public is the witness's key as text.
func (w *aWitness) public() string {
	key := append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(witnessName+"\n"), key...))
	return fmt.Sprintf("%s+%x+%s", witnessName, sum[:4], base64.StdEncoding.EncodeToString(key))
}

func (w *aWitness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	before, signed, ok := strings.Cut(string(b), "\n\n")
	lines := strings.Split(before, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	text, _, _ := strings.Cut(signed, "\n\n")
	said := strings.Split(text, "\n")
	if !ok || err != nil || len(said) != 3 || r.URL.Path != "/w/add-checkpoint" {
		http.Error(rw, "bad request", http.StatusBadRequest)
		return
	}
	if old != w.size {
		rw.Header().Set("Content-Type", "text/x.tlog.size")
		rw.WriteHeader(http.StatusConflict)
		fmt.Fprintf(rw, "%d\n", w.size)
		return
	}
	var proof []log.Hash
	for _, line := range lines[1:] {
		h, _ := base64.StdEncoding.DecodeString(line)
		proof = append(proof, log.Hash(h))
	}
	size, _ := strconv.ParseInt(said[1], 10, 64)
	root, _ := base64.StdEncoding.DecodeString(said[2])
	head := log.Head{Size: size, Root: log.Hash(root)}
	if err := log.CheckConsistency(proof, log.Head{Size: w.size, Root: w.root}, head); err != nil {
		http.Error(rw, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.size, w.root = head.Size, head.Root
	const at = 1_800_000_000
	key := append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(witnessName+"\n"), key...))
	sig := binary.BigEndian.AppendUint64(sum[:4:4], at)
	sig = append(sig, ed25519.Sign(w.key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", at, text))...)
	fmt.Fprintf(rw, "\u2014 %s %s\n", witnessName, base64.StdEncoding.EncodeToString(sig))
}

// The head that a plan binds has been signed by the witness, which is asked once a head.
func TestAWitnessSignsTheLog(t *testing.T) {
	w := &aWitness{key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32))}
	at := httptest.NewServer(w)
	t.Cleanup(at.Close)
	s := serves(t, 50, "cohort: {population: 3, floor: 3}", "--witness", at.URL+"/w")
	ctx := watchdog.Context(t)
	var first *attack.Device
	for range 3 {
		first = attack.NewDevice(s.token)
		join(t, first)
		t.Cleanup(first.Close)
		if err := first.Send(ctx, attack.Ready, attack.Array{}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := first.Plan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := attack.DecodeArray(b, attack.PlanHead+1)
	if err != nil {
		t.Fatal(err)
	}
	job, err := attack.DecodeArray(first.JobBytes, attack.JobLog+1)
	if err != nil {
		t.Fatal(err)
	}
	head, err := log.OpenHead(plan[attack.PlanHead].([]byte), [32]byte(job[attack.JobLog].([]byte)), w.public())
	if err != nil || head.Size != 3 {
		t.Errorf("%v, %v\n%s", head, err, s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.size != 3 || w.asked != 1 {
		t.Errorf("the witness was asked %d times and knows %d keys", w.asked, w.size)
	}
}
