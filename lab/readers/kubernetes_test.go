package readers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	strictjson "sigs.k8s.io/json"

	"github.com/starling-fl/starling/internal/leaf/strict"
)

// manifests are what a file of deploy/kubernetes has a cluster make.
type manifests struct {
	services []core.Service
	pods     map[string]core.PodTemplateSpec // by kind and name
	budgets  []policy.PodDisruptionBudget
	policies []network.NetworkPolicy
	claims   map[string][]string // of a StatefulSet
}

// readManifests reads a file by Kubernetes' own types, in which an unknown field is an error.
func readManifests(t *testing.T, file string) manifests {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := manifests{pods: map[string]core.PodTemplateSpec{}, claims: map[string][]string{}}
	for part := range strings.SplitSeq(string(b), "\n---\n") {
		var object map[string]any
		if err := strict.Decode([]byte(part), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind, version := object["kind"], object["apiVersion"]
		asJSON, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		read := func(of string, into any) {
			t.Helper()
			// As the API does: encoding/json takes readonly for readOnly.
			if unknown, err := strictjson.UnmarshalStrict(asJSON, into); err != nil || len(unknown) > 0 || version != of {
				t.Errorf("%s: a %v of %v: %v, %v", file, kind, version, err, unknown)
			}
		}
		matches := func(of string, s *meta.LabelSelector, template core.PodTemplateSpec) {
			t.Helper()
			if selector, err := meta.LabelSelectorAsSelector(s); err != nil || !selector.Matches(labels.Set(template.Labels)) {
				t.Errorf("%s selects no pod of its own: %v", of, err)
			}
			m.pods[of] = template
		}
		switch kind {
		case "Service":
			var s core.Service
			read("v1", &s)
			m.services = append(m.services, s)
		case "StatefulSet":
			var s apps.StatefulSet
			read("apps/v1", &s)
			matches(s.Name, s.Spec.Selector, s.Spec.Template)
			for _, c := range s.Spec.VolumeClaimTemplates {
				m.claims[s.Name] = append(m.claims[s.Name], c.Name)
			}
		case "Deployment":
			var d apps.Deployment
			read("apps/v1", &d)
			matches(d.Name, d.Spec.Selector, d.Spec.Template)
		case "PodDisruptionBudget":
			var p policy.PodDisruptionBudget
			read("policy/v1", &p)
			m.budgets = append(m.budgets, p)
		case "NetworkPolicy":
			var p network.NetworkPolicy
			read("networking.k8s.io/v1", &p)
			m.policies = append(m.policies, p)
		default:
			t.Errorf("%s: a %v of %v, which this test does not know", file, kind, version)
		}
	}
	return m
}

// selected are the pods that a selector means.
func (m manifests) selected(t *testing.T, of string, s meta.LabelSelector) (found []core.PodTemplateSpec) {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.pods {
		if selector.Matches(labels.Set(p.Labels)) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		t.Errorf("%s selects no pod", of)
	}
	return found
}

// has reports whether a container listens at a port, by number or name.
func has(c core.Container, port intstr.IntOrString) bool {
	return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool {
		return p.Name == port.StrVal && port.Type == intstr.String || p.ContainerPort == port.IntVal && port.Type == intstr.Int
	})
}

// TestManifests: what deploy/kubernetes has a cluster make is of Kubernetes' own types, names no port,
// volume or pod that is not there, asks for what serve and gateway answer, and is within the Pod Security
// Standard "restricted".
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		m := readManifests(t, file)
		for name, pod := range m.pods {
			restricted(t, name, pod.Spec)
			for _, c := range pod.Spec.Containers {
				consistent(t, name, c, pod.Spec, m.claims[name])
			}
		}
		for _, s := range m.services {
			for _, pod := range m.selected(t, "the Service "+s.Name, meta.LabelSelector{MatchLabels: s.Spec.Selector}) {
				for _, p := range s.Spec.Ports {
					if p.TargetPort == (intstr.IntOrString{}) {
						p.TargetPort = intstr.FromInt32(p.Port)
					}
					if !has(pod.Spec.Containers[0], p.TargetPort) {
						t.Errorf("the Service %s leads to the port %s, at which nothing listens", s.Name, p.Name)
					}
				}
			}
		}
		for _, b := range m.budgets {
			m.selected(t, "the PodDisruptionBudget "+b.Name, *b.Spec.Selector)
		}
		for _, p := range m.policies {
			allowed(t, m, p)
		}
	}
}

