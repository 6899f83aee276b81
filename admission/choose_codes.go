package admission

import "github.com/meshtask/consul-ecs/taskdef"

// Codes of findings about what admission chooses for a definition.
const (
	codeAnnTag      = "ADM-ANN-TAG"
	codeDefault     = "ADM-DEFAULT"
	codeDropped     = "ADM-DROPPED"
	codeFirst       = "ADM-FIRST"
	codeHealthFrom  = "ADM-HEALTH-FROM"
	codeHealthStart = "ADM-HEALTH-START"
	codeLaunch      = "ADM-LAUNCH"
	codeLogs        = "ADM-LOGS"
	codePortChoice  = "ADM-PORT-CHOICE"
	codePortChosen  = "ADM-PORT-CHOSEN"
	codePortPlain   = "ADM-PORT-PLAIN"
	codeServiceFrom = "ADM-SVC-FROM"
	codeServicePort = "ADM-SVC-PORT"
	codeTProxyOn    = "ADM-TPROXY-LAUNCH"
)

// choiceCodes returns the findings about choices: infos where the choice is sure to be right or does no
// harm, and warnings where it may be wrong.
func choiceCodes() []Code {
	return []Code{
		{codeAnnTag, Info, "the tag {annotation} is {tag}, but a docker label has {label}, which counts",
			"remove one of them"},
		{codeDefault, Info, "{what}", "{fix}"},
		{codeDropped, Info, "{what}", ""},
		{codeFirst, Info, "container {container} is not put behind the proxy: {why}", ""},
		{codeHealthFrom, Info, "the service {what}", "set healthSyncContainers in the mesh file"},
		{codeHealthStart, taskdef.Warn, "the health check of container {container} counts after {have} s, but it may " +
			"wait {need} s for the proxy: ECS would stop the task",
			"set startPeriod to {need} s and what the application takes, or remove it"},
		{codeLaunch, Info, "the transparent proxy is {state}, because requiresCompatibilities {why}",
			"set transparentProxy.enabled in the mesh file; when absent, it is on for EC2 alone"},
		{codeLogs, Info, "the containers of the mesh {what}", "set admission.logConfiguration in the mesh file"},
		{codePortChoice, taskdef.Warn, "the service is registered with port {port} of container {container}, {why}",
			"set the annotation service-port"},
		{codePortChosen, Info, "the service is registered with port {port} of container {container}, {why}",
			"set the annotation service-port"},
		{codePortPlain, Info, "the mesh does not carry the ports {ports} of container {container}: {consequence}",
			"restrict them in the security group; expose-checks opens single paths"},
		{codeServiceFrom, Info, "the {workload} is named {name}, after {what}", "set the annotation service-name"},
		{codeServicePort, taskdef.Warn, "{why}, so the service is registered without a port",
			"set the annotation service-port, to 0 if no service calls this one"},
		{codeTProxyOn, taskdef.Warn, "the transparent proxy is on, and requiresCompatibilities {why}: Fargate " +
			"refuses the definition, as it does not give NET_ADMIN",
			"set requiresCompatibilities to EC2, or transparentProxy.enabled to false"},
	}
}
