package admission

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// wrapper is the command that an application runs below, receiver the one that obtains the
// application's token.
const wrapper, receiver = "app-entrypoint", "token-receive"

// lineWriter writes the command lines of applications.
type lineWriter struct {
	doc        *document
	containers *containers
	cfg        *config.Config
}

// wrap puts app-entrypoint before an application whose program is known, and reports whether
// one is there. It removes one that an earlier admission put before another application.
func (w lineWriter) wrap(i int, n *taskdef.Node) bool {
	l := w.containers.line(i)
	v := l.decide()
	if v.code != "" {
		w.doc.report(v.code, fmt.Sprintf("$.containerDefinitions[%d]%s", i, v.at), "container", w.doc.containerName(i),
			"why", v.why, "fix", v.fix)
	}
	switch {
	case l.inCommand:
	case v.wrap:
		w.write(i, n, l)
	case l.computed == "":
		w.restore(n, l)
	}
	if v.mark && w.doc.label(n, annotationWrap, "true") {
		w.containers.annotations.wrap[w.doc.containerName(i)] = choiceWrap
	}
	return v.wrap
}

// write writes app-entrypoint and the program, and what of it is the image's.
func (w lineWriter) write(i int, n *taskdef.Node, l line) {
	r := record{image: l.record.image, entryPoint: l.imageEntry, command: l.imageCommand && len(l.command) > 0}
	signal, held := workload.ParseStopSignal(l.stop)
	switch {
	case l.stop != "" && !held:
		w.doc.report(codeStopSignal, fmt.Sprintf("$.containerDefinitions[%d].image", i),
			"container", w.doc.containerName(i), "signal", l.stop)
	case signal == "TERM":
		signal = ""
	}
	r.stopSignal = held && signal != ""
	r.reference = l.imageEntry && (l.locked || l.record.reference)
	if l.imageEntry && !r.reference && w.containers.images.lock == nil {
		w.doc.report(codeImage, fmt.Sprintf("$.containerDefinitions[%d].image", i), "image", w.doc.text(n, "image"),
			"container", w.doc.containerName(i),
			"why", "is not the one whose ENTRYPOINT and CMD the container has", "fix",
			"lock it, and admit it with -images")
	}
	program := l.rest
	if l.imageEntry {
		program = w.doc.node(append([]string{}, l.entry...)).Items()
	}
	if !r.stopSignal {
		signal = ""
	}
	w.doc.list(n, "entryPoint").SetItems(append(w.wrapperLine(i, signal, l.flags), program...))
	switch {
	case r.command:
		w.doc.set(n, "command", l.command)
	case l.record.command:
		n.Delete(w.doc.Key("command"))
	}
	w.doc.setRecord(n, r)
}

// restore takes away what an earlier admission wrote. An entryPoint of which nothing
// remains is that of the image again.
func (w lineWriter) restore(n *taskdef.Node, l line) {
	switch {
	case len(l.rest) > 0 && l.wrapped:
		w.doc.get(n, "entryPoint").SetItems(l.rest)
	case l.wrapped, l.record.entryPoint:
		n.Delete(w.doc.Key("entryPoint"))
	}
	if l.record.command {
		n.Delete(w.doc.Key("command"))
	}
	if l.wrapped {
		unmountVolume(w.doc, n, w.cfg.BootstrapDir)
	}
	w.doc.setRecord(n, record{image: l.record.image})
}

// isReceiver reports whether a container runs token-receive by its image's ENTRYPOINT.
func (d *document) isReceiver(i int) bool {
	words := texts(d.get(d.containers()[i], "command"))
	return isEmpty(d.get(d.containers()[i], "entryPoint")) && len(words) > 0 && words[0] == receiver
}

func isEmpty(list *taskdef.Node) bool {
	return list == nil || list.IsNull() || list.IsList() && len(list.Items()) == 0
}

// wrapperLine returns app-entrypoint with our flags and those of the user. Signal is the image's stop
// signal, empty for TERM.
func (w lineWriter) wrapperLine(i int, signal string, flags []*taskdef.Node) []*taskdef.Node {
	ours := []string{"-await-proxy", proxyAddress(w.cfg)}
	if w.cfg.BootstrapDir != defaultBootstrapDir {
		ours = append(ours, "-dir", w.cfg.BootstrapDir)
	}
	if stop := w.doc.Definition.ContainerDefinitions[i].StopTimeout; stop != nil {
		ours = append(ours, stopFlag(*stop)...)
	}
	if signal != "" {
		ours = append(ours, "-"+stopSignalFlag, signal)
	}
	var line []*taskdef.Node
	for _, word := range append([]string{programPath(w.cfg), wrapper}, ours...) {
		line = append(line, w.doc.node(word))
	}
	for j := 0; j < len(flags); {
		word, _ := flags[j].Text()
		width := flagWidth(word)
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !slices.Contains(ours, "-"+name) {
			line = append(line, flags[j:min(j+width, len(flags))]...)
		}
		j += width
	}
	return line
}

// proxyAddress returns what an application waits for: the proxy.
func proxyAddress(cfg *config.Config) string {
	if hasAgent(cfg) {
		return net.JoinHostPort(loopback, strconv.Itoa(cfg.Proxy.PublicListenerPort))
	}
	return "http://" + net.JoinHostPort(loopback, strconv.Itoa(cfg.Proxy.HealthCheckPort)) + "/ready"
}

// wrapperWords returns how many words of a line are app-entrypoint and its flags, 0 for another line.
func wrapperWords(line []string) int {
	if len(line) < 2 || path.Base(line[0]) != "consul-ecs" || line[1] != wrapper {
		return 0
	}
	end := 2
	for end < len(line) && line[end] != "--" && strings.HasPrefix(line[end], "-") {
		end += flagWidth(line[end])
	}
	return min(end, len(line))
}

// flagWidth returns how many words a flag of app-entrypoint takes.
func flagWidth(word string) int {
	if strings.Contains(word, "=") || strings.TrimLeft(word, "-") == "compat" {
		return 1
	}
	return 2
}

// shutdownDelay returns the one in an application's entryPoint. One that cannot be read counts as none: it is
// a finding of checkFlags.
func shutdownDelay(entryPoint []string) workload.ShutdownDelay {
	entryPoint = entryPoint[:wrapperWords(entryPoint)]
	for i, word := range entryPoint {
		name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || name != "shutdown-delay" {
			continue
		}
		if !joined && i+1 < len(entryPoint) {
			value = entryPoint[i+1]
		}
		delay, _ := workload.ParseShutdownDelay(value)
		return delay
	}
	return workload.ShutdownDelay{Auto: true}
}
