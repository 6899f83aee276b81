package admission

import (
	"slices"
	"strings"
)

// Launch types, as requiresCompatibilities has them.
const (
	launchEC2      = "EC2"
	launchFargate  = "FARGATE"
	launchExternal = "EXTERNAL"
)

// isEC2 reports whether tasks of a definition run on EC2 and nowhere else, as far as is known: the
// only place where a transparent proxy is on without a request for it.
func isEC2(d *document) bool {
	return whyLaunchUnknown(d) == "" && slices.Equal(d.Definition.RequiresCompatibilities, []string{launchEC2})
}

// mayBeFargate reports whether tasks of a definition may run on Fargate: it requires Fargate, or
// does not show where they run.
func mayBeFargate(d *document) bool {
	return d.Definition.IsFargate() || whyLaunchUnknown(d) != ""
}

// whyLaunchUnknown returns why a definition does not show where its tasks run, and nothing when it
// does.
func whyLaunchUnknown(d *document) string {
	const member = "requiresCompatibilities"
	computed := slices.ContainsFunc(d.Unknown(), func(path string) bool {
		return strings.HasPrefix(path, d.Locate("$."+member))
	})
	switch {
	case d.Definition.IsFargate() || slices.Contains(d.Definition.RequiresCompatibilities, launchExternal):
		return ""
	case d.Root.IsList():
		return "is not in a list of containers"
	case computed:
		return "is known at deployment only"
	case len(d.Definition.RequiresCompatibilities) == 0:
		return "is absent"
	}
	return ""
}

// checkLaunch reports a transparent proxy that is on or off without a request, and one that is on
// without evidence that it may. On Fargate alone there is no choice.
func checkLaunch(t *task) {
	types := t.doc.Definition.RequiresCompatibilities
	if hasAgent(t.cfg) || t.cfg.Gateway != nil || slices.Equal(types, []string{launchFargate}) {
		return
	}
	why, at := whyLaunchUnknown(t.doc), "$.requiresCompatibilities"
	if !t.doc.isFullDefinition() {
		at = "$"
	}
	enabled := t.mesh.configuration.Get("transparentProxy").Get("enabled")
	given := enabled != nil && !enabled.IsNull()
	switch {
	case given && t.cfg.TransparentProxy.Enabled && why != "" && t.doc.isFullDefinition():
		t.doc.report(codeTProxyOn, at, "why", why)
	case given:
	case why == "":
		state := map[bool]string{true: "on", false: "off"}[t.cfg.TransparentProxy.Enabled]
		t.doc.report(codeLaunch, at, "state", state, "why", "is "+strings.Join(types, " and "))
	default:
		t.doc.report(codeLaunch, at, "state", "off", "why", why)
	}
}
