package admission

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// wrapper is the command that an application runs below, receiver the one that obtains the
// application's token.
const wrapper, receiver = "app-entrypoint", "token-receive"

// wrap puts app-entrypoint before an application, and reports whether one is there. An
// application whose program only its image names is left alone.
func (t *task) wrap(i int, n *taskdef.Node) bool {
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	name := t.containerName(i)
	entry, command := t.get(n, "entryPoint"), t.get(n, "command")
	if why, fix := t.unwrappable(n); why != "" {
		t.add(codeWrap, at, "container", name, "why", why, "fix", fix)
		return false
	}
	if isEmpty(entry) && wrapperWords(texts(command)) > 0 {
		return true // by hand
	}
	words := wrapperWords(texts(entry))
	var flags []*taskdef.Node
	if words > 0 {
		flags = entry.Items()[2:words]
	}
	rest := entry.Items()[words:]
	if len(rest) == 0 && !isEmpty(command) {
		t.add(codeEntryPoint, at+".command", "container", name)
	}
	t.list(n, "entryPoint").SetItems(append(t.wrapperLine(i, flags), rest...))
	return true
}

// unwrappable is why app-entrypoint cannot go before an application, and what to do about it;
// empty when it can.
func (t *task) unwrappable(n *taskdef.Node) (why, fix string) {
	entry, command := t.get(n, "entryPoint"), t.get(n, "command")
	noEntry := isEmpty(entry)
	switch {
	case noEntry && isEmpty(command):
		return "it has neither entryPoint nor command", "write the image's ENTRYPOINT as entryPoint and its CMD as command"
	case !noEntry && !entry.IsList(), noEntry && !command.IsList():
		return "its command is known at deployment only", "write entryPoint as a list"
	case noEntry && strings.HasPrefix(texts(command)[0], "-"):
		return "its command is options of its image's ENTRYPOINT", "write that ENTRYPOINT as entryPoint"
	case noEntry && t.flags != nil && t.flags(texts(command)[0]) != nil:
		return "its command is one of consul-ecs, its image's ENTRYPOINT", "write that ENTRYPOINT as entryPoint"
	case !t.listed(n, "mountPoints") || !t.listed(n, "dependsOn"):
		return "its mountPoints or dependsOn are known at deployment only", "write them as lists, or as Fn::If of lists"
	}
	return "", ""
}

// isReceiver reports whether a container runs token-receive by its image's ENTRYPOINT.
func (t *task) isReceiver(i int) bool {
	words := texts(t.get(t.containers()[i], "command"))
	return isEmpty(t.get(t.containers()[i], "entryPoint")) && len(words) > 0 && words[0] == receiver
}

func isEmpty(list *taskdef.Node) bool {
	return list == nil || list.IsNull() || list.IsList() && len(list.Items()) == 0
}

// wrapperLine is app-entrypoint with our flags and those of the user.
func (t *task) wrapperLine(i int, flags []*taskdef.Node) []*taskdef.Node {
	ours := []string{"-await-proxy", t.awaited()}
	if t.cfg.BootstrapDir != defaultBootstrapDir {
		ours = append(ours, "-dir", t.cfg.BootstrapDir)
	}
	if stop := t.doc.Definition.ContainerDefinitions[i].StopTimeout; stop != nil {
		ours = append(ours, stopFlag(*stop)...)
	}
	var line []*taskdef.Node
	for _, word := range append([]string{t.program(), wrapper}, ours...) {
		line = append(line, t.node(word))
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

// awaited is what an application waits for: the proxy.
func (t *task) awaited() string {
	if t.agent() {
		return net.JoinHostPort(loopback, strconv.Itoa(t.cfg.Proxy.PublicListenerPort))
	}
	return "http://" + net.JoinHostPort(loopback, strconv.Itoa(t.cfg.Proxy.HealthCheckPort)) + "/ready"
}

// wrapperWords is how many words of a line are app-entrypoint and its flags, 0 for another
// line.
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

// flagWidth is how many words a flag of app-entrypoint takes.
func flagWidth(word string) int {
	if strings.Contains(word, "=") || strings.TrimLeft(word, "-") == "compat" {
		return 1
	}
	return 2
}

// shutdownDelay is the one in an application's entryPoint. One that cannot be read counts as
// none: it is a finding of checkFlags.
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
