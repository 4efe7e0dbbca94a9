//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	rounds "github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/internal/resident"
	"github.com/starling-fl/starling/model"
)

// coordinate is the coordinator's process: its token on the first line, then a
// report at the beginning and the end of each round.
func coordinate(ctx context.Context, o options) error {
	if err := files(uint64(o.Devices) + 200); err != nil {
		return err
	}
	c := model.BERT(16, o.Hidden, 1, 4, 8)
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: make([]float32, model.Elements(s.Shape))})
	}
	base, err := model.NewBase(c, tensors, []byte(`{}`), model.F32)
	if err != nil {
		return err
	}
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "fleet", labels(), o.Rounds
	j.Adapter.RankMin, j.Adapter.RankMax, j.Adapter.Sequence = 16, 16, 8
	j.Cohort.Population, j.Cohort.MaxConnected = o.Devices, max(j.Cohort.MaxConnected, o.Devices)
	j.Shard.Size = o.Shard
	j.Privacy.Epsilon = 8
	// Everything runs on one machine: a turn takes as long as all devices' work.
	j.Deadlines = job.Deadlines{
		Gather: 5 * time.Minute, Key: 10 * time.Minute, Share: 10 * time.Minute, Collect: 10 * time.Minute,
		Confirm: 10 * time.Minute, Unmask: 10 * time.Minute, Min: 10 * time.Minute, Reconnect: 5 * time.Second,
	}
	profile := func() error { return nil }
	if o.Profile != "" {
		f, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		profile = sync.OnceValue(func() error { return pprof.StartCPUProfile(f) })
		defer pprof.StopCPUProfile()
	}
	e, err := listen(o)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	var round uint64
	var began time.Time
	var before, kernel float64
	var releasing time.Time
	cfg := coordinator.Config{Job: j, Dir: o.dir, Base: base, Hosts: []string{}, Progress: func(p monitor.Status) {
		switch {
		case p.State == rounds.Releasing.String():
			releasing = time.Now()
		case p.Round != round && p.State != monitor.StateWaiting:
			if err := profile(); err != nil { // not of the enrolments before
				fmt.Fprintln(os.Stderr, "no profile is written:", err)
			}
			round, began = p.Round, time.Now()
			before, kernel = cputime.Now().Seconds(), system()
			_ = out.Encode(report{Begins: true})
		case (p.State == monitor.StateCommitted || p.State == monitor.StateAbandoned) && !began.IsZero():
			_ = out.Encode(report{Round: p.Round, State: p.State, Reason: p.Reason, Dropped: p.Dropped,
				Wall: time.Since(began).Seconds(), CPU: cputime.Now().Seconds() - before,
				System: system() - kernel, Peak: float64(resident.Own()) / 1e6, Release: time.Since(releasing).Seconds()})
			began = time.Time{}
		}
	}}
	co, err := coordinator.New(cfg)
	if err != nil {
		return err
	}
	srv, err := server.New(co, server.Config{Gateways: o.Gateways > 0})
	if err != nil {
		return err
	}
	fmt.Println(srv.Token(e.URL, e.Pin))
	served := make(chan error, 1)
	sctx, stop := context.WithCancel(context.Background())
	go func() { served <- srv.Serve(sctx, e) }()
	err = co.Run(ctx)
	wctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	co.Wait(wctx) // the devices hear that it is over
	cancel()
	stop()
	<-served
	if cerr := co.Close(); err == nil {
		err = cerr
	}
	return err
}
