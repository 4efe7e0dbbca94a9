package monitor

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// Metrics are the coordinator's figures, for the operator: counts of devices, rounds,
// bytes and seconds, and what is public of the model. Nothing derives from an update, and
// nothing names a device.
type Metrics struct {
	Sessions, Kicked, Faults                               prometheus.Counter
	Committed, NoiseOnly, Abandoned, Charged               prometheus.Counter
	Drawn, Dropped, Absent, ShardsFailed, Alarms, Excluded prometheus.Counter
	Unmasking, Noising, Releasing, InRounds                prometheus.Counter

	Connected, Enrolled, Round, Rank, Cohort prometheus.Gauge
	ClipNorm, Version, LastCommit            prometheus.Gauge

	Shards prometheus.Histogram // devices of each

	rounds, states, answers, deviceBytes *prometheus.HistogramVec
	silent                               *prometheus.CounterVec

	all []prometheus.Collector
}

// Outcomes of a round, as labels of its histogram.
const (
	OutcomeReleased  = "released"
	OutcomeCharged   = "charged" // paid for without a release
	OutcomeAbandoned = "abandoned"
)

func newMetrics() *Metrics {
	m := &Metrics{}
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
	m.Connected = gauge("connected_devices", "Open device sessions.")
	m.Enrolled = gauge("enrolled_devices", "Enrolled identities.")
	m.Round = gauge("round", "Number of the round that is running, or of the last one.")
	m.Rank = gauge("rank", "Adapter rank of that round.")
	m.Cohort = gauge("cohort_devices", "Devices drawn for that round.")
	m.ClipNorm = gauge("clip_norm", "Clip norm of that round.")
	m.Version = gauge("version", "Released checkpoints.")
	m.LastCommit = gauge("last_commit_timestamp_seconds", "When a checkpoint was released last, in Unix time; 0 before the first.")
	m.Sessions = counter("sessions_total", "Device sessions that were opened.")
	m.Kicked = counter("sessions_kicked_total", "Sessions closed because the device was slow or broke the protocol.")
	m.Faults = counter("device_faults_total", "Device messages that were rejected.")
	m.Committed = counter("rounds_committed_total", "Rounds that released a checkpoint.")
	m.NoiseOnly = counter("rounds_noise_only_total", "Rounds among them that released noise only.")
	m.Abandoned = counter("rounds_abandoned_total", "Rounds abandoned free of charge.")
	m.Charged = counter("rounds_charged_total", "Rounds charged without a release.")
	m.Drawn = counter("devices_drawn_total", "Devices drawn, over all rounds.")
	m.Dropped = counter("devices_dropped_total", "Drawn devices that left a round that they were in.")
	m.Absent = counter("devices_absent_total", "Drawn devices that were not there.")
	m.ShardsFailed = counter("shards_failed_total", "Shards left out of their round.")
	m.Alarms = counter("alarms_total", "Shards whose sum was out of range.")
	m.Excluded = counter("devices_excluded_total", "Devices that were excluded for what they did.")
	m.Unmasking = counter("unmask_seconds_total", "Time spent unmasking.")
	m.Noising = counter("noise_seconds_total", "Time the release waited for noise.")
	m.Releasing = counter("release_seconds_total", "Time from the last reveal to the commit.")
	m.InRounds = counter("round_seconds_total", "Time spent in rounds.")

	seconds := prometheus.ExponentialBuckets(0.125, 2, 16) // to an hour and more
	m.rounds = histogram("round_duration_seconds", "How long rounds took, by what became of them.", seconds, "outcome")
	m.states = histogram("turn_duration_seconds", "How long the cohort's slowest shard was in each state of a round.", seconds, "turn")
	m.answers = histogram("device_answer_seconds", "After what time of a state devices answered it; of collecting, training included.", seconds, "turn")
	m.deviceBytes = histogram("device_round_bytes", "Bytes of a round for each device that it drew: a mean for each round.",
		prometheus.ExponentialBuckets(1<<10, 2, 18), "direction")
	m.Shards = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "starling", Name: "shard_devices",
		Help: "Devices of each shard.", Buckets: prometheus.ExponentialBuckets(4, 2, 10)})
	m.silent = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "starling", Name: "devices_silent_total",
		Help: "Devices that were there and let a state pass without a word."}, []string{"turn"})
	m.all = append(m.all, m.Shards, m.silent)
	// A series that nothing has counted yet is 0 and not absent: an alert on its rise sees the first.
	for _, o := range []string{OutcomeReleased, OutcomeCharged, OutcomeAbandoned} {
		m.rounds.WithLabelValues(o)
	}
	for _, direction := range []string{"up", "down"} {
		m.deviceBytes.WithLabelValues(direction)
	}
	for s := round.Gathering; s <= round.Releasing; s++ {
		m.states.WithLabelValues(s.String())
		if s >= round.Keying && s <= round.Unmasking {
			m.answers.WithLabelValues(s.String())
			m.silent.WithLabelValues(s.String())
		}
	}
	return m
}

// State records how long the cohort's slowest shard was in a state of a round.
func (m *Metrics) State(s round.State, took time.Duration) {
	m.states.WithLabelValues(s.String()).Observe(took.Seconds())
}

