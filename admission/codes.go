package admission

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Info is the severity of a finding that needs no action.
const Info taskdef.Severity = "info"

// Finding is one thing that is wrong, or that was done, at one place of the admitted document.
type Finding taskdef.Violation

// String returns "severity code path: message (fix)", on one line.
func (f Finding) String() string {
	text := fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Path, f.Message)
	if f.Fix != "" {
		text += " (" + f.Fix + ")"
	}
	return taskdef.OneLine(text)
}

// Code is a rule of admission. The rules of ECS itself are those of taskdef.
type Code struct {
	Code     string
	Severity taskdef.Severity
	// Text and Fix have placeholders such as {container}.
	Text, Fix string
}

// Codes of the findings.
const (
	codeAnnConflict = "ADM-ANN-CONFLICT"
	codeAnnHidden   = "ADM-ANN-HIDDEN"
	codeAnnUnknown  = "ADM-ANN-UNKNOWN"
	codeAnnValue    = "ADM-ANN-VALUE"
	codeAppMesh     = "ADM-APPMESH"
	codeArch        = "ADM-ARCH"
	codeAttestation = "ADM-ATTESTATION"
	codeBootstrap   = "ADM-BOOTSTRAP"
	codeComputed    = "ADM-COMPUTED"
	codeConfig      = "ADM-CONFIG"
	codeContainers  = "ADM-CONTAINERS"
	codeChanged     = "ADM-CHANGED"
	codeCPU         = "ADM-CPU"
	codeDepHang     = "ADM-DEP-HANG"
	codeEntryPoint  = "ADM-ENTRYPOINT"
	codeEssential   = "ADM-ESSENTIAL"
	codeExecRole    = "ADM-EXECROLE"
	codeExpose      = "ADM-EXPOSE"
	codeExternal    = "ADM-EXTERNAL"
	codeFlag        = "ADM-FLAG"
	codeHealth      = "ADM-HEALTH"
	codeHealthTime  = "ADM-HEALTH-TIME"
	codeKey         = "ADM-KEY"
	codeKeyNear     = "ADM-KEY-NEAR"
	codeKind        = "ADM-KIND"
	codeLogBlock    = "ADM-LOG-BLOCK"
	codeMemory      = "ADM-MEMORY"
	codeMount       = "ADM-MOUNT"
	codeName        = "ADM-NAME"
	codeNameAWS     = "ADM-NAME-AWS"
	codeNative      = "ADM-NATIVE"
	codeNetDefault  = "ADM-NET-DEFAULT"
	codeNetMode     = "ADM-NET-MODE"
	codeNoImage     = "ADM-NO-IMAGE"
	codeNotInjected = "ADM-NOT-INJECTED"
	codeOS          = "ADM-OS"
	codeOutput      = "ADM-OUTPUT"
	codeSecret      = "ADM-PLAINSECRET"
	codePort        = "ADM-PORT"
	codeReplaced    = "ADM-REPLACED"
	codeROFS        = "ADM-ROFS"
	codeServers     = "ADM-SERVERS"
	codeSize        = "ADM-SIZE"
	codeStop        = "ADM-STOP"
	codeServiceName = "ADM-SVC-NAME"
	codeTagsAbsent  = "ADM-TAGS-ABSENT"
	codeTagsLost    = "ADM-TAGS-LOST"
	codeTProxy      = "ADM-TPROXY"
	codeUpstream    = "ADM-UPSTREAM"
	codeUser        = "ADM-USER"
	codeUserRoot    = "ADM-USER-ROOT"
	codeVolume      = "ADM-VOLUME"
	codeVolumeOwn   = "ADM-VOLUME-OWN"
	codeVolumeTask  = "ADM-VOLUME-TASK"
	codeWrap        = "ADM-WRAP"
)

// Codes returns every rule of admission: those of definitions, of the operator's token, of
// its rights, and of the task role.
func Codes() []Code {
	return slices.Concat(definitionCodes(), tokenCodes(), permissionCodes(), roleCodes())
}

var allCodes = sync.OnceValue(Codes)

// definitionCodes returns the rules of definitions, sorted by code.
func definitionCodes() []Code {
	all := slices.Concat(errorCodes(), warningCodes(), choiceCodes(), imageCodes(), sidecarCodes())
	slices.SortFunc(all, func(a, b Code) int { return strings.Compare(a.Code, b.Code) })
	return all
}