// allowed holds that a policy lets in where something listens, and out to what is there.
func allowed(t *testing.T, m manifests, p network.NetworkPolicy) {
	t.Helper()
	pods := m.selected(t, "the NetworkPolicy "+p.Name, p.Spec.PodSelector)
	for _, in := range p.Spec.Ingress {
		for _, port := range in.Ports {
			if !slices.ContainsFunc(pods, func(p core.PodTemplateSpec) bool { return has(p.Spec.Containers[0], *port.Port) }) {
				t.Errorf("the NetworkPolicy %s lets in at %s, at which nothing listens", p.Name, port.Port)
			}
		}
		for _, from := range in.From {
			if from.PodSelector != nil {
				m.selected(t, "the NetworkPolicy "+p.Name, *from.PodSelector)
			}
		}
	}
	for _, out := range p.Spec.Egress {
		for _, to := range out.To {
			if to.NamespaceSelector != nil { // of another namespace
				continue
			}
			for _, pod := range m.selected(t, "the NetworkPolicy "+p.Name, *to.PodSelector) {
				for _, port := range out.Ports {
					if !has(pod.Spec.Containers[0], *port.Port) {
						t.Errorf("the NetworkPolicy %s lets out to %s, at which nothing listens", p.Name, port.Port)
					}
				}
			}
		}
	}
}

// consistent holds a container against its pod: mounts are of its volumes, probes of its ports.
func consistent(t *testing.T, name string, c core.Container, pod core.PodSpec, claims []string) {
	t.Helper()
	for _, v := range pod.Volumes {
		claims = append(claims, v.Name)
	}
	for _, mount := range c.VolumeMounts {
		if !slices.Contains(claims, mount.Name) {
			t.Errorf("%s mounts %s, which is not a volume of it", name, mount.Name)
		}
	}
	probes := 0
	for _, probe := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		switch {
		case probe == nil:
			continue
		case probe.HTTPGet != nil && (probe.HTTPGet.Path != "/healthz" && probe.HTTPGet.Path != "/readyz" || !has(c, probe.HTTPGet.Port)),
			probe.TCPSocket != nil && !has(c, probe.TCPSocket.Port):
			t.Errorf("%s is asked for what it does not answer: %+v", name, probe.ProbeHandler)
		}
		probes++
	}
	if probes == 0 {
		t.Errorf("nobody asks %s how it is", name)
	}
	for _, e := range c.Env { // what serve and gateway listen at is said where the image does not
		if e.Name == "STARLING_GATEWAY_LISTEN" || e.Name == "STARLING_GATEWAY_HEALTH" {
			_, port, _ := strings.Cut(e.Value, ":")
			if !has(c, intstr.Parse(port)) {
				t.Errorf("%s listens at %s, which is not a port of it", name, e.Value)
			}
		}
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("%s is not bounded", name)
	}
	secret := func(e core.EnvVar) bool {
		return strings.Contains(e.Value, "://") && strings.Contains(e.Value, "@") && !strings.Contains(e.Value, "$(")
	}
	if i := slices.IndexFunc(c.Env, secret); i >= 0 {
		t.Errorf("%s has a password in %s", name, c.Env[i].Name)
	}
}

// restricted is the Pod Security Standard of that name, of what these pods use of it, and a root that
// cannot be written.
func restricted(t *testing.T, name string, pod core.PodSpec) {
	t.Helper()
	s := pod.SecurityContext
	is := map[string]bool{
		"runs as root":               s != nil && s.RunAsNonRoot != nil && *s.RunAsNonRoot && s.RunAsUser != nil && *s.RunAsUser == 65532,
		"has no seccomp profile":     s != nil && s.SeccompProfile != nil && s.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault,
		"has the host's":             !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
		"has a token of the cluster": pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken,
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		is[fmt.Sprint("may do more than it needs in ", c.Name)] = s != nil && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation && s.Privileged == nil &&
			s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem && s.Capabilities != nil && slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) && len(s.Capabilities.Add) == 0
	}
	for _, v := range pod.Volumes {
		is["mounts of the host "+v.Name] = v.EmptyDir != nil || v.Secret != nil || v.ConfigMap != nil
	}
	for what, ok := range is {
		if !ok {
			t.Errorf("%s %s", name, what)
		}
	}
}
