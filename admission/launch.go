package admission

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Launch types, as requiresCompatibilities has them.
const (
	launchEC2      = "EC2"
	launchFargate  = "FARGATE"
	launchExternal = "EXTERNAL"
)

// isEC2 reports whether tasks of a definition run on EC2 and nowhere else, as far as is known: the
// only place where a transparent proxy is on without a request for it.
func isEC2(doc *taskdef.Document) bool {
	return whyLaunchUnknown(doc) == "" && slices.Equal(doc.Definition.RequiresCompatibilities, []string{launchEC2})
}

// mayBeFargate reports whether tasks of a definition may run on Fargate: it requires Fargate, or
// does not show where they run.
func mayBeFargate(doc *taskdef.Document) bool {
	return doc.Definition.IsFargate() || whyLaunchUnknown(doc) != ""
}

// whyLaunchUnknown returns why a definition does not show where its tasks run, and nothing when it
// does.
func whyLaunchUnknown(doc *taskdef.Document) string {
	const member = "requiresCompatibilities"
	computed := slices.ContainsFunc(doc.Unknown(), func(path string) bool {
		return strings.HasPrefix(path, doc.Locate("$."+member))
	})
	switch {
	case doc.Definition.IsFargate() || slices.Contains(doc.Definition.RequiresCompatibilities, launchExternal):
		return ""
	case doc.Root.IsList():
		return "is not in a list of containers"
	case computed:
		return "is known at deployment only"
	case len(doc.Definition.RequiresCompatibilities) == 0:
		return "is absent"
	}
	return ""
}

// checkLaunch reports a transparent proxy that is on or off without a request, and one that is on
// without evidence that it may. On Fargate alone there is no choice.
func checkLaunch(t *task) {
	types := t.doc.Definition.RequiresCompatibilities
	if t.agent() || t.cfg.Gateway != nil || slices.Equal(types, []string{launchFargate}) {
		return
	}
	why, at := whyLaunchUnknown(t.doc), "$.requiresCompatibilities"
	if !t.whole() {
		at = "$"
	}
	enabled := t.mesh.configuration.Get("transparentProxy").Get("enabled")
	given := enabled != nil && !enabled.IsNull()
	switch {
	case given && t.cfg.TransparentProxy.Enabled && why != "" && t.whole():
		t.add(codeTProxyOn, at, "why", why)
	case given:
	case why == "":
		state := map[bool]string{true: "on", false: "off"}[t.cfg.TransparentProxy.Enabled]
		t.add(codeLaunch, at, "state", state, "why", "is "+strings.Join(types, " and "))
	default:
		t.add(codeLaunch, at, "state", "off", "why", why)
	}
}