// Answers records how long after the beginning of a state devices answered it, and how many that
// were there did not.
func (m *Metrics) Answers(s round.State, after []time.Duration, silent int) {
	for _, t := range after {
		m.answers.WithLabelValues(s.String()).Observe(t.Seconds())
	}
	m.silent.WithLabelValues(s.String()).Add(float64(silent))
}

// RoundOver records a finished round, with the number of its devices and its bytes.
func (m *Metrics) RoundOver(outcome string, took time.Duration, devices int, of Traffic) {
	m.rounds.WithLabelValues(outcome).Observe(took.Seconds())
	if n := float64(devices); n > 0 {
		m.deviceBytes.WithLabelValues("up").Observe(float64(of.BytesUp) / n)
		m.deviceBytes.WithLabelValues("down").Observe(float64(of.BytesDown) / n)
	}
}

// Collectors returns all figures of the job. budget is what its rounds may spend, nil if no epsilon
// holds.
func (m *Monitor) Collectors(budget *accounting.Budget) []prometheus.Collector {
	return append([]prometheus.Collector{asked{m, budget}}, m.metrics.all...)
}

// asked is what is computed when it is asked for.
type asked struct {
	m      *Monitor
	budget *accounting.Budget
}

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
	spentDesc    = desc("epsilon_spent", "Epsilon of the rounds so far: delivered to the devices there are, against the budget's observer; simulated for a larger population; "+
		"public, coalition and visible against who sees releases alone, rosters of the hostile share, and who takes part; untrusted without trust in this coordinator.", "guarantee")
	budgetDesc   = desc("epsilon_budget", "Epsilon that no round may pass.")
	deltaDesc    = desc("delta", "Delta of both.")
	accuracyDesc = desc("accuracy", "Accuracy on public validation data of the release measured last.", "rank")
	fleetDesc    = desc("fleet_accuracy", "Accuracy that the last round's devices found on their own held-out examples: a mean with noise.", "rank")
	fleetLoss    = desc("fleet_loss", "Loss there, in nats.", "rank")
	fleetSpeed   = desc("fleet_steps_per_second", "Geometric mean of those devices' training steps a second, with noise.")
	fleetNoise   = desc("fleet_noise", "Standard deviation of the noise in what devices said; of steps a second a factor.", "figure")
	lossDesc     = desc("validation_loss", "Loss on public validation data of the release measured last, in nats.", "rank")
)

// Describe announces nothing: which series there are depends on the job.
func (asked) Describe(chan<- *prometheus.Desc) {}

// Collect reads status and meter once.
func (a asked) Collect(ch chan<- prometheus.Metric) {
	put := func(kind prometheus.ValueType, d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	parts := a.m.meter.parts()
	all, once := parts.Sum(), parts.Once()
	put(prometheus.CounterValue, refusedDesc, float64(a.m.meter.Refused()))
	put(prometheus.CounterValue, receivedDesc, float64(all.Up))
	put(prometheus.CounterValue, sentDesc, float64(all.Down))
	put(prometheus.CounterValue, onceUpDesc, float64(once.Up))
	put(prometheus.CounterValue, onceDownDesc, float64(once.Down))
	for i, part := range parts.each() {
		put(prometheus.CounterValue, partDesc, float64(part.Up), partNames[i], "up")
		put(prometheus.CounterValue, partDesc, float64(part.Down), partNames[i], "down")
	}
	s := a.m.Status()
	put(prometheus.GaugeValue, stateDesc, 1, s.State)
	put(prometheus.GaugeValue, roundsDesc, float64(max(0, s.Rounds-s.Version)))
	for _, v := range s.Validation {
		put(prometheus.GaugeValue, accuracyDesc, v.Accuracy, strconv.Itoa(v.Rank))
		if v.Loss > 0 {
			put(prometheus.GaugeValue, lossDesc, v.Loss, strconv.Itoa(v.Rank))
		}
	}
	if said := a.m.Fleet(); len(said) > 0 {
		f := said[len(said)-1]
		put(prometheus.GaugeValue, fleetLoss, f.Loss.Mean, strconv.Itoa(f.Rank))
		put(prometheus.GaugeValue, fleetNoise, f.Loss.Noise, "loss")
		if (f.Accuracy != metric.Noisy{}) {
			put(prometheus.GaugeValue, fleetDesc, f.Accuracy.Mean, strconv.Itoa(f.Rank))
			put(prometheus.GaugeValue, fleetNoise, f.Accuracy.Noise, "accuracy")
		}
		if (f.Speed != metric.Noisy{}) {
			put(prometheus.GaugeValue, fleetSpeed, f.Speed.Mean)
			put(prometheus.GaugeValue, fleetNoise, f.Speed.Noise, "steps_per_second")
		}
	}
	if a.budget == nil {
		return // no epsilon holds
	}
	put(prometheus.GaugeValue, budgetDesc, a.budget.Epsilon)
	put(prometheus.GaugeValue, deltaDesc, a.budget.Delta)
	for i, g := range []*dp.Guarantee{s.Delivered, s.Simulated, s.Public, s.Coalition, s.Visible, s.Untrusted} {
		if g != nil {
			put(prometheus.GaugeValue, spentDesc, g.Epsilon, [...]string{"delivered", "simulated", "public", "coalition", "visible", "untrusted"}[i])
		}
	}
}
