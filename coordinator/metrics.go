package coordinator

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
)

// metrics are the coordinator's figures, for the operator: counts of devices, rounds,
// bytes and seconds, and what is public of the model. Nothing derives from an update, and
// nothing names a device.
type metrics struct {
	sessions, kicked, faults                               prometheus.Counter
	committed, noiseOnly, abandoned, charged               prometheus.Counter
	drawn, dropped, absent, shardsFailed, alarms, excluded prometheus.Counter
	unmasking, noising, releasing, inRounds                prometheus.Counter

	connected, enrolled, round, rank, cohort prometheus.Gauge
	clipNorm, version, lastCommit            prometheus.Gauge

	rounds, turns, answers, deviceBytes *prometheus.HistogramVec
	silent                              *prometheus.CounterVec
	shards                              prometheus.Histogram

	all []prometheus.Collector
}

// Outcomes of a round, as its histogram has them.
const (
	outcomeReleased  = "released"
	outcomeCharged   = "charged" // paid for without a release
	outcomeAbandoned = "abandoned"
)

func newMetrics() *metrics {
	m := &metrics{}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "starling", Name: name, Help: help})
		m.all = append(m.all, c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "starling", Name: name, Help: help})
		m.all = append(m.all, g)
		return g
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "starling", Name: name, Help: help, Buckets: buckets}, labels)
		m.all = append(m.all, h)
		return h
	}
	m.connected = gauge("connected_devices", "Open device sessions.")
	m.enrolled = gauge("enrolled_devices", "Enrolled identities.")
	m.round = gauge("round", "Number of the round that is running, or of the last one.")
	m.rank = gauge("rank", "Adapter rank of that round.")
	m.cohort = gauge("cohort_devices", "Devices drawn for that round.")
	m.clipNorm = gauge("clip_norm", "Clip norm of that round.")
	m.version = gauge("version", "Released checkpoints.")
	m.lastCommit = gauge("last_commit_timestamp_seconds", "When a checkpoint was released last, in Unix time; 0 before the first.")
	m.sessions = counter("sessions_total", "Device sessions that were opened.")
	m.kicked = counter("sessions_kicked_total", "Sessions closed because the device was slow or broke the protocol.")
	m.faults = counter("device_faults_total", "Device messages that were rejected.")
	m.committed = counter("rounds_committed_total", "Rounds that released a checkpoint.")
	m.noiseOnly = counter("rounds_noise_only_total", "Rounds among them that released noise only.")
	m.abandoned = counter("rounds_abandoned_total", "Rounds abandoned free of charge.")
	m.charged = counter("rounds_charged_total", "Rounds charged without a release.")
	m.drawn = counter("devices_drawn_total", "Devices drawn, over all rounds.")
	m.dropped = counter("devices_dropped_total", "Drawn devices that left a round that they were in.")
	m.absent = counter("devices_absent_total", "Drawn devices that were not there.")
	m.shardsFailed = counter("shards_failed_total", "Shards left out of their round.")
	m.alarms = counter("alarms_total", "Shards whose sum was out of range.")
	m.excluded = counter("devices_excluded_total", "Devices that were excluded for what they did.")
	m.unmasking = counter("unmask_seconds_total", "Time spent unmasking.")
	m.noising = counter("noise_seconds_total", "Time the release waited for noise.")
	m.releasing = counter("release_seconds_total", "Time from the last reveal to the commit.")
	m.inRounds = counter("round_seconds_total", "Time spent in rounds.")

	seconds := prometheus.ExponentialBuckets(0.125, 2, 16) // to an hour and more
	m.rounds = histogram("round_duration_seconds", "How long rounds took, by what became of them.", seconds, "outcome")
	m.turns = histogram("turn_duration_seconds", "How long the cohort's slowest shard was in each state of a round.", seconds, "turn")
	m.answers = histogram("device_answer_seconds", "After what time of a state devices answered it; of collecting, training included.", seconds, "turn")
	m.deviceBytes = histogram("device_round_bytes", "Bytes of a round for each device that it drew: a mean for each round.",
		prometheus.ExponentialBuckets(1<<10, 2, 18), "direction")
	m.shards = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "starling", Name: "shard_devices",
		Help: "Devices of each shard.", Buckets: prometheus.ExponentialBuckets(4, 2, 10)})
	m.silent = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "starling", Name: "devices_silent_total",
		Help: "Devices that were there and let a state pass without a word."}, []string{"turn"})
	m.all = append(m.all, m.shards, m.silent)
	// A series that nothing has counted yet is 0 and not absent: an alert on its rise sees the first.
	for _, o := range []string{outcomeReleased, outcomeCharged, outcomeAbandoned} {
		m.rounds.WithLabelValues(o)
	}
	for _, direction := range []string{"up", "down"} {
		m.deviceBytes.WithLabelValues(direction)
	}
	for s := round.Gathering; s <= round.Releasing; s++ {
		m.turns.WithLabelValues(s.String())
		if s >= round.Keying && s <= round.Unmasking {
			m.answers.WithLabelValues(s.String())
			m.silent.WithLabelValues(s.String())
		}
	}
	return m
}