// errorCodes returns the rules without which a definition is refused.
func errorCodes() []Code {
	return []Code{
		{codeAnnConflict, taskdef.Error, "{annotation} is {one} in container {a} and {other} in container {b}",
			"write it in one of them"},
		{codeAnnHidden, taskdef.Error, "{what} may bring annotations that are known at deployment only, such as the " +
			"policies that the token broker gives",
			"write out the names of docker labels and tags; Fn::If may choose between them"},
		{codeAnnValue, taskdef.Error, "{annotation} is {value}, want {want}", "change the annotation"},
		{codeAppMesh, taskdef.Error, "proxyConfiguration redirects traffic to a proxy of AWS App Mesh", "remove it"},
		{codeBootstrap, taskdef.Error, "bootstrapDir {dir} of the mesh file is not the shortest absolute path of a " +
			"directory below /", "take {instead}"},
		{codeConfig, taskdef.Error, "configuration {path}: {message}", "change the mesh file or the annotation"},
		{codeContainers, taskdef.Error, "CloudFormation computes {what}, so nothing can be put into the definition",
			"write it out, with functions for single containers or their members"},
		{codeEssential, taskdef.Error, "no essential container is an application", "make the application essential"},
		{codeExecRole, taskdef.Error, "the injected containers have {what}, for which the task needs an execution role",
			"set executionRoleArn to a role that may do this"},
		{codeExpose, taskdef.Error, "{annotation}: {message}", "remove the annotation"},
		{codeExternal, taskdef.Error, "the task runs on external instances, which have no network mode for the mesh",
			"set the annotation mesh-inject to false"},
		{codeFlag, taskdef.Error, "container {container} would not start: {command}: {message}",
			"correct the flag: consul-ecs {command} --help lists all"},
		{codeKeyNear, taskdef.Error, "no definition has this key: it would be refused", "write {near}"},
		{codeKind, taskdef.Error, "the kind {kind}: {message}",
			"correct the label consul.hashicorp.com/kind, or remove it"},
		{codeMount, taskdef.Error, "container {container} mounts the volume {source} at {path}, where it has {other} " +
			"already: it would not start", "remove one of them, or change its path"},
		{codeName, taskdef.Error, "the name of container {container} is that of a container of the mesh", "rename it"},
		{codeNative, taskdef.Error, "the tag {annotation} does not name a container, and the task has {count} " +
			"applications", "make it a docker label of the container"},
		{codeNetMode, taskdef.Error, "networkMode {mode}: the mesh needs awsvpc, where a task has its own address " +
			"and its containers share a loopback", "set networkMode to awsvpc, or the annotation mesh-inject to false"},
		{codeNoImage, taskdef.Error, "neither the mesh file nor this build of consul-ecs names the image of " +
			"{containers}", "set admission.images.consulECS in the mesh file to the image of consul-ecs in " +
			"your registry"},
		{codeOS, taskdef.Error, "the task runs on {os}: the injected containers need Linux",
			"set mesh-inject to false"},
		{codePort, taskdef.Error, "port {port} of {one} is also that of {other}", "take another port"},
		{codeServiceName, taskdef.Error, "{name} is not a valid service name",
			"take up to 256 lower-case letters, digits, '-' and '_', and no name that ends with -sidecar-proxy"},
		{codeTagsLost, taskdef.Error, "the task is {was}, and would become {now}, since the tags of the definition " +
			"are not in this answer of DescribeTaskDefinition",
			"call aws ecs describe-task-definition with --include TAGS, or write the annotation as a docker label"},
		{codeTProxy, taskdef.Error, "the transparent proxy does not work on Fargate, which does not give NET_ADMIN",
			"set transparentProxy.enabled to false"},
		{codeUpstream, taskdef.Error, "upstream {name}: {message}", "change the upstream"},
		{codeUser, taskdef.Error, "container {container} runs as user {user}, which is that of {owner}",
			"take another user"},
		{codeVolume, taskdef.Error, "container {container} mounts {source} at {path}, where the injected containers " +
			"share {dir}", "{fix}"},
		{codeVolumeOwn, taskdef.Error, "the volume {volume} holds the task's tokens, and this one outlives the task " +
			"or is shared with others", "rename it, or remove all its members but the name"},
	}
}

