package coordinator

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"time"
)

// metrics are the coordinator's counters, all of them in this file. They carry
// counts of devices, rounds, bytes and seconds, for the operator: nothing that
// derives from an update.
type metrics struct {
	connected, enrolled                                    atomic.Int64
	sessions, kicked, faults                               atomic.Int64
	committed, noiseOnly, abandoned, charged               atomic.Int64
	drawn, dropped, absent, shardsFailed, alarms, excluded atomic.Int64
	unmaskNanos, noiseNanos, releaseNanos, roundNanos      atomic.Int64
	round, rank, cohort, version                           atomic.Int64
	clipNorm                                               atomic.Uint64 // bits of a float64
}

// WriteMetrics prints the operator's figures in the Prometheus text format, version
// 0.0.4.
func (c *Coordinator) WriteMetrics(w io.Writer) error {
	m, t := &c.metrics, &c.traffic
	var b strings.Builder
	put := func(kind, name, help string, v any) {
		fmt.Fprintf(&b, "# HELP starling_%s %s\n# TYPE starling_%s %s\nstarling_%s %v\n", name, help, name, kind, name, v)
	}
	n := func(a *atomic.Int64) int64 { return a.Load() }
	s := func(a *atomic.Int64) float64 { return time.Duration(a.Load()).Seconds() }
	parts := t.parts()
	once := parts.once()
	put("gauge", "connected_devices", "Open device sessions.", n(&m.connected))
	put("gauge", "enrolled_devices", "Enrolled identities.", n(&m.enrolled))
	put("gauge", "round", "Number of the round that is running, or of the last one.", n(&m.round))
	put("gauge", "rank", "Adapter rank of that round.", n(&m.rank))
	put("gauge", "cohort_devices", "Devices drawn for that round.", n(&m.cohort))
	put("gauge", "clip_norm", "Clip norm of that round.", math.Float64frombits(m.clipNorm.Load()))
	put("gauge", "version", "Released checkpoints.", n(&m.version))
	put("counter", "sessions_total", "Device sessions that were opened.", n(&m.sessions))
	put("counter", "sessions_refused_total", "Sessions refused before enrolment.", n(&t.refused))
	put("counter", "sessions_kicked_total", "Sessions closed because the device was slow or broke the protocol.", n(&m.kicked))
	put("counter", "device_faults_total", "Device messages that were rejected.", n(&m.faults))
	put("counter", "rounds_committed_total", "Rounds that released a checkpoint.", n(&m.committed))
	put("counter", "rounds_noise_only_total", "Rounds among them that released noise only.", n(&m.noiseOnly))
	put("counter", "rounds_abandoned_total", "Rounds abandoned free of charge.", n(&m.abandoned))
	put("counter", "rounds_charged_total", "Rounds charged without a release.", n(&m.charged))
	put("counter", "devices_drawn_total", "Devices drawn, over all rounds.", n(&m.drawn))
	put("counter", "devices_dropped_total", "Drawn devices that left a round that they were in.", n(&m.dropped))
	put("counter", "devices_absent_total", "Drawn devices that were not there.", n(&m.absent))
	put("counter", "shards_failed_total", "Shards left out of their round.", n(&m.shardsFailed))
	put("counter", "alarms_total", "Shards whose sum was out of range.", n(&m.alarms))
	put("counter", "devices_excluded_total", "Devices that were excluded for what they did.", n(&m.excluded))
	put("counter", "received_bytes_total", "Bytes received on all sockets.", n(&t.up))
	put("counter", "sent_bytes_total", "Bytes sent on all sockets.", n(&t.down))
	put("counter", "received_once_bytes_total", "Of these, for what a device fetches once: base, programs, job, page.", once.Up)
	put("counter", "sent_once_bytes_total", "Of these, for what a device fetches once: base, programs, job, page.", once.Down)
	fmt.Fprint(&b, "# HELP starling_part_bytes_total Bytes by what they were for.\n# TYPE starling_part_bytes_total counter\n")
	for i, part := range parts.each() {
		for _, way := range []struct {
			name string
			n    int64
		}{{"up", part.Up}, {"down", part.Down}} {
			fmt.Fprintf(&b, "starling_part_bytes_total{part=%q,direction=%q} %d\n", partNames[i], way.name, way.n)
		}
	}
	put("counter", "unmask_seconds_total", "Time spent unmasking.", s(&m.unmaskNanos))
	put("counter", "noise_seconds_total", "Time the release waited for noise.", s(&m.noiseNanos))
	put("counter", "release_seconds_total", "Time from the last reveal to the commit.", s(&m.releaseNanos))
	put("counter", "round_seconds_total", "Time spent in rounds.", s(&m.roundNanos))
	_, err := io.WriteString(w, b.String())
	return err
}