// over takes in a round that has ended.
func (m *metrics) over(r *running, outcome string, of Traffic) {
	m.rounds.WithLabelValues(outcome).Observe(time.Since(r.began).Seconds())
	m.turns.WithLabelValues(r.reached.String()).Observe(time.Since(r.entered).Seconds())
	for s := round.Keying; s <= round.Unmasking; s++ {
		for _, after := range r.answers[s].after {
			m.answers.WithLabelValues(s.String()).Observe(after.Seconds())
		}
		m.silent.WithLabelValues(s.String()).Add(float64(r.answers[s].silent))
	}
	if n := float64(len(r.parts)); n > 0 {
		m.deviceBytes.WithLabelValues("up").Observe(float64(of.BytesUp) / n)
		m.deviceBytes.WithLabelValues("down").Observe(float64(of.BytesDown) / n)
	}
}

// Metrics are the operator's figures.
func (c *Coordinator) Metrics() []prometheus.Collector {
	return append([]prometheus.Collector{asked{c}}, c.metrics.all...)
}

// asked is what is computed when it is asked for.
type asked struct{ c *Coordinator }

var (
	desc = func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("starling_"+name, help, labels, nil)
	}
	refusedDesc  = desc("sessions_refused_total", "Sessions refused before enrolment.")
	receivedDesc = desc("received_bytes_total", "Bytes received on all sockets.")
	sentDesc     = desc("sent_bytes_total", "Bytes sent on all sockets.")
	onceUpDesc   = desc("received_once_bytes_total", "Of these, for what a device fetches once: base, programs, job, page.")
	onceDownDesc = desc("sent_once_bytes_total", "Of these, for what a device fetches once: base, programs, job, page.")
	partDesc     = desc("part_bytes_total", "Bytes by what they were for.", "part", "direction")
	stateDesc    = desc("state", "1 for the state that the job is in.", "state")
	roundsDesc   = desc("rounds_left", "Rounds that the job still has to release.")
	spentDesc    = desc("epsilon_spent", "Epsilon of the rounds so far: delivered to the devices there are, simulated for a larger population, "+
		"visible to who sees who takes part, untrusted without trust in this coordinator.", "guarantee")
	budgetDesc   = desc("epsilon_budget", "Epsilon that no round may pass.")
	deltaDesc    = desc("delta", "Delta of both.")
	accuracyDesc = desc("accuracy", "Accuracy on public validation data of the release measured last.", "rank")
	lossDesc     = desc("validation_loss", "Loss on public validation data of the release measured last, in nats.", "rank")
)

// Describe announces nothing: which series there are depends on the job.
func (asked) Describe(chan<- *prometheus.Desc) {}

// Collect reads status and meter once.
func (a asked) Collect(ch chan<- prometheus.Metric) {
	put := func(kind prometheus.ValueType, d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	c := a.c
	parts := c.traffic.parts()
	all, once := parts.sum(), parts.once()
	put(prometheus.CounterValue, refusedDesc, float64(c.traffic.refused.Load()))
	put(prometheus.CounterValue, receivedDesc, float64(all.Up))
	put(prometheus.CounterValue, sentDesc, float64(all.Down))
	put(prometheus.CounterValue, onceUpDesc, float64(once.Up))
	put(prometheus.CounterValue, onceDownDesc, float64(once.Down))
	for i, part := range parts.each() {
		put(prometheus.CounterValue, partDesc, float64(part.Up), partNames[i], "up")
		put(prometheus.CounterValue, partDesc, float64(part.Down), partNames[i], "down")
	}
	s := c.Status()
	put(prometheus.GaugeValue, stateDesc, 1, s.State)
	put(prometheus.GaugeValue, roundsDesc, float64(max(0, s.Rounds-s.Version)))
	for _, v := range s.Validation {
		put(prometheus.GaugeValue, accuracyDesc, v.Accuracy, strconv.Itoa(v.Rank))
		if v.Loss > 0 {
			put(prometheus.GaugeValue, lossDesc, v.Loss, strconv.Itoa(v.Rank))
		}
	}
	if !c.private() {
		return // no epsilon holds
	}
	put(prometheus.GaugeValue, budgetDesc, c.t.budget.Epsilon)
	put(prometheus.GaugeValue, deltaDesc, c.t.budget.Delta)
	for i, g := range []*dp.Guarantee{s.Delivered, s.Simulated, s.Visible, s.Untrusted} {
		if g != nil {
			put(prometheus.GaugeValue, spentDesc, g.Epsilon, [...]string{"delivered", "simulated", "visible", "untrusted"}[i])
		}
	}
}