// warningCodes returns the rules that a definition may break, and what was done about it.
func warningCodes() []Code {
	return []Code{
		{codeAnnUnknown, taskdef.Warn, "{annotation} is not an annotation", "{fix}"},
		{codeArch, taskdef.Warn, "the image {image} is for {other} by its name, but the task runs on {arch}",
			"take the image of that architecture, or one for several"},
		{codeAttestation, taskdef.Warn, "the attestation policy does not have the images {images}, which run in " +
			"this task, too", "add them to the policy, or set the annotation mesh-inject to false"},
		{codeChanged, taskdef.Warn, "{member} of container {container} {how}", "{fix}"},
		{codeComputed, Info, "{what} is known at deployment only: {consequence}", ""},
		{codeCPU, taskdef.Warn, "the applications reserve {taken} of the task's {cpu} CPU units, and container " +
			"{proxy} none: while they are busy, it is slow",
			"reserve less for them, and some for it by sidecars of the mesh file or the annotation sidecar-cpu"},
		{codeDepHang, taskdef.Warn, "container {container} is essential and waits for {other}, which is not " +
			"essential, to be HEALTHY: while {other} is unhealthy, the task neither runs nor stops",
			"make {other} essential, or give it a startTimeout"},
		{codeEntryPoint, taskdef.Warn, "container {container} has a command and no entryPoint: the ENTRYPOINT of its " +
			"image is not run any more", "{fix}"},
		{codeHealth, taskdef.Warn, "the health check's command did not begin with CMD or CMD-SHELL: added {word}",
			"write it in the definition"},
		{codeHealthTime, taskdef.Warn, "the health check's timeout of {timeout} s is longer than its interval of " +
			"{interval} s", "take a longer interval or a shorter timeout"},
		{codeKey, taskdef.Warn, "{message}", ""},
		{codeLogBlock, taskdef.Warn, "the logs of container {container} have the mode blocking: while they are not " +
			"taken, it serves no request", "set the option mode to non-blocking, or give the container its own " +
			"logConfiguration by sidecars of the mesh file"},
		{codeMemory, taskdef.Warn, "the applications leave {left} MiB of the task's {memory} to the injected " +
			"containers, less than 128", "take cpu {nextCPU} with memory {nextMemory}"},
		{codeNameAWS, taskdef.Warn, "container {container} is named as those that AWS adds to tasks: it is no " +
			"application to the mesh, which neither wraps it nor waits for its end", "rename it if it is yours"},
		{codeNetDefault, taskdef.Warn, "networkMode was absent, which means bridge for ECS: set to awsvpc",
			"write it in the definition"},
		{codeNotInjected, Info, "nothing was put into the definition: there is no mesh file, and no annotation " +
			"{annotation}", "name the mesh file by -config"},
		{codeOutput, Info, "this is an answer of DescribeTaskDefinition: removed {keys}, which cannot be registered",
			""},
		{codeSecret, taskdef.Warn, "the variable {name} has its value in the definition, where everyone with " +
			"ecs:DescribeTaskDefinition reads it", "move it to secrets"},
		{codeReplaced, taskdef.Warn, "container {container} was not made by consul-ecs admit, and is replaced",
			"rename it if it is an application of yours"},
		{codeROFS, taskdef.Warn, "the root file system of container {container} is read-only, and nothing that may " +
			"be written is at /tmp", "give it a tmpfs or a volume at /tmp"},
		{codeServers, taskdef.Warn, "the configuration has no consulServers, so the task gets a Consul agent, and " +
			"that has no address to join",
			"set admission.client.retryJoin in the mesh file, or consulServers for tasks without an agent"},
		{codeSize, taskdef.Warn, "the definition has {size} bytes, and {container} most of them; ECS takes 65536",
			"shorten it"},
		{codeStop, taskdef.Warn, "{container} has {have} s to stop, but the stage {stage} ends after {need} s",
			"{fix}"},
		{codeTagsAbsent, taskdef.Warn, "this answer of DescribeTaskDefinition has no tags: annotations among them do " +
			"not count, and all are lost", "call aws ecs describe-task-definition with --include TAGS"},
		{codeUserRoot, taskdef.Warn, "container {container} runs as root in the network of its host",
			"take another user"},
		{codeVolumeTask, Info, "the task needs the volume {volume}, which a list of containers cannot declare",
			"declare it in the task definition, without any option"},
		{codeWrap, taskdef.Warn, "container {container} is not wrapped, because {why}: it starts when the proxy is " +
			"healthy, and does not delay its shutdown", "{fix}"},
	}
}

// report adds the finding of a code. Path has the keys of the ECS API; pairs are names and
// values of placeholders.
func (d *document) report(code, path string, pairs ...any) {
	d.reportAt(code, d.Locate(path), pairs...)
}

// reportAt adds the finding of a code at a path that has the keys of the document.
func (d *document) reportAt(code, path string, pairs ...any) {
	d.findings = append(d.findings, newFinding(code, path, pairs))
}

// newFinding returns the finding of a code at a path of the document. Pairs are names and values of
// placeholders.
func newFinding(code, path string, pairs []any) Finding {
	codes := allCodes()
	c := codes[slices.IndexFunc(codes, func(c Code) bool { return c.Code == code })]
	var fill []string
	for i := 0; i < len(pairs); i += 2 {
		fill = append(fill, fmt.Sprintf("{%s}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	replacer := strings.NewReplacer(fill...)
	return Finding{c.Code, c.Severity, path, replacer.Replace(c.Text), replacer.Replace(c.Fix)}
}
